"""What devices run against what was rendered: FRR's running configuration, SONiC's CONFIG_DB, a gateway's rules."""
