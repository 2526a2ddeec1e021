"""Clos fabrics: placement of servers, uplinks, spines."""
