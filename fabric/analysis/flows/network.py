"""A fabric as directed links with capacities, and the paths that ECMP hashing gives to flows.

Hashing model: a switch picks among its equal links by a hash of the flow's 5-tuple and its own seed. A QP of RoCEv2
has its own UDP source port, so each QP is hashed apart. With `polarised` every switch has one seed, and the second
tier repeats the choice of the first. Real ASICs hash differently in detail; averages over seeds are what to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fabric.analysis.flows.maxmin import NO_LINK
from fabric.plan import FABRIC_LINK, GATEWAY_LINK, LEAF_KINDS, SERVER_LINK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fabric.plan import Plan

_HOPS = 4
_GAMMA, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash 64-bit numbers (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        values = values + _GAMMA
        values = (values ^ (values >> np.uint64(30))) * _MIX1
        values = (values ^ (values >> np.uint64(27))) * _MIX2
        return np.asarray(values ^ (values >> np.uint64(31)), dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A NIC or gateway port on a leaf: `up` carries what it sends, `down` what it receives (directed link indexes)."""

    device: str
    port: str
    leaf: int
    rail: int
    tenant: str
    up: int
    down: int
    speed: int


class Network:
    """One fabric. Directed link 2k goes from end a to end b of `links[k]`, 2k + 1 the other way. Gb/s line rate.

    `without` are link ids and device names that have failed.
    """

    def __init__(self, plan: Plan, fabric: str, without: frozenset[str] = frozenset()) -> None:
        self.plan = plan
        self.fabric = fabric
        kinds = {FABRIC_LINK, SERVER_LINK, GATEWAY_LINK}
        dead = without
        self.links = [
            link
            for link in plan.links.values()
            if link.fabric == fabric and link.kind in kinds and not dead & {link.id, link.a.device, link.b.device}
        ]
        self.capacity = np.repeat(np.array([float(link.speed) for link in self.links]), 2)
        switches = plan.switches_of(fabric)
        self.leaves = [s.name for s in switches if s.kind in LEAF_KINDS]
        self.spines = [s.name for s in switches if s.kind not in LEAF_KINDS]
        self._leaf = {name: i for i, name in enumerate(self.leaves)}
        self._spine = {name: i for i, name in enumerate(self.spines)}

    @cached_property
    def endpoints(self) -> list[Endpoint]:
        """Every assigned or unassigned server port and gateway port on a leaf of the fabric, in plan order."""
        rails = {p.link: p.rail for s in self.plan.servers.values() for p in s.ports}
        return [
            Endpoint(
                link.a.device,
                link.a.port,
                self._leaf[link.b.device],
                rails.get(link.id, 0),
                link.tenant,
                2 * k,
                2 * k + 1,
                link.speed,
            )
            for k, link in enumerate(self.links)
            if link.kind != FABRIC_LINK and link.b.device in self._leaf
        ]

    @cached_property
    def cables(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(leaves, spines, most parallel cables) of link numbers padded with -1, and how many there are."""
        count = np.zeros((len(self.leaves), max(1, len(self.spines))), dtype=np.int64)
        found: dict[tuple[int, int], list[int]] = {}
        for k, link in enumerate(self.links):
            if link.kind == FABRIC_LINK:
                found.setdefault((self._leaf[link.a.device], self._spine[link.b.device]), []).append(k)
        width = max((len(v) for v in found.values()), default=1)
        table = np.full((*count.shape, width), NO_LINK, dtype=np.int64)
        for (leaf, spine), ks in found.items():
            count[leaf, spine] = len(ks)
            table[leaf, spine, : len(ks)] = ks
        return table, count

    def paths(
        self,
        source: Sequence[int],
        target: Sequence[int],
        entropy: NDArray[np.uint64],
        seed: int = 0,
        polarised: bool = False,
    ) -> NDArray[np.int64]:
        """Return (flows, 4) directed links for flows between endpoints (by position), hashed by `entropy`.

        A flow between leaves that no spine joins has only -1 in the middle and `reachable` false; see `joined`.
        """
        ends = self._ends
        src, dst = np.asarray(source), np.asarray(target)
        paths = np.full((len(src), _HOPS), NO_LINK, dtype=np.int64)
        paths[:, 0], paths[:, 3] = ends[src, 1], ends[dst, 2]
        a, b = ends[src, 0], ends[dst, 0]
        far = np.nonzero(a != b)[0]
        if len(far) == 0 or not self.spines:
            return paths
        a, b = a[far], b[far]
        table, count = self.cables
        usable = np.where(count[b] > 0, count[a], 0)  # cables of the first leaf to spines that reach the second
        order = np.cumsum(usable, axis=1)
        total = np.maximum(order[:, -1], 1)
        near = np.zeros(len(far), dtype=np.uint64) if polarised else a.astype(np.uint64)
        first = mix(entropy[far] ^ mix(np.uint64(seed) + near))
        pick = (first % total.astype(np.uint64)).astype(np.int64)
        spine = np.minimum((order <= pick[:, None]).sum(axis=1), len(self.spines) - 1)
        lane = pick - (order[np.arange(len(far)), spine] - usable[np.arange(len(far)), spine])
        tier = near if polarised else np.uint64(1 << 32) + spine.astype(np.uint64)
        second = mix(entropy[far] ^ mix(np.uint64(seed) + tier))
        down = (second % np.maximum(count[b, spine], 1).astype(np.uint64)).astype(np.int64)
        joined = order[:, -1] > 0
        paths[far, 1] = np.where(joined, 2 * table[a, spine, lane], NO_LINK)
        paths[far, 2] = np.where(joined, 2 * table[b, spine, down] + 1, NO_LINK)
        return paths

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.array([(e.leaf, e.up, e.down) for e in self.endpoints], dtype=np.int64).reshape(-1, 3)

    def name_of(self, directed: int) -> str:
        """Name a directed link: where from and where to."""
        link = self.links[directed // 2]
        one, two = (link.a, link.b) if directed % 2 == 0 else (link.b, link.a)
        return f"{one.device} {one.port} -> {two.device} {two.port}"

    def tier_of(self, directed: int) -> str:
        """Say which tier a directed link is in: server to leaf, leaf to spine, spine to leaf, leaf to server."""
        link = self.links[directed // 2]
        upward = directed % 2 == 0
        if link.kind == FABRIC_LINK:
            return "leaf to spine" if upward else "spine to leaf"
        return "server to leaf" if upward else "leaf to server"
