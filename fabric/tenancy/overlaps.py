"""Which subnets meet in one place and overlap: there a route to one of them takes the other's traffic."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fabric.plan import Subnet


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two subnets that overlap, whose they are, and the tenant where both are known; `left` may be `right`."""

    left: str
    left_subnet: Subnet
    right: str
    right_subnet: Subnet
    viewer: str

    def sentence(self, left_at: str = "", right_at: str = "") -> str:
        """Say it; `left_at` and `right_at` are places (`tenants.yaml:7`)."""
        one, two = (
            f"{s.prefix} ({s.fabric} of {tenant}{', ' if at else ''}{at})"
            for s, tenant, at in ((self.left_subnet, self.left, left_at), (self.right_subnet, self.right, right_at))
        )
        if self.viewer in (self.left, self.right):
            return f"{one} and {two} overlap, and they meet"
        return f"{one} and {two} overlap, and they meet through their common peer {self.viewer}"


def overlaps(subnets: Mapping[str, Sequence[Subnet]], peers: Mapping[str, Sequence[str]]) -> Iterator[Overlap]:
    """Yield each overlap among a tenant's subnets and its peers', once, over all tenants.

    Subnets of different fabrics meet in a server with ports in both: its routes say which fabric a packet leaves by.
    """
    seen: set[frozenset[tuple[str, str]]] = set()
    for viewer, around in peers.items():
        fabrics = {subnet.fabric for subnet in subnets.get(viewer, ())}
        found = [(t, s, IPv4Network(s.prefix)) for t in (viewer, *around) for s in subnets.get(t, ())]
        for (left, one, first), (right, two, second) in combinations(found, 2):
            pair = frozenset({(left, one.fabric), (right, two.fabric)})
            meet = one.fabric == two.fabric or fabrics >= {one.fabric, two.fabric}
            if meet and first.overlaps(second) and pair not in seen:
                seen.add(pair)
                sides = sorted(((left, one), (right, two)), key=lambda side: (side[0], side[1].fabric))
                yield Overlap(*sides[0], *sides[1], viewer)
