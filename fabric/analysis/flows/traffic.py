"""Traffic patterns, and what they get: fair rates with hashed ECMP against perfect balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabric.analysis.flows.maxmin import NO_LINK, link_load, max_min
from fabric.analysis.flows.network import mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fabric.analysis.flows.network import Network

    Positions = NDArray[np.int64]
    Rates = NDArray[np.float64]

PATTERNS = ("all-to-all", "rail", "prefill-decode", "pool-decode", "ingress")
_SHIFTS, _SHIFTED_PAIRS = 4, 4096
_FEW_FLOWS = 100_000


@dataclass(frozen=True, slots=True)
class TierLoad:
    """Load on the links of one tier and direction, Gb/s. `mean` is over all `links` of it, `full` counts those at 99 %.

    `fullest` names the fullest with their load and capacity.
    """

    tier: str
    links: int
    mean: float
    most: float
    full: int
    fullest: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pattern gets from a network. Rates in Gb/s line rate.

    `ideal` is the sum of rates at perfect balance, `hashed` the mean over seeds for the number of QPs; `worst` is the
    lowest rate of one pair. `loads` says how full the links of each tier are. `local` is the share of
    pairs that stay on one leaf (first-hop locality).
    """

    pattern: str
    qps: int
    pairs: int
    local: float
    ideal: float
    hashed: float
    worst: float
    loads: tuple[TierLoad, ...]
    seeds: int

    @property
    def efficiency(self) -> float:
        """Hashed over ideal, 0 to 1."""
        return self.hashed / self.ideal if self.ideal else 0.0


