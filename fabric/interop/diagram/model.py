"""What the picture shows, before it has places: devices as nodes, alike servers as one node, parallel links as one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.hardware.ranges import natural_key
from fabric.interop.names import split_index
from fabric.plan import BORDER_LEAF, EDGE, GATEWAY, LEAF, SERVER, SPINE
from fabric.tiers import require_two_tiers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Link, Plan, Switch

# more switches of a tier than this are drawn as blocks of neighbours
MOST_IN_TIER = 24
TIERS = (SPINE, LEAF, SERVER, EDGE)
_TIER_OF = {SPINE: SPINE, LEAF: LEAF, BORDER_LEAF: LEAF, SERVER: SERVER, GATEWAY: SERVER, EDGE: EDGE}


@dataclass(frozen=True, slots=True)
class Node:
    """A box: one device, or several alike. `used` is the share of ports in use, negative where it means nothing."""

    id: str
    kind: str
    title: str
    lines: tuple[str, ...]
    members: tuple[str, ...]
    tenants: tuple[str, ...] = ()
    used: float = -1.0
    tip: str = ""

    @property
    def tier(self) -> str:
        """The row it is drawn in."""
        return _TIER_OF[self.kind]


@dataclass(frozen=True, slots=True)
class Bundle:
    """All links between two nodes: `count` of them, `rate` Gb/s in all, `label` such as `16×800G`."""

    low: str
    high: str
    kind: str
    tenant: str
    count: int
    label: str
    rate: int
    tip: str


@dataclass
class Panel:
    """One fabric: its heading, its nodes by tier, its bundles, and what each gap between tiers carries."""

    fabric: str
    title: str
    subtitle: str
    managed: bool
    tiers: dict[str, list[Node]] = field(default_factory=dict)
    bundles: list[Bundle] = field(default_factory=list)
    gaps: dict[str, str] = field(default_factory=dict)


def panels(plan: Plan) -> list[Panel]:
    """Return a panel for each fabric that has switches, in plan order. CouldNotRunError for three tiers."""
    require_two_tiers(plan, "the diagram")
    return [_panel(plan, fabric) for fabric in plan.fabrics if plan.switches_of(fabric)]


def _panel(plan: Plan, name: str) -> Panel:
    fabric = plan.fabrics[name]
    links = [link for link in plan.links.values() if link.fabric == name]
    spines = plan.switches_of(name, SPINE)
    leaves = plan.switches_of(name, LEAF, BORDER_LEAF)
    switches = [
        *_switch_nodes(plan, spines),
        *_switch_nodes(plan, [leaf for leaf in leaves if leaf.kind == LEAF]),
        *_switch_nodes(plan, [leaf for leaf in leaves if leaf.kind == BORDER_LEAF]),
    ]
    nodes = [
        *switches,
        *_server_nodes(plan, name, links, {member: node.title for node in switches for member in node.members}),
        *_gateway_nodes(plan, links),
        *_edge_nodes(plan, links),
    ]
    panel = Panel(name, name, _subtitle(plan, name, leaves), fabric.managed)
    for node in nodes:
        panel.tiers.setdefault(node.tier, []).append(node)
    panel.bundles = _bundles(nodes, links)
    panel.gaps = _gaps(plan, links)
    return panel


def _subtitle(plan: Plan, name: str, leaves: Iterable[Switch]) -> str:
    fabric = plan.fabrics[name]
    leaves = list(leaves)
    models = sorted({switch.model for switch in plan.switches_of(name)})
    parts = [f"carries {', '.join(fabric.carries)}", ", ".join(models)]
    if not fabric.managed:
        return " · ".join([*parts, "cabled, not configured"])
    plain = [leaf for leaf in leaves if leaf.kind == LEAF]
    if plain:
        parts += [fabric.placement, _ratio(plan, plain[0])]
    parts.append(f"MTU {fabric.mtu}")
    if fabric.qos:
        parts.append(f"lossless DSCP {', '.join(str(d) for c in fabric.qos.lossless for d in c.dscp)}")
    return " · ".join(part for part in parts if part)


def _ratio(plan: Plan, leaf: Switch) -> str:
    """Ports a leaf offers downwards against its uplinks: `1:1` is non-blocking."""
    links = plan.links_of.get(leaf.name, ())
    up = sum(link.speed for link in links if link.a.device == leaf.name and link.b.device in plan.switches)
    down = sum(port.speed for port in leaf.ports if port.zone == "down")
    return f"{tera(down)} down : {tera(up)} up a leaf ({down / up:.3g}:1)" if up and down else ""


def tera(gigabits: int) -> str:
    """Gb/s in the unit people say: `800 Gb/s`, `25.6 Tb/s`."""
    return f"{gigabits / 1000:.4g} Tb/s" if gigabits >= 1000 else f"{gigabits} Gb/s"


def _switch_nodes(plan: Plan, switches: Iterable[Switch]) -> list[Node]:
    switches = list(switches)
    if len(switches) <= MOST_IN_TIER:
        return [_switch_node(plan, [switch]) for switch in switches]
    size = -(-len(switches) // MOST_IN_TIER)
    return [_switch_node(plan, switches[i : i + size]) for i in range(0, len(switches), size)]


def _switch_node(plan: Plan, block: list[Switch]) -> Node:
    first, last = block[0], block[-1]
    ports = [port for switch in block for port in switch.ports]
    used = sum(1 for port in ports if port.link)
    asns = f"AS {first.asn}" if first.asn == last.asn else f"AS {first.asn} to {last.asn}"
    lines = [f"{len(block)} switches"] if len(block) > 1 else []
    if first.managed:
        lines.append(asns)
    vrfs = dict.fromkeys(vrf for switch in block for vrf in switch.vrfs)
    tenants = tuple(plan.tenant_of_vrf[vrf].name for vrf in vrfs if vrf in plan.tenant_of_vrf)
    tip = [
        span([switch.name for switch in block]),
        f"{first.kind}, {first.model}, {first.nos}",
        f"{asns}, router id {first.router_id}" if first.managed else "not configured",
        f"VTEP {first.vtep}" if first.vtep and len(block) == 1 else "",
        f"{used} of {len(ports)} ports used",
        f"tenants: {', '.join(tenants)}" if tenants else "",
    ]
    return Node(
        id=f"{first.fabric}/{first.name}",
        kind=first.kind,
        title=span([switch.name for switch in block]),
        lines=tuple(lines),
        members=tuple(switch.name for switch in block),
        tenants=tenants,
        used=used / len(ports) if ports else -1.0,
        tip="\n".join(line for line in tip if line),
    )


def span(names: list[str]) -> str:
    """`compute-001`; `compute-001 … 008` for neighbours; `compute-001, 003` where some between are missing."""
    stem, first = split_index(names[0])
    numbers = [split_index(name)[1] for name in names]
    if not first or any(split_index(name)[0] != stem for name in names):
        return ", ".join(names) if len(names) <= 2 else f"{names[0]} and {len(names) - 1} more"
    runs: list[list[str]] = []
    for number in numbers:
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    if len(runs) > 3:
        return f"{names[0]} and {len(names) - 1} more"
    return stem + ", ".join(" … ".join(run) for run in runs)


def _server_nodes(plan: Plan, fabric: str, links: list[Link], home: dict[str, str]) -> list[Node]:
    """Servers of one class, with the same tenants and on the same leaf boxes, are one node."""
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, own in _by_lower(links, plan.servers).items():
        tenants = tuple(dict.fromkeys(link.tenant for link in own if link.tenant))
        leaves = tuple(sorted({home[link.b.device] for link in own if link.b.device in home}, key=natural_key))
        groups.setdefault((plan.servers[name].server_class, tenants, leaves), []).append(name)
    nodes = []
    for (server_class, tenants, leaves), names in groups.items():
        server = plan.servers[names[0]]
        ports = Counter(port.speed for port in server.ports if port.fabric == fabric)
        rates = " + ".join(f"{count}×{speed}G" for speed, count in ports.items())
        many = f"{len(names)} servers" if len(names) > 1 else "1 server"
        tip = [
            span(names),
            f"{many} of class {server_class}" + (f", {server.xpus} accelerators each" if server.xpus else ""),
            f"{rates} each, on {', '.join(leaves) if len(leaves) <= 4 else f'{len(leaves)} leaves'}",
            f"tenant {', '.join(tenants)}" if tenants else "no tenant",
        ]
        nodes.append(
            Node(
                id=f"{fabric}/{names[0]}",
                kind=SERVER,
                title=span(names),
                lines=(many, f"{rates} each" if len(names) > 1 else rates, ", ".join(tenants)),
                members=tuple(names),
                tenants=tenants,
                tip="\n".join(tip),
            )
        )
    return nodes


def _by_lower(links: list[Link], devices: Iterable[str]) -> dict[str, list[Link]]:
    wanted = set(devices)
    found: dict[str, list[Link]] = {}
    for link in links:
        if link.a.device in wanted:
            found.setdefault(link.a.device, []).append(link)
    return found


def _gateway_nodes(plan: Plan, links: list[Link]) -> list[Node]:
    nodes = []
    for name in _by_lower(links, plan.gateways):
        gateway = plan.gateways[name]
        ranks = ", ".join(f"{group} #{rank + 1}" for group, rank in gateway.ranks.items())
        tip = [name, f"gateway, AS {gateway.asn}, VTEP {gateway.vtep}", f"groups: {ranks}" if ranks else ""]
        tip.append(f"serves {', '.join(gateway.tenants)}" if gateway.tenants else "")
        lines = ("gateway", *(f"{group} #{rank + 1}" for group, rank in list(gateway.ranks.items())[:2]))
        tip_text = "\n".join(line for line in tip if line)
        nodes.append(Node(f"{gateway.fabric}/{name}", GATEWAY, name, lines, (name,), (), -1.0, tip_text))
    return nodes


def _edge_nodes(plan: Plan, links: list[Link]) -> list[Node]:
    names = dict.fromkeys(end.device for link in links for end in (link.a, link.b) if end.device in plan.edges)
    return [
        Node(f"edge/{name}", EDGE, name, (f"AS {plan.edges[name].asn}",), (name,), (), -1.0, f"{name}\nedge, not ours")
        for name in names
    ]


def _bundles(nodes: list[Node], links: list[Link]) -> list[Bundle]:
    home = {member: node for node in nodes for member in node.members}
    found: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        low, high = home.get(link.a.device), home.get(link.b.device)
        if low and high:
            found.setdefault((low.id, high.id), []).append(link)
    titles = {node.id: node.title for node in nodes}
    made = []
    for (lower, upper), group in found.items():
        first = group[0]
        speeds = Counter(link.speed for link in group)
        rate = sum(link.speed for link in group)
        what = " + ".join(f"{count} × {speed}G" for speed, count in sorted(speeds.items(), reverse=True))
        length = f", {first.length_m} m {first.medium}" if first.length_m else ""
        tip = f"{titles[lower]} to {titles[upper]}\n{what} = {tera(rate)}{length}"
        tenants = {link.tenant for link in group}
        tenant = next(iter(tenants)) if len(tenants) == 1 else ""
        label = " + ".join(f"{count}×{speed}G" for speed, count in sorted(speeds.items(), reverse=True))
        made.append(Bundle(lower, upper, first.kind, tenant, len(group), label, rate, tip))
    return made


def _gaps(plan: Plan, links: list[Link]) -> dict[str, str]:
    """What runs under each tier, in total: `512 × 800G, 4 a pair`."""
    groups: dict[str, list[Link]] = {}
    for link in links:
        groups.setdefault(_TIER_OF[plan.kind_of[link.b.device]], []).append(link)
    texts = {}
    for tier, group in groups.items():
        speeds = Counter(link.speed for link in group)
        text = " + ".join(f"{count} × {speed}G" for speed, count in sorted(speeds.items(), reverse=True))
        pairs = Counter((link.a.device, link.b.device) for link in group)
        if tier == SPINE and len(set(pairs.values())) == 1:
            text += f", {next(iter(pairs.values()))} a pair"
        texts[tier] = text
    return texts
