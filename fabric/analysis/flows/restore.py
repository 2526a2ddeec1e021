"""Restore bursts: N nodes each pull M bytes of KV cache from a pool, inside a window.

Model: fair shares of line rate times `efficiency` (98 % of 400 Gb/s is 49 GB/s of payload one way), recomputed each
time a transfer ends; ECMP hashed for each QP. Left out: start-up of DCQCN, PFC spreading, what storage itself can read.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.analysis.flows.maxmin import link_load, max_min
from fabric.analysis.flows.network import Network, mix
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.plan import Plan

GBPS_TO_BYTES = 1e9 / 8


@dataclass(frozen=True, slots=True)
class Restore:
    """How a burst goes. Times in seconds from the first start, demand in GB/s (10^9 bytes), ports of `port_gbps`."""

    fabric: str
    nodes: int
    size_bytes: float
    window_s: float
    demand_gb_s: float
    pool_ports: int
    pool_ports_needed: int
    port_gbps: int
    qps: int
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    late: int
    binding: str
    binding_tier: str
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready data."""
        return asdict(self)


def restore(
    plan: Plan,
    nodes: int,
    size_bytes: float,
    window_s: float,
    *,
    fabric: str = "",
    pool: tuple[str, ...] = (),
    pool_ports: int = 0,
    qps: int = 8,
    stagger_s: float = 0.0,
    efficiency: float = 0.98,
    seed: int = 0,
) -> Restore:
    """Answer a burst of `nodes` readers of `size_bytes` each that should end within `window_s`.

    Readers are the first compute servers of the fabric (default: the one with RDMA), one port each. The pool is the
    servers in `pool`, else storage servers on the fabric, else the last servers; `pool_ports` limits its ports.
    `stagger_s` spreads the starts evenly over that time. Raises InputError when the site has not enough servers.
    """
    if fabric and fabric not in plan.fabrics:
        text = f"there is no fabric {fabric}, only {', '.join(plan.fabrics)}"
        raise InputError([Problem("restore.fabric", f"site {plan.site}", text)])
    if window_s <= 0:
        raise InputError([Problem("restore.window", "window", "must be longer than nothing", "write 1s or 500ms")])
    name = fabric or next((f.name for f in plan.fabrics.values() if f.qos is not None), next(iter(plan.fabrics)))
    network = Network(plan, name)
    readers, sources = _choose(network, nodes, pool, pool_ports)
    src = np.array([sources[k % len(sources)] for k in range(len(readers))], dtype=np.int64)
    # every reader spreads its QPs over the pool's ports, so that a pool of many ports serves few readers at full rate
    spread = np.array(
        [[sources[(k + q) % len(sources)] for q in range(qps)] for k in range(len(readers))], dtype=np.int64
    )
    dst = np.repeat(np.array(readers, dtype=np.int64), qps)
    entropy = mix(np.arange(len(dst), dtype=np.uint64) + np.uint64(seed << 32))
    paths = network.paths(spread.reshape(-1), dst, entropy, seed)
    starts = np.linspace(0.0, stagger_s, len(readers)) if stagger_s else np.zeros(len(readers))
    ends, bound = play(paths, network.capacity * efficiency, np.repeat(starts, qps), size_bytes / qps)
    finish = ends.reshape(len(readers), qps).max(axis=1)
    port = network.endpoints[int(src[0])].speed
    demand = nodes * size_bytes / window_s
    needed = math.ceil(round(demand / (port * efficiency * GBPS_TO_BYTES), 6))
    late = int((finish > window_s * (1 + 1e-9)).sum())
    tier = network.tier_of(bound)
    return Restore(
        name,
        nodes,
        size_bytes,
        window_s,
        demand / 1e9,
        len(sources),
        needed,
        port,
        qps,
        float(np.percentile(finish, 50)),
        float(np.percentile(finish, 95)),
        float(np.percentile(finish, 99)),
        float(finish.max()),
        late,
        network.name_of(bound),
        tier,
        _advice(late, tier, len(sources), needed, nodes),
    )


def _choose(network: Network, nodes: int, pool: tuple[str, ...], pool_ports: int) -> tuple[list[int], list[int]]:
    plan = network.plan
    _check_pool(network, pool)
    servers = [i for i, e in enumerate(network.endpoints) if e.device in plan.servers]
    storage = {n for n, s in plan.servers.items() if s.kind == "storage"}
    first: dict[str, int] = {}
    for i in servers:
        first.setdefault(network.endpoints[i].device, i)
    chosen = set(pool) or {d for d in first if d in storage}
    if not chosen and len(first) > nodes:
        chosen = {list(first)[-1]}
    readers = [i for d, i in first.items() if d not in chosen][:nodes]
    sources = [i for i in servers if network.endpoints[i].device in chosen]
    if len(readers) < nodes or not sources:
        text = f"fabric {network.fabric} has {len(readers)} readers and {len(sources)} pool ports for {nodes} nodes"
        raise InputError([Problem("restore.too-few", f"site {plan.site}", text, "ask for fewer nodes, or name a pool")])
    return readers, sources[: pool_ports or None]


def _check_pool(network: Network, pool: tuple[str, ...]) -> None:
    have = {e.device for e in network.endpoints} & network.plan.servers.keys()
    problems = [
        Problem(
            "restore.pool",
            f"pool server {name}",
            f"has no port in fabric {network.fabric}" if name in network.plan.servers else "is no server of this site",
            f"servers of this fabric: {', '.join([*sorted(have)[:3], '...'])}",
        )
        for name in pool
        if name not in have
    ]
    if problems:
        raise InputError(problems)


def play(paths: np.ndarray, capacity: np.ndarray, starts: np.ndarray, size: float) -> tuple[np.ndarray, int]:
    """Play transfers to their end; return end times and the link that was full for the most bytes."""
    left = np.full(len(paths), size)
    ends = np.zeros(len(paths))
    pressure = np.zeros(len(capacity))
    now = 0.0
    while True:
        waiting = (starts > now) & (left > 0)
        active = (left > 0) & ~waiting
        if not active.any():
            if not waiting.any():
                return ends, int(pressure.argmax())
            now = float(starts[waiting].min())
            continue
        rates = np.zeros(len(paths))
        rates[active] = max_min(paths[active], capacity) * GBPS_TO_BYTES
        step = float((left[active] / rates[active]).min())
        if waiting.any():
            step = min(step, float(starts[waiting].min()) - now)
        load = link_load(paths[active], rates[active], len(capacity)) / GBPS_TO_BYTES
        pressure += np.where(load >= capacity * 0.999, load * step, 0.0)
        left[active] -= rates[active] * step
        now += step
        over = active & (left <= size * 1e-9)
        left[over], ends[over] = 0.0, now


def _advice(late: int, tier: str, ports: int, needed: int, nodes: int) -> str:
    if not late:
        return "ends inside the window"
    if tier == "server to leaf":
        if ports < needed:
            return f"the pool's ports bind: {needed} are needed, it uses {ports}; add pool ports or stagger the starts"
        return "the pool's ports bind though there are enough: spread readers over them, or stagger the starts"
    if tier == "leaf to server":
        return f"the readers' own ports bind: use more NICs a reader than one for these {nodes} nodes"
    return "leaf-spine links bind: put pool and readers on one leaf, or use more QPs"