def pairs_of(network: Network, pattern: str, seed: int = 0) -> list[tuple[int, int]]:
    """Return (source, target) endpoint positions of a pattern. May be empty.

    Every NIC port takes part. All-to-all is played as up to four random shifts of the ring of NICs, one on large sites:
    thinning the NICs out instead would leave the links above them empty.
    """
    kinds = network.plan.kind_of
    ends = list(enumerate(network.endpoints))
    servers = [i for i, e in ends if kinds[e.device] == "server"]
    gateways = [i for i, e in ends if kinds[e.device] == "gateway"]
    ring = _by_position(network, servers)
    if pattern == "all-to-all":
        rng = np.random.default_rng(seed)
        most = min(_SHIFTS, max(1, _SHIFTED_PAIRS // max(1, len(ring))))
        shifts = rng.permutation(np.arange(1, max(2, len(ring))))[:most]
        pairs = [(ring[i], ring[(i + int(s)) % len(ring)]) for s in shifts for i in range(len(ring))]
    elif pattern == "rail":
        pairs = _rail_pairs(network, servers)
    elif pattern == "prefill-decode":
        pairs = _halves(network, servers)
    elif pattern == "pool-decode":
        pairs = _pool_pairs(network, ring)
    else:
        pairs = _ingress_pairs(network, gateways, ring)
    return [(a, b) for a, b in pairs if network.endpoints[a].device != network.endpoints[b].device]


def _by_position(network: Network, servers: list[int]) -> list[int]:
    return sorted(servers, key=lambda i: (network.endpoints[i].rail, i))


def _halves(network: Network, servers: list[int]) -> list[tuple[int, int]]:
    """The first half of the servers sends to the second half, NIC by NIC."""
    ports: dict[str, list[int]] = {}
    for i in servers:
        ports.setdefault(network.endpoints[i].device, []).append(i)
    names = list(ports)
    half = len(names) // 2
    sides = zip(names[:half], names[half : 2 * half], strict=True)
    return [pair for one, two in sides for pair in zip(ports[one], ports[two], strict=False)]


def _pool_pairs(network: Network, ring: list[int]) -> list[tuple[int, int]]:
    """Storage servers, or the last eighth of the servers, send to all others."""
    device = {i: network.endpoints[i].device for i in ring}
    names = list(dict.fromkeys(device[i] for i in sorted(ring)))
    storage = {n for n in names if network.plan.servers[n].kind == "storage"}
    chosen = storage or set(names[-max(1, len(names) // 8) :])
    pool = [i for i in ring if device[i] in chosen]
    readers = [i for i in ring if device[i] not in chosen]
    return [(pool[k % len(pool)], reader) for k, reader in enumerate(readers)]


def _ingress_pairs(network: Network, gateways: list[int], ring: list[int]) -> list[tuple[int, int]]:
    """The active gateway of each tenant's exposures sends to the tenant's NICs; every gateway where none is exposed."""
    plan = network.plan
    ports: dict[str, list[int]] = {}
    for i in gateways:
        ports.setdefault(network.endpoints[i].device, []).append(i)
    active: dict[str, list[int]] = {}
    for tenant in plan.tenants.values():
        for group in dict.fromkeys(e.group for e in tenant.exposures):
            first = next((g for g in plan.groups[group].gateways if g in ports), None)
            active.setdefault(tenant.name, []).extend(ports[first] if first else [])
    sources = [active.get(network.endpoints[i].tenant, [] if any(active.values()) else gateways) for i in ring]
    return [(mine[k % len(mine)], server) for k, (mine, server) in enumerate(zip(sources, ring, strict=True)) if mine]


def _rail_pairs(network: Network, servers: list[int]) -> list[tuple[int, int]]:
    rails: dict[int, list[int]] = {}
    for i in servers:
        rails.setdefault(network.endpoints[i].rail, []).append(i)
    return [(ring[k], ring[(k + 1) % len(ring)]) for ring in rails.values() if len(ring) > 1 for k in range(len(ring))]


@dataclass(frozen=True, slots=True)
class Played:
    """The pairs of a pattern on a network, and what they get at perfect balance (sum of rates, Gb/s)."""

    network: Network
    pattern: str
    source: Positions
    target: Positions
    ideal: float

    @classmethod
    def on(cls, network: Network, pattern: str) -> Played | None:
        """Prepare a pattern; None when the fabric has no such pair."""
        pairs = pairs_of(network, pattern)
        if not pairs:
            return None
        source, target = np.array(pairs, dtype=np.int64).T
        return cls(network, pattern, source, target, float(ideal_rates(network, source, target).sum()))

    def run(self, qps: int, seeds: int = 3, polarised: bool = False, links: int = 1) -> Outcome:
        """Play it with `qps` QPs a pair, hashed with several seeds.

        Beyond 100,000 QPs one seed is enough: so many draws are a mean already. `links` is how many of the fullest
        links of each tier are named.
        """
        network, source, target = self.network, self.source, self.target
        if len(source) * qps > _FEW_FLOWS:
            seeds = 1
        totals, lows = [], []
        load = np.zeros(len(network.capacity))
        for seed in range(seeds):
            paths, rates = hashed_rates(network, source, target, qps, seed, polarised)
            per_pair = rates.reshape(len(source), qps).sum(axis=1)
            totals.append(float(per_pair.sum()))
            lows.append(float(per_pair.min()))
            load += link_load(paths, rates, len(network.capacity)) / seeds
        at = network.first_hops
        return Outcome(
            self.pattern,
            qps,
            len(source),
            float((at[source] == at[target]).all(axis=1).mean()),
            self.ideal,
            float(np.mean(totals)),
            min(lows),
            tier_loads(network, load, links),
            seeds,
        )


def tier_loads(network: Network, load: Rates, links: int) -> tuple[TierLoad, ...]:
    """Return how full each tier's links are, from the servers up and down again, naming `links` of the fullest."""
    found = []
    for tier, members in network.tiers.items():
        mine, size = load[members], network.capacity[members]
        if not mine.any():
            continue
        fill = mine / size
        top = members[np.argsort(-fill, kind="stable")[:links]]
        names = tuple((network.name_of(int(k)), float(load[k]), float(network.capacity[k])) for k in top)
        full = int((fill >= 0.99).sum())
        found.append(TierLoad(tier, len(members), float(mine.mean()), float(mine.max()), full, names))
    return tuple(found)


def hashed_rates(
    network: Network, source: Positions, target: Positions, qps: int, seed: int, polarised: bool = False
) -> tuple[Positions, Rates]:
    """Return (paths, rate of each QP), QPs of a pair beside each other."""
    src, dst = np.repeat(source, qps), np.repeat(target, qps)
    entropy = mix(np.arange(len(src), dtype=np.uint64) + np.uint64(seed) * np.uint64(1 << 40))
    paths = network.paths(src, dst, entropy, seed, polarised)
    return paths, max_min(paths, network.capacity)


def ideal_rates(network: Network, source: Positions, target: Positions) -> Rates:
    """Return each pair's fair rate when each leaf has one wide cable to the spines, and each pod to the super-spines.

    A gateway on a spine uses no cable of a leaf of its own.
    """
    leaf_width = network.width_of(network.cables)
    pods = len(network.pods)
    pod_width = (
        network.width_of(network.super_cables).reshape(pods, -1).sum(axis=1) if network.supers else np.zeros(pods)
    )
    capacity = np.concatenate([network.capacity, leaf_width, leaf_width, pod_width, pod_width])
    one, two = network.first_hops[source], network.first_hops[target]
    far = (one != two).any(axis=1)
    over = far & (network.pod_of(one) != network.pod_of(two)) & bool(network.supers)
    base = len(network.capacity)
    leaves, pod_base = len(leaf_width), base + 2 * len(leaf_width)
    paths = np.stack(
        [
            network.up_of[source],
            np.where(far & (one[:, 0] >= 0), base + one[:, 0], NO_LINK),
            np.where(over, pod_base + network.pod_of(one), NO_LINK),
            np.where(over, pod_base + pods + network.pod_of(two), NO_LINK),
            np.where(far & (two[:, 0] >= 0), base + leaves + two[:, 0], NO_LINK),
            network.down_of[target],
        ],
        axis=1,
    )
    return max_min(paths, capacity)
