"""Numbers to addresses: prefixes as integers, because a site has tens of thousands of them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Network


def host(network: IPv4Network, offset: int) -> str:
    """The address `offset` into a network, without length."""
    return dotted(int(network.network_address) + offset)


def dotted(value: int) -> str:
    """An IPv4 address as text."""
    return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def pair(network: IPv4Network, number: int) -> tuple[str, str]:
    """The two addresses (even, odd) of the `number`-th /31 of a network, with length (RFC 3021)."""
    base = int(network.network_address) + 2 * number
    return f"{dotted(base)}/31", f"{dotted(base + 1)}/31"


def usable(network: IPv4Network) -> int:
    """How many host addresses a pool has, its network and broadcast addresses left out."""
    return max(0, network.num_addresses - 2)


def stable_mac(*names: str) -> str:
    """A locally administered unicast MAC that depends only on the names."""
    digest = hashlib.sha256("/".join(names).encode()).digest()
    return ":".join(["02", *(f"{byte:02x}" for byte in digest[:5])])
