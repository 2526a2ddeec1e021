"""Traffic patterns, and what they get: fair rates with hashed ECMP against perfect balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fabric.analysis.flows.maxmin import link_load, max_min
from fabric.analysis.flows.network import mix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fabric.analysis.flows.network import Network

    Positions = NDArray[np.int64]
    Rates = NDArray[np.float64]

PATTERNS = ("all-to-all", "rail", "prefill-decode", "pool-decode", "ingress")
_MOST_PAIRS = 4096


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pattern gets from a network. Rates in Gb/s line rate.

    `ideal` is the sum of rates at perfect balance, `hashed` the mean over seeds for the number of QPs; `worst` is the
    lowest rate of one pair. `busiest` names the fullest links with their load and capacity. `local` is the share of
    pairs that stay on one leaf.
    """

    pattern: str
    qps: int
    pairs: int
    local: float
    ideal: float
    hashed: float
    worst: float
    busiest: tuple[tuple[str, float, float], ...]

    @property
    def efficiency(self) -> float:
        """Hashed over ideal, 0 to 1."""
        return self.hashed / self.ideal if self.ideal else 0.0


def pairs_of(network: Network, pattern: str, seed: int = 0) -> list[tuple[int, int]]:
    """Return (source, target) endpoint positions of a pattern; at most 4,096 pairs, evenly taken. May be empty."""
    kinds = network.plan.kind_of
    ends = list(enumerate(network.endpoints))
    servers = [i for i, e in ends if kinds[e.device] == "server"]
    gateways = [i for i, e in ends if kinds[e.device] == "gateway"]
    ring = _by_position(network, servers)
    if pattern == "all-to-all":
        rng = np.random.default_rng(seed)
        shifts = rng.permutation(np.arange(1, max(2, len(ring))))[:4]
        pairs = [(ring[i], ring[(i + int(s)) % len(ring)]) for s in shifts for i in range(len(ring))]
    elif pattern == "rail":
        pairs = _rail_pairs(network, servers)
    elif pattern == "prefill-decode":
        pairs = _halves(network, servers)
    elif pattern == "pool-decode":
        pairs = _pool_pairs(network, ring)
    else:
        pairs = [(gateways[k % len(gateways)], server) for k, server in enumerate(ring)] if gateways else []
    pairs = [(a, b) for a, b in pairs if network.endpoints[a].device != network.endpoints[b].device]
    step = max(1, -(-len(pairs) // _MOST_PAIRS))
    return pairs[::step]


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


def _rail_pairs(network: Network, servers: list[int]) -> list[tuple[int, int]]:
    rails: dict[int, list[int]] = {}
    for i in servers:
        rails.setdefault(network.endpoints[i].rail, []).append(i)
    return [(ring[k], ring[(k + 1) % len(ring)]) for ring in rails.values() if len(ring) > 1 for k in range(len(ring))]


def run(network: Network, pattern: str, qps: int, seeds: int = 3, polarised: bool = False) -> Outcome | None:
    """Run a pattern with `qps` QPs a pair, hashed with several seeds; None when the fabric has no such pair."""
    pairs = pairs_of(network, pattern)
    if not pairs:
        return None
    source, target = (np.array(side, dtype=np.int64) for side in zip(*pairs, strict=True))
    totals, lows = [], []
    load = np.zeros(len(network.capacity))
    for seed in range(seeds):
        rates = hashed_rates(network, source, target, qps, seed, polarised)
        paths, qp_rates = rates
        per_pair = qp_rates.reshape(len(pairs), qps).sum(axis=1)
        totals.append(float(per_pair.sum()))
        lows.append(float(per_pair.min()))
        load += link_load(paths, qp_rates, len(network.capacity)) / seeds
    fill = np.divide(load, network.capacity)
    top = np.argsort(-fill, kind="stable")[:5]
    busiest = tuple((network.name_of(int(k)), float(load[k]), float(network.capacity[k])) for k in top if load[k] > 0)
    leaves = np.array([e.leaf for e in network.endpoints])
    local = float((leaves[source] == leaves[target]).mean())
    return Outcome(
        pattern,
        qps,
        len(pairs),
        local,
        ideal_total(network, source, target),
        float(np.mean(totals)),
        min(lows),
        busiest,
    )


def hashed_rates(
    network: Network, source: Positions, target: Positions, qps: int, seed: int, polarised: bool = False
) -> tuple[Positions, Rates]:
    """Return (paths, rate of each QP), QPs of a pair beside each other."""
    src, dst = np.repeat(source, qps), np.repeat(target, qps)
    entropy = mix(np.arange(len(src), dtype=np.uint64) + np.uint64(seed) * np.uint64(1 << 40))
    paths = network.paths(list(src), list(dst), entropy, seed, polarised)
    return paths, max_min(paths, network.capacity)


def ideal_total(network: Network, source: Positions, target: Positions) -> float:
    """Return the sum of fair rates when every leaf's cables to the spines are one wide cable."""
    return float(ideal_rates(network, source, target).sum())


def ideal_rates(network: Network, source: Positions, target: Positions) -> Rates:
    """Return each pair's fair rate when every leaf's cables to the spines are one wide cable."""
    table, _ = network.cables
    leaves = len(network.leaves)
    sizes = (
        np.where(table >= 0, network.capacity[2 * table], 0.0).sum(axis=(1, 2))
        if len(network.links)
        else np.zeros(leaves)
    )
    links = len(network.capacity)
    capacity = np.concatenate([network.capacity, sizes, sizes])
    ends = np.array([(e.leaf, e.up, e.down) for e in network.endpoints], dtype=np.int64)
    a, b = ends[source, 0], ends[target, 0]
    far = a != b
    paths = np.stack(
        [ends[source, 1], np.where(far, links + a, -1), np.where(far, links + leaves + b, -1), ends[target, 2]], axis=1
    )
    return max_min(paths, capacity)
