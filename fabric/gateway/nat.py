"""Address arithmetic of the three NAT modes: one-to-one pairs, shares of a pool, and the fewest prefixes of a range."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from typing import TYPE_CHECKING

from fabric.plan import PoolShare

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Block = tuple[IPv4Network, IPv4Network]


def size(prefixes: Iterable[str]) -> int:
    """Return how many addresses the prefixes hold together, network and broadcast addresses included."""
    return sum(IPv4Network(prefix).num_addresses for prefix in prefixes)


def static_pairs(private: Sequence[str], public: Sequence[str]) -> tuple[Block, ...]:
    """Cut both sides of a static exposure into blocks of equal length that map one to one, at the same offset.

    The n-th private address belongs to the n-th public one, in the order given. Raises ValueError when the sides
    hold different numbers of addresses.
    """
    if size(private) != size(public):
        message = f"{size(private)} private and {size(public)} public addresses do not map one to one"
        raise ValueError(message)
    inside, outside = _spans(private), _spans(public)
    pairs: list[Block] = []
    i = o = 0
    while i < len(inside) and o < len(outside):
        (a, a_left), (b, b_left) = inside[i], outside[o]
        block = _largest(a, b, min(a_left, b_left))
        prefix = 32 - block.bit_length() + 1
        pairs.append((IPv4Network((a, prefix)), IPv4Network((b, prefix))))
        inside[i], outside[o] = (a + block, a_left - block), (b + block, b_left - block)
        i += inside[i][1] == 0
        o += outside[o][1] == 0
    return tuple(pairs)


def _spans(prefixes: Sequence[str]) -> list[tuple[int, int]]:
    networks = [IPv4Network(prefix) for prefix in prefixes]
    return [(int(network.network_address), network.num_addresses) for network in networks]


def _largest(a: int, b: int, most: int) -> int:
    """Return the largest power of two that divides both addresses and is not above `most`."""
    block = 1 << (most.bit_length() - 1)
    while (a | b) & (block - 1):
        block >>= 1
    return block


def shares(public: str, gateways: Sequence[str]) -> tuple[PoolShare, ...]:
    """Divide a masquerade pool between gateways that share no state, in order, the first ones getting what is over.

    Raises ValueError when there are fewer addresses than gateways.
    """
    network = IPv4Network(public)
    each, over = divmod(network.num_addresses, len(gateways))
    if not each:
        message = f"{public} holds {network.num_addresses} addresses for {len(gateways)} gateways"
        raise ValueError(message)
    found = []
    at = int(network.network_address)
    for position, gateway in enumerate(gateways):
        length = each + (position < over)
        found.append(PoolShare(gateway, str(IPv4Address(at)), str(IPv4Address(at + length - 1))))
        at += length
    return tuple(found)


def prefixes_of(first: str, last: str) -> tuple[str, ...]:
    """Return the fewest prefixes that hold exactly the addresses from `first` to `last`."""
    return tuple(str(network) for network in summarize_address_range(IPv4Address(first), IPv4Address(last)))
