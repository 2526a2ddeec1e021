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
from fabric.plan import FABRIC_LINK, GATEWAY_LINK, LEAF_KINDS, SERVER_LINK, SPINE, SUPER_SPINE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fabric.plan import Plan

    Positions = NDArray[np.int64]

_HOPS = 6
_UP = ("server to leaf", "gateway to leaf", "gateway to spine", "leaf to spine", "spine to super-spine")
_TIERS = (*_UP, *(" to ".join(reversed(tier.split(" to "))) for tier in reversed(_UP)))
NO_SWITCH = -1
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
    """A NIC or gateway port on a leaf or spine: `up` carries what it sends, `down` what it receives (directed links).

    `leaf` and `spine` are positions among the fabric's leaves and spines, -1 for the one it is not on.
    """

    device: str
    port: str
    leaf: int
    spine: int
    rail: int
    tenant: str
    up: int
    down: int
    speed: int


@dataclass(frozen=True, slots=True)
class Cables:
    """(switches, places above, most parallel cables) of link numbers padded with -1, and how many there are."""

    table: Positions
    count: Positions


@dataclass(frozen=True, slots=True)
class _Hashing:
    """The flows' entropy, and what a switch makes of it: each tier and switch hashes with a seed of its own."""

    entropy: NDArray[np.uint64]
    seed: int
    polarised: bool

    def of(self, switch: Positions, tier: int) -> NDArray[np.uint64]:
        own = np.zeros(len(switch), dtype=np.uint64)
        if not self.polarised:
            own = switch.astype(np.uint64) + np.uint64(tier << 32)
        return mix(self.entropy ^ mix(np.uint64(self.seed) + own))

    def part(self, which: NDArray[np.bool_]) -> _Hashing:
        return _Hashing(self.entropy[which], self.seed, self.polarised)


def _one_hot(place: Positions, width: int) -> Positions:
    return np.equal(np.arange(width), place[:, None]).astype(np.int64)


class _Choices:
    """Cables to choose from: row r has `usable[r, p]` of them at place p. Flows are many and rows few."""

    def __init__(self, usable: Positions) -> None:
        order = np.cumsum(usable, axis=1)
        self.total = order[:, -1]
        self._width = usable.shape[1]
        self._before = (order - usable).reshape(-1)
        self._step = int(self.total.max(initial=0)) + 1
        self._edges = (order + self._step * np.arange(len(usable))[:, None]).reshape(-1)

    def pick(self, row: Positions, hashed: NDArray[np.uint64]) -> tuple[Positions, Positions, NDArray[np.bool_]]:
        """Choose by hash for flows of these rows: (place, which of its cables, whether there is any)."""
        total = self.total[row]
        pick = (hashed % np.maximum(total, 1).astype(np.uint64)).astype(np.int64)
        at = np.searchsorted(self._edges, pick + self._step * row, side="right")
        place = np.where(total > 0, at - self._width * row, 0)
        return place, np.where(total > 0, pick - self._before[self._width * row + place], 0), total > 0


