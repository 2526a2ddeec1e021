"""The probes of `kvfabric probe`, one file per probe, exposing `command`."""
