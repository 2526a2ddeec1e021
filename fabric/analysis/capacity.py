"""Capacity of a site, from the plan alone: tiers, patterns, gateways, what is left for growth."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabric.analysis.flows.network import Network
from fabric.analysis.flows.traffic import PATTERNS, Outcome, Played
from fabric.analysis.gateway_room import GatewayRoom, Requests, gateway_gbps, gateway_room
from fabric.plan import FABRIC_LINK, LEAF_KINDS, SPINE, SUPER_SPINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Plan

MODEL = (
    "Max-min fair shares of line rate; hashed ECMP is the mean of three seeds, or one beyond 100,000 QPs. "
    "All-to-all is up to four random shifts of the ring of NICs; ingress comes from each tenant's active gateway. "
    "Gateways: each request is a flow held for its life and the idle timeout."
)
LEFT_OUT = "queueing, DCQCN, PFC spread, short messages, CPU of gateways and storage, reuse of NAT ports"


@dataclass(frozen=True, slots=True)
class Tier:
    """Bandwidth between a fabric's tier and the one above, Gb/s one way. `ratio` is down over up of the worst switch.

    `tier` is `leaf` or, with super-spines above, `spine`. `endpoints` are the NIC ports on the switches of the tier,
    `down` the sum of what is below them. `bisection` is the bandwidth between two halves of the leaves (of the
    pods, for spines). A ratio of 1.0 is non-blocking; it is what is cabled, not what the switch could take.
    """

    fabric: str
    tier: str
    switches: int
    above: int
    endpoints: int
    down: int
    up: int
    ratio: float
    bisection: int


@dataclass(frozen=True, slots=True)
class SparePorts:
    """Ports without a cable on the switches of a kind: the zone they are for (empty: none yet) and their speed."""

    fabric: str
    kind: str
    zone: str
    speed: int
    ports: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """Everything `kvfabric capacity` says. `conntrack` and `gateway_gbps` are sums over all gateways."""

    site: str
    tiers: tuple[Tier, ...]
    outcomes: tuple[tuple[str, Outcome], ...]
    gateways: tuple[GatewayRoom, ...]
    gateway_gbps: int
    conntrack: int
    spare_ports: tuple[SparePorts, ...]
    pools: tuple[tuple[str, str, int, int], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready data, with the model it was computed by."""
        outcomes = [{"fabric": f, "efficiency": round(o.efficiency, 4), **asdict(o)} for f, o in self.outcomes]
        gateways = [{**asdict(g), "enough": g.enough} for g in self.gateways]
        more = {"outcomes": outcomes, "gateways": gateways, "layers": layers(self)}
        return {"model": MODEL, "left_out": LEFT_OUT, **asdict(self), **more}


def tiers(plan: Plan) -> list[Tier]:
    """Return the figures of each fabric's tiers, from the leaves up."""
    return [
        _tier(plan, fabric, tier)
        for fabric in plan.fabrics
        for tier in ("leaf", *(["spine"] if plan.switches_of(fabric, SUPER_SPINE) else []))
    ]


def _tier(plan: Plan, fabric: str, tier: str) -> Tier:
    kinds, upper = (LEAF_KINDS, SPINE) if tier == "leaf" else (frozenset({SPINE}), SUPER_SPINE)
    mine = plan.switches_of(fabric, *kinds)
    up, down, ends = dict.fromkeys((s.name for s in mine), 0), dict.fromkeys((s.name for s in mine), 0), 0
    for link in plan.links.values():
        if link.fabric != fabric:
            continue
        if link.kind == FABRIC_LINK and link.a.device in up:
            up[link.a.device] += link.speed
        elif link.b.device in down:
            down[link.b.device] += link.speed
            ends += link.kind != FABRIC_LINK
    ratios = [down[name] / up[name] for name in up if up[name]]
    # what stands together is cut together: a leaf, or all spines of a pod
    blocks: Counter[str] = Counter()
    for switch in mine:
        blocks[switch.pod if tier == "spine" else switch.name] += up[switch.name]
    half = sum(sorted(blocks.values())[: len(blocks) // 2])
    bisection = min(half, sum(down.values()) // 2) if len(blocks) > 1 else 0
    above = len(plan.switches_of(fabric, upper))
    sums = (sum(down.values()), sum(up.values()))
    return Tier(fabric, tier, len(mine), above, ends, *sums, max(ratios, default=0.0), bisection)


def spare_ports(plan: Plan) -> list[SparePorts]:
    """Return the ports without a cable, by fabric, kind of switch, zone and speed."""
    free: Counter[tuple[str, str, str, int]] = Counter()
    for switch in plan.switches.values():
        free.update((switch.fabric, switch.kind, port.zone, port.speed) for port in switch.ports if not port.link)
    return [SparePorts(*key, count) for key, count in free.items()]


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
        if tier.above:
            text = f"{tier.bisection} Gb/s bisection, {tier.ratio:.2f}:1 at the worst {tier.tier}"
            rows.append((f"network {tier.fabric}", text, "cables of the plan"))
    return rows


def capacity(
    plan: Plan,
    *,
    patterns: Iterable[str] = PATTERNS,
    qps: Iterable[int] = (1, 4, 8, 16),
    asked: Requests | None = None,
    polarised: bool = False,
    links: int = 1,
) -> Capacity:
    """Answer for a whole site; patterns are played on every fabric that has endpoints for them.

    `links` is how many of the fullest links of each tier are named.
    """
    outcomes = []
    counts = list(qps)
    for fabric, spec in plan.fabrics.items():
        if not spec.managed:
            continue
        network = Network(plan, fabric)
        for pattern in patterns:
            played = Played.on(network, pattern)
            if played:
                outcomes += [(fabric, played.run(count, polarised=polarised, links=links)) for count in counts]
    return Capacity(
        plan.site,
        tuple(tiers(plan)),
        tuple(outcomes),
        tuple(gateway_room(plan, asked or Requests())),
        sum(gateway_gbps(plan, name) for name in plan.gateways),
        sum(g.conntrack_max for g in plan.gateways.values()),
        tuple(spare_ports(plan)),
        tuple((p.name, p.range, p.used, p.size - p.used) for p in plan.pools),
    )
