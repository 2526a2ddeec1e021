"""Restore bursts: N nodes each pull M bytes of KV cache from a pool, each inside a window from its own start.

Model: fair shares of line rate times `efficiency` (98 % of 400 Gb/s is 49 GB/s of payload one way), computed anew each
time a transfer starts or ends; ECMP hashed for each QP; each reader spreads its QPs over the pool's ports.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.analysis.flows.maxmin import link_load, max_min
from fabric.analysis.flows.network import Network, mix
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fabric.plan import Plan

    Seconds = NDArray[np.float64]
    Positions = NDArray[np.int64]

MODEL = (
    "Max-min fair shares of 98 % of line rate, computed anew whenever a transfer starts or ends; each QP hashed on its "
    "own; done is counted from each node's own start"
)
LEFT_OUT = "DCQCN's ramp, PFC spread, other traffic, what storage, CPU and GPU memory can do"
GBPS_TO_BYTES = 1e9 / 8
_MOST_NODES = 20_000


class Arrivals(StrEnum):
    """When nodes start: all at once, evenly spread over a time, or at random in it (Poisson, given their number)."""

    TOGETHER = "together"
    EVEN = "even"
    POISSON = "poisson"


@dataclass(frozen=True, slots=True)
class Burst:
    """What is asked. `pool` servers hold the cache (default: storage on the fabric, else the last server).

    `pool_ports` limits the pool's ports (0: all), `reader_ports` is how many NIC ports each node reads with, `near`
    takes readers from the pool's own leaves first. `over_s` is the time that `arrivals` are spread over.
    """

    nodes: int
    size_bytes: float
    window_s: float
    fabric: str = ""
    pool: tuple[str, ...] = ()
    pool_ports: int = 0
    reader_ports: int = 1
    near: bool = False
    qps: int = 8
    arrivals: Arrivals = Arrivals.TOGETHER
    over_s: float = 0.0
    efficiency: float = 0.98
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Fix:
    """The burst played with one thing changed: what, the slowest node's time (s), and how many nodes are late."""

    change: str
    max_s: float
    late: int


