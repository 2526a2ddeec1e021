"""Switch and NIC profiles, data beside code."""
