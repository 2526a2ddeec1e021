"""Tenants live: who reaches whom, and who must not."""
