"""Tenants: members, addresses, peerings."""
