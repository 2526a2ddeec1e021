"""Capacity of a site, from the plan alone: tiers, patterns, gateways, what is left for growth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabric.analysis.flows.network import Network
from fabric.analysis.flows.traffic import PATTERNS, Outcome, run
from fabric.plan import FABRIC_LINK, LEAF_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Plan

PORTS_PER_ADDRESS = 64_512  # 65,536 less the well-known 1,024
MODEL = (
    "Max-min fair shares of line rate; hashed ECMP is the mean of three seeds. Left out: queueing, DCQCN, PFC spread, "
    "CPU of gateways and storage."
)


@dataclass(frozen=True, slots=True)
class Tier:
    """Bandwidth of a fabric's leaves, Gb/s one way. `ratio` is down over up of the worst leaf (1.0 is non-blocking).

    `bisection` is the bandwidth between two halves of the leaves; `endpoint` the sum of all NIC ports.
    """

    fabric: str
    leaves: int
    spines: int
    endpoints: int
    down: int
    up: int
    ratio: float
    bisection: int
    spare_ports: int


@dataclass(frozen=True, slots=True)
class GatewayRoom:
    """What the gateways carry. `flows` is the smaller of NAT ports and the conntrack table, per protocol.

    `new_per_s` is how many new flows a second that sustains when each is held for its life and the idle timeout.
    """

    tenant: str
    exposure: str
    mode: str
    addresses: int
    nat_ports: int
    idle_timeout_s: int
    life_s: float
    new_per_s: float
    asked_per_s: float
    enough: bool


@dataclass(frozen=True, slots=True)
class Capacity:
    """Everything `kvfabric capacity` says."""

    site: str
    tiers: tuple[Tier, ...]
    outcomes: tuple[tuple[str, Outcome], ...]
    gateways: tuple[GatewayRoom, ...]
    gateway_gbps: int
    conntrack: int
    pools: tuple[tuple[str, str, int, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready data, with the model it was computed by."""
        outcomes = [{"fabric": f, "efficiency": round(o.efficiency, 4), **asdict(o)} for f, o in self.outcomes]
        return {"model": MODEL, **asdict(self), "outcomes": outcomes, "layers": layers(self)}


def tiers(plan: Plan) -> list[Tier]:
    """Return the tier figures of each fabric."""
    found = []
    for fabric in plan.fabrics:
        switches = plan.switches_of(fabric)
        leaves = [s.name for s in switches if s.kind in LEAF_KINDS]
        up, down, ends = dict.fromkeys(leaves, 0), dict.fromkeys(leaves, 0), 0
        for link in plan.links.values():
            if link.fabric != fabric:
                continue
            if link.kind == FABRIC_LINK:
                up[link.a.device] += link.speed
            elif link.b.device in down:
                down[link.b.device] += link.speed
                ends += 1
        ratios = [down[leaf] / up[leaf] for leaf in leaves if up[leaf]]
        spare = sum(not p.link for s in switches for p in s.ports)
        half = min(sum(sorted(up.values())[: len(leaves) // 2]), sum(down.values()) // 2) if len(leaves) > 1 else 0
        found.append(
            Tier(
                fabric,
                len(leaves),
                len(switches) - len(leaves),
                ends,
                sum(down.values()),
                sum(up.values()),
                max(ratios, default=0.0),
                half,
                spare,
            )
        )
    return found


def gateway_room(plan: Plan, requests_per_s: float, life_s: float) -> list[GatewayRoom]:
    """Return each stateful exposure's room for a request rate, one new flow a request, held `life_s` seconds.

    One gateway serves an exposure at a time, so the smallest share of the pool decides.
    """
    found = []
    for tenant in plan.tenants.values():
        for exposure in tenant.exposures:
            if exposure.mode == "static":
                continue
            sizes = [_addresses(s.first, s.last) for s in exposure.shares]
            addresses = min(sizes) if sizes else 1
            table = min((plan.gateways[g].conntrack_max for g in plan.groups[exposure.group].gateways), default=0)
            ports = addresses * PORTS_PER_ADDRESS
            flows = min(ports, table) if exposure.mode == "masquerade" else table
            hold = life_s + exposure.idle_timeout_s
            rate = flows / hold
            found.append(
                GatewayRoom(
                    tenant.name,
                    exposure.name,
                    exposure.mode,
                    addresses,
                    ports,
                    exposure.idle_timeout_s,
                    life_s,
                    rate,
                    requests_per_s,
                    rate >= requests_per_s,
                )
            )
    return found


def layers(answer: Capacity) -> list[tuple[str, str, str]]:
    """Return the layers of a disaggregated serving stack: layer, what the network gives it, how that was computed.

    Prefill and decode are halves of the servers; 8 Gb/s of line rate are at most 1 GB/s of cache, one way.
    """
    rows = []
    moves = [(f, o) for f, o in answer.outcomes if o.pattern == "prefill-decode"]
    if moves:
        fabric, move = max(moves, key=lambda item: (item[1].ideal, item[1].qps))
        text = f"{move.hashed / 8:.0f} GB/s in all, {move.worst / 8:.1f} GB/s for the slowest NIC pair"
        rows.append(("prefill", f"{move.pairs} sending NICs in {fabric}", "first half of the servers"))
        rows.append(("decode", f"{move.pairs} receiving NICs in {fabric}", "second half of the servers"))
        rows.append(("KV", text, f"prefill to decode, {move.qps} QPs a pair, hashed"))
    stateful = [g.new_per_s for g in answer.gateways]
    if stateful:
        text = f"{answer.gateway_gbps} Gb/s; {min(stateful):.0f} new flows a second in the smallest exposure"
        rows.append(("router", text, "gateways, NAT ports and idle timeouts"))
    for tier in answer.tiers:
        if tier.spines:
            text = f"{tier.bisection} Gb/s bisection, {tier.ratio:.2f}:1 at the worst leaf"
            rows.append((f"network {tier.fabric}", text, "cables of the plan"))
    return rows


def _addresses(first: str, last: str) -> int:
    from ipaddress import IPv4Address

    return int(IPv4Address(last)) - int(IPv4Address(first)) + 1


def capacity(
    plan: Plan,
    *,
    patterns: Iterable[str] = PATTERNS,
    qps: Iterable[int] = (1, 4, 8, 16),
    requests_per_s: float = 0.0,
    life_s: float = 10.0,
    polarised: bool = False,
) -> Capacity:
    """Answer for a whole site; patterns are played on every fabric that has endpoints for them."""
    outcomes = []
    for fabric, spec in plan.fabrics.items():
        if not spec.managed:
            continue
        network = Network(plan, fabric)
        for pattern in patterns:
            for count in qps:
                outcome = run(network, pattern, count, polarised=polarised)
                if outcome is not None:
                    outcomes.append((fabric, outcome))
    external = sum(plan.links[link].speed for g in plan.gateways.values() for link in g.externals)
    inside = sum(plan.links[link].speed for g in plan.gateways.values() for link in g.uplinks)
    return Capacity(
        plan.site,
        tuple(tiers(plan)),
        tuple(outcomes),
        tuple(gateway_room(plan, requests_per_s, life_s)),
        min(external, inside),
        sum(g.conntrack_max for g in plan.gateways.values()),
        tuple((p.name, p.range, p.used, p.size - p.used) for p in plan.pools),
    )
