"""Address space that has a special use, and what may never cross to the outside."""

from __future__ import annotations

from ipaddress import IPv4Network

# never seen outside, in either direction: private (RFC 1918), shared (RFC 6598) and link-local (RFC 3927) addresses
NEVER_OUTSIDE = ("10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")

# neither a public nor a private side of an exposure may touch these (RFC 6890): name by prefix
SPECIAL_USE: dict[IPv4Network, str] = {
    IPv4Network("0.0.0.0/8"): "this network",
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("169.254.0.0/16"): "link-local",
    IPv4Network("192.0.0.0/24"): "protocol assignments",
    IPv4Network("192.88.99.0/24"): "6to4 relays",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved",
}


def special_use(network: IPv4Network) -> str:
    """Return what a prefix that overlaps special-use space is for, or nothing."""
    return next((use for special, use in SPECIAL_USE.items() if special.overlaps(network)), "")


def is_private(network: IPv4Network) -> bool:
    """Say whether a prefix overlaps space that is never announced outside."""
    return any(IPv4Network(prefix).overlaps(network) for prefix in NEVER_OUTSIDE)