def _distinct(*columns: Positions) -> tuple[list[Positions], Positions]:
    """The distinct rows of some columns of small numbers (-1 and up), column by column, and each row's place there."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        key = key * (int(column.max(initial=0)) + 2) + column + 1
    # counting is linear in flows; sorting them is not
    first = np.full(int(key.max(initial=0)) + 1, -1, dtype=np.int64)
    first[key] = np.arange(len(key))
    places = np.nonzero(first >= 0)[0]
    number = np.empty(len(first), dtype=np.int64)
    number[places] = np.arange(len(places))
    return [column[first[places]] for column in columns], number[key]


class Network:
    """One fabric. Directed link 2k goes from end a to end b of `links[k]`, 2k + 1 the other way. Gb/s line rate.

    A flow's path has up to six links: NIC to leaf, leaf to spine, spine to super-spine and back where pods
    differ, spine to leaf, leaf to NIC. A gateway attached to a spine has that spine as its `Endpoint.spine`.
    """

    def __init__(self, plan: Plan, fabric: str) -> None:
        self.plan = plan
        self.fabric = fabric
        kinds = {FABRIC_LINK, SERVER_LINK, GATEWAY_LINK}
        self.links = [link for link in plan.links.values() if link.fabric == fabric and link.kind in kinds]
        self.capacity = np.repeat(np.array([float(link.speed) for link in self.links]), 2)
        switches = plan.switches_of(fabric)
        self.leaves = [s.name for s in switches if s.kind in LEAF_KINDS]
        self.spines = [s.name for s in switches if s.kind == SPINE]
        self.supers = [s.name for s in switches if s.kind == SUPER_SPINE]
        self._leaf = {name: i for i, name in enumerate(self.leaves)}
        self._spine = {name: i for i, name in enumerate(self.spines)}
        self.pods = list(dict.fromkeys(s.pod for s in switches if s.kind == SPINE)) or [""]
        pod = {name: i for i, name in enumerate(self.pods)}
        self.pod_of_leaf = np.array([pod.get(plan.switches[name].pod, 0) for name in self.leaves], dtype=np.int64)
        self.planes = max(1, len(self.spines) // len(self.pods))

    @cached_property
    def endpoints(self) -> list[Endpoint]:
        """Every assigned or unassigned server port and gateway port of the fabric, in plan order."""
        rails = {p.link: p.rail for s in self.plan.servers.values() for p in s.ports}
        return [
            Endpoint(
                link.a.device,
                link.a.port,
                self._leaf.get(link.b.device, NO_SWITCH),
                self._spine.get(link.b.device, NO_SWITCH),
                rails.get(link.id, 0),
                link.tenant,
                2 * k,
                2 * k + 1,
                link.speed,
            )
            for k, link in enumerate(self.links)
            if link.kind != FABRIC_LINK
        ]

    @cached_property
    def tiers(self) -> dict[str, Positions]:
        """Directed links by tier, in the order a packet meets them."""
        found: dict[str, list[int]] = {tier: [] for tier in _TIERS}
        for directed in range(len(self.capacity)):
            found[self.tier_of(directed)].append(directed)
        return {tier: np.array(members, dtype=np.int64) for tier, members in found.items() if members}

    @cached_property
    def cables(self) -> Cables:
        """Leaves' cables to the spines of their pod: by leaf and plane."""
        at = {name: i % self.planes for name, i in self._spine.items()}
        return self._cables(self._leaf, at, self.planes)

    @cached_property
    def super_cables(self) -> Cables:
        """Spines' cables to the super-spines of their plane: by spine and place in the plane. Empty with two tiers."""
        width = max(1, len(self.supers) // self.planes)
        at = {name: i % width for i, name in enumerate(self.supers)}
        return self._cables(self._spine, at, width)

    def _cables(self, below: dict[str, int], above: dict[str, int], width: int) -> Cables:
        found: dict[tuple[int, int], list[int]] = {}
        for k, link in enumerate(self.links):
            if link.kind == FABRIC_LINK and link.a.device in below and link.b.device in above:
                found.setdefault((below[link.a.device], above[link.b.device]), []).append(k)
        lanes = max((len(v) for v in found.values()), default=1)
        table = np.full((len(below), width, lanes), NO_LINK, dtype=np.int64)
        count = np.zeros((len(below), width), dtype=np.int64)
        for place, ks in found.items():
            count[place] = len(ks)
            table[place][: len(ks)] = ks
        return Cables(table, count)

    def paths(
        self, source: Positions, target: Positions, entropy: NDArray[np.uint64], seed: int = 0, polarised: bool = False
    ) -> Positions:
        """Return (flows, 6) directed links for flows between endpoints (by position), hashed by `entropy`.

        A flow between switches that nothing joins has only -1 in the middle.
        """
        hops = self.first_hops
        paths = np.full((len(source), _HOPS), NO_LINK, dtype=np.int64)
        paths[:, 0], paths[:, -1] = self.up_of[source], self.down_of[target]
        far = np.nonzero((hops[source] != hops[target]).any(axis=1))[0]
        if len(far) and self.spines:
            hashing = _Hashing(entropy[far], seed, polarised)
            paths[far, 1:-1] = self._middle(hops[source[far]], hops[target[far]], hashing)
        return paths

    def _middle(self, one: Positions, two: Positions, hashing: _Hashing) -> Positions:
        """The links between two different switches (rows of `first_hops`), (flows, 4)."""
        found = np.full((len(one), 4), NO_LINK, dtype=np.int64)
        columns, row = _distinct(*one.T, *two.T)
        choices = _Choices(self._usable(np.stack(columns[:2], axis=1), np.stack(columns[2:], axis=1)))
        a, b = one[:, 0], two[:, 0]
        plane, lane, joined = choices.pick(row, hashing.of(a, 0))
        rising, falling = joined & (a >= 0), joined & (b >= 0)
        table, count = self.cables.table, self.cables.count
        found[rising, 0] = 2 * table[a, plane, lane][rising]
        pods = self.pod_of(one), self.pod_of(two)
        spine_a, spine_b = pods[0] * self.planes + plane, pods[1] * self.planes + plane
        over = joined & (pods[0] != pods[1])
        if self.supers and over.any():
            found[over, 1:3] = self._over(spine_a[over], spine_b[over], hashing.part(over))
        lane = (hashing.of(spine_b, 3) % np.maximum(count[b, plane], 1).astype(np.uint64)).astype(np.int64)
        found[falling, 3] = 2 * table[b, plane, lane][falling] + 1
        return found

    def _usable(self, one: Positions, two: Positions) -> Positions:
        """How many cables of the first switch lead to the second, by plane."""
        (a, at_a), (b, at_b) = one.T, two.T
        near, away = self.cables.count[a], self.cables.count[b]
        usable = np.where(away > 0, near, 0)
        # an end on a spine has no choice of plane
        usable = np.where((at_b >= 0)[:, None], near * _one_hot(at_b % self.planes, self.planes), usable)
        usable = np.where((at_a >= 0)[:, None], _one_hot(at_a % self.planes, self.planes), usable)
        pods = self.pod_of(one), self.pod_of(two)
        if self.supers:
            have = np.greater(self.super_cables.count.reshape(len(self.pods), self.planes, -1), 0)
            joined = np.any(have[pods[0]] & have[pods[1]], axis=2) | (pods[0] == pods[1])[:, None]
            usable = np.where(joined, usable, 0)
        return usable

    def _over(self, one: Positions, two: Positions, hashing: _Hashing) -> Positions:
        """Up from spine `one` to a super-spine and down to spine `two`, (flows, 2)."""
        table, count = self.super_cables.table, self.super_cables.count
        (near, away), row = _distinct(one, two)
        choices = _Choices(np.where(count[away] > 0, count[near], 0))
        above, lane, _ = choices.pick(row, hashing.of(one, 1))
        down = (hashing.of(above, 2) % np.maximum(count[two, above], 1).astype(np.uint64)).astype(np.int64)
        return np.stack([2 * table[one, above, lane], 2 * table[two, above, down] + 1], axis=1)

    def pod_of(self, hops: Positions) -> Positions:
        """The pod (position in `pods`) of each first hop, rows of `first_hops`."""
        leaf, spine = hops[:, 0], hops[:, 1]
        return np.where(leaf >= 0, self.pod_of_leaf[leaf], spine // self.planes)

    def width_of(self, cables: Cables) -> NDArray[np.float64]:
        """What each switch below has in all towards the tier above, Gb/s."""
        if not self.links:
            return np.zeros(len(cables.table))
        width: NDArray[np.float64] = np.where(cables.table >= 0, self.capacity[2 * cables.table], 0.0).sum(axis=(1, 2))
        return width

    @property
    def first_hops(self) -> Positions:
        """(endpoints, 2): leaf and spine that each endpoint is on, -1 for the one it is not on."""
        return self._ends[:, :2]

    @property
    def up_of(self) -> Positions:
        """The directed link on which each endpoint sends."""
        return self._ends[:, 2]

    @property
    def down_of(self) -> Positions:
        """The directed link on which each endpoint receives."""
        return self._ends[:, 3]

    @cached_property
    def _ends(self) -> Positions:
        """(endpoints, 4): leaf, spine, link up, link down."""
        return np.array([(e.leaf, e.spine, e.up, e.down) for e in self.endpoints], dtype=np.int64).reshape(-1, 4)

    def name_of(self, directed: int) -> str:
        """Name a directed link: where from and where to."""
        link = self.links[directed // 2]
        one, two = (link.a, link.b) if directed % 2 == 0 else (link.b, link.a)
        return f"{one.device} {one.port} -> {two.device} {two.port}"

    def tier_of(self, directed: int) -> str:
        """Say which tier a directed link is in: `server to leaf`, `leaf to spine`, ..., `gateway to spine`."""
        link = self.links[directed // 2]
        upward = directed % 2 == 0
        if link.kind == FABRIC_LINK:
            below, above = ("leaf", "spine") if link.a.device in self._leaf else ("spine", "super-spine")
            return f"{below} to {above}" if upward else f"{above} to {below}"
        end = "server" if link.kind == SERVER_LINK else "gateway"
        switch = "leaf" if link.b.device in self._leaf else "spine"
        return f"{end} to {switch}" if upward else f"{switch} to {end}"