@dataclass(frozen=True, slots=True)
class Restore:
    """How a burst goes. Times in seconds, demand in GB/s (10^9 bytes), ports of `port_gbps` line rate.

    `done_s` are the nodes' times from their own starts, in order of length; `all_done_s` is from the first start.
    """

    fabric: str
    burst: Burst
    demand_gb_s: float
    pool_ports: int
    pool_ports_needed: int
    port_gbps: int
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    all_done_s: float
    late: int
    binding: str
    binding_tier: str
    done_s: tuple[float, ...]
    fixes: tuple[Fix, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready data, with its model."""
        return {"model": MODEL, "left_out": LEFT_OUT, **asdict(self)}


def restore(plan: Plan, burst: Burst) -> Restore:
    """Play a burst and, when nodes are late, play it again with each thing that could help.

    Raises InputError for an unknown fabric or pool server, and when the site has not enough servers.
    """
    if burst.fabric and burst.fabric not in plan.fabrics:
        text = f"there is no fabric {burst.fabric}, only {', '.join(plan.fabrics)}"
        raise InputError([Problem("restore.fabric", f"site {plan.site}", text)])
    if burst.window_s <= 0:
        raise InputError([Problem("restore.window", "window", "must be longer than nothing", "write 1s or 500ms")])
    rdma = next((f.name for f in plan.fabrics.values() if f.qos is not None), next(iter(plan.fabrics)))
    network = Network(plan, burst.fabric or rdma)
    answer = _answer(network, burst)
    if not answer.late:
        return answer
    fixes = []
    for change, other in _alternatives(network, burst, answer):
        try:
            tried = _answer(network, other)
        except InputError:  # the site has not what the change needs
            continue
        fixes.append(Fix(change, tried.max_s, tried.late))
    return replace(answer, fixes=tuple(sorted(fixes, key=lambda f: (f.late, f.max_s))))


def _answer(network: Network, burst: Burst) -> Restore:
    readers, sources = _choose(network, burst)
    qps = burst.qps * burst.reader_ports
    target = np.array([reader[q % len(reader)] for reader in readers for q in range(qps)], dtype=np.int64)
    # every reader spreads its QPs over the pool's ports, so that a pool of many ports serves few readers at full rate
    spread = [sources[(k * burst.reader_ports + q) % len(sources)] for k in range(len(readers)) for q in range(qps)]
    entropy = mix(np.arange(len(target), dtype=np.uint64) + np.uint64(burst.seed << 32))
    paths = network.paths(np.array(spread, dtype=np.int64), target, entropy, burst.seed)
    starts = _starts(burst)
    ends, bound = play(paths, network.capacity * burst.efficiency, np.repeat(starts, qps), burst.size_bytes / qps)
    finish = ends.reshape(len(readers), qps).max(axis=1)
    done = np.sort(finish - starts)
    port = network.endpoints[sources[0]].speed
    demand = burst.nodes * burst.size_bytes / max(burst.window_s, burst.over_s)
    p50, p95, p99 = (float(p) for p in np.percentile(done, (50, 95, 99)))
    return Restore(
        fabric=network.fabric,
        burst=burst,
        demand_gb_s=demand / 1e9,
        pool_ports=len(sources),
        pool_ports_needed=math.ceil(round(demand / (port * burst.efficiency * GBPS_TO_BYTES), 6)),
        port_gbps=port,
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        max_s=float(done[-1]),
        all_done_s=float(finish.max()),
        late=int((done > burst.window_s * (1 + 1e-9)).sum()),
        binding=network.name_of(bound),
        binding_tier=network.tier_of(bound),
        done_s=tuple(float(t) for t in done),
    )


def _starts(burst: Burst) -> Seconds:
    if burst.arrivals is Arrivals.EVEN:
        return np.arange(burst.nodes, dtype=np.float64) * (burst.over_s / burst.nodes)
    if burst.arrivals is Arrivals.POISSON:
        # arrivals of a Poisson process, given how many there are, are uniform in the time
        times = np.sort(np.random.default_rng(burst.seed).uniform(0.0, burst.over_s, burst.nodes))
        return np.asarray(times - times[0])
    return np.zeros(burst.nodes)


def _alternatives(network: Network, burst: Burst, answer: Restore) -> Iterator[tuple[str, Burst]]:
    """What could help, as (words, the changed burst)."""
    if burst.pool_ports:
        ports = max(answer.pool_ports_needed, answer.pool_ports + 1)
        yield f"{ports} pool ports instead of {answer.pool_ports}", replace(burst, pool_ports=ports)
    held = list(dict.fromkeys(network.endpoints[i].device for i in _choose(network, burst)[1]))
    each = max(1, answer.pool_ports // len(held))
    more = max(1, math.ceil(answer.pool_ports_needed / each) - len(held))
    servers = dict.fromkeys(e.device for e in network.endpoints if e.device in network.plan.servers)
    spare = [name for name in reversed(servers) if name not in held][:more]
    words = f"{more} more pool server{'s' * (more > 1)} ({', '.join(spare[:3])}{', ...' * (len(spare) > 3)})"
    if len(spare) == more:
        ports = burst.pool_ports and (len(held) + more) * each
        yield words, replace(burst, pool=(*held, *spare), pool_ports=ports)
    yield "readers on the pool's leaves (placement)", replace(burst, near=True)
    yield f"{burst.reader_ports + 1} ports a reader", replace(burst, reader_ports=burst.reader_ports + 1)
    if burst.qps < 32:
        yield "32 QPs a port", replace(burst, qps=32)
    over = answer.all_done_s * 1.05
    spread = replace(burst, arrivals=Arrivals.EVEN, over_s=over)
    yield f"starts spread evenly over {over:.2f} s (staggering)", spread


def _choose(network: Network, burst: Burst) -> tuple[list[list[int]], list[int]]:
    """Endpoint positions: the ports of each reader, and those of the pool."""
    plan = network.plan
    _check_pool(network, burst.pool)
    ports: dict[str, list[int]] = {}
    for i, e in enumerate(network.endpoints):
        if e.device in plan.servers:
            ports.setdefault(e.device, []).append(i)
    chosen = set(burst.pool) or {d for d in ports if plan.servers[d].kind == "storage"}
    if not chosen and len(ports) > burst.nodes:
        chosen = {list(ports)[-1]}
    held = [i for device, mine in ports.items() if device in chosen for i in mine]
    if burst.pool_ports > len(held):
        text, fix = f"has {len(held)} ports on {network.fabric}, not {burst.pool_ports}", "ask for fewer --pool-ports"
        raise InputError([Problem("restore.pool", "pool", text, fix)])
    sources = held[: burst.pool_ports or None]
    free = [mine for device, mine in ports.items() if device not in chosen]
    if burst.near:
        leaves = {network.endpoints[i].leaf for i in sources}
        free.sort(key=lambda mine: network.endpoints[mine[0]].leaf not in leaves)
    readers = [mine[: burst.reader_ports] for mine in free if len(mine) >= burst.reader_ports][: burst.nodes]
    if len(readers) < burst.nodes or not sources or burst.nodes > _MOST_NODES:
        text = (
            f"fabric {network.fabric} has {len(readers)} readers and {len(sources)} pool ports for {burst.nodes} nodes"
        )
        if burst.pool_ports > len(sources) > 0:
            text += f", and {burst.pool_ports} pool ports are asked for"
        fix = f"ask for fewer nodes (at most {_MOST_NODES}), or name a pool"
        raise InputError([Problem("restore.too-few", f"site {plan.site}", text, fix)])
    return readers, sources


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


def play(paths: Positions, capacity: Seconds, starts: Seconds, size: float) -> tuple[Seconds, int]:
    """Play transfers to their end; return end times and the link that was full for the most bytes.

    `paths` are rows of link numbers padded with -1, `capacity` is in Gb/s, `starts` in seconds, `size` in bytes.
    """
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
