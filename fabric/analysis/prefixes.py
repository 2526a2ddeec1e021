"""Reads prefixes from files that may hold anything."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network


@lru_cache(maxsize=4096)
def network(prefix: str) -> IPv4Network | None:
    """Read an IPv4 prefix or interface address; None when it is not one."""
    try:
        return IPv4Network(prefix, strict=False)
    except ValueError:
        return None
