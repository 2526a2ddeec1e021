"""An inventory skeleton from nodes with roles and the links between them: fabrics, tiers, server classes, gateways.

Switches that hang together are a fabric. A label `fabric` names it, a label `model` says what its switches are; both
are optional. What a lab cannot say (speeds, cages) is assumed, and the reader has said so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from fabric.hardware.profiles import switch_models
from fabric.hardware.ranges import natural_key
from fabric.interop.importing.draft import Flow, site_name
from fabric.interop.names import split_index

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.interop.importing.draft import Draft

LEAF, BORDER, SPINE, SERVER, GATEWAY, EDGE, OTHER = "leaf", "border-leaf", "spine", "server", "gateway", "edge", "other"
SWITCHES = (LEAF, BORDER, SPINE)
MODEL = "linux-64x800"
DOWN, UP = "2x400G", "1x800G"
_FIRST_UP, _MOST_UP = 33, 32
_NIC = "cx7-1x400g"
_EDGE_ASN = 64999
Link = tuple[str, str]


@dataclass(frozen=True)
class Lab:
    """Roles and labels by node, and pairs of nodes that are joined, once for each cable."""

    roles: dict[str, str]
    links: tuple[Link, ...]
    labels: dict[str, dict[str, str]]

    @cached_property
    def far(self) -> dict[str, list[str]]:
        """The nodes at the other ends of a node's cables, in order of the links."""
        found: dict[str, list[str]] = {node: [] for node in self.roles}
        for a, b in self.links:
            found[a].append(b)
            found[b].append(a)
        return found

    def of(self, *roles: str) -> list[str]:
        """The nodes of these roles, in natural order."""
        return sorted((node for node, role in self.roles.items() if role in roles), key=natural_key)


@dataclass(frozen=True)
class _Fabric:
    """Switches that hang together."""

    name: str
    switches: tuple[str, ...]


def inventory(draft: Draft, lab: Lab) -> dict[str, Any]:
    """Return the parts `fabrics`, `servers`, and if there are any `gateways` and `edge`; notes go to the draft."""
    fabrics = _fabrics(draft, lab)
    servers = _servers(draft, lab, fabrics)
    found: dict[str, Any] = {"fabrics": _carrying(draft, lab, fabrics), "servers": servers}
    gateways = lab.of(GATEWAY)
    if gateways:
        attach, fabric = _attachment(lab, gateways, fabrics)
        found["gateways"] = {_stem(gateways): Flow(count=len(gateways), fabric=fabric.name, attach=attach)}
        # a host of the internet behind an edge router goes by the same words
        edges = [node for node in lab.of(EDGE) if any(lab.roles[far] == GATEWAY for far in lab.far[node])]
        found["edge"] = Flow(asn=_EDGE_ASN, count=max(len(edges), 1))
        draft.note(f"what the gateways do (describe tenants and `expose`); the edge's AS is assumed {_EDGE_ASN}")
    return found


def _fabrics(draft: Draft, lab: Lab) -> list[_Fabric]:
    groups = []
    left = dict.fromkeys(lab.of(*SWITCHES))
    while left:
        reached, waiting = {}, [next(iter(left))]
        while waiting:
            node = waiting.pop()
            if node in left:
                del left[node]
                reached[node] = True
                waiting += [far for far in lab.far[node] if lab.roles[far] in SWITCHES]
                waiting += [
                    far for far in left if _label(lab, far) == _label(lab, node) != ""
                ]  # a slice without spines
        groups.append(tuple(sorted(reached, key=natural_key)))
    found: list[_Fabric] = []
    for group in groups:
        if not any(lab.roles[node] in {LEAF, BORDER} for node in group):
            draft.note(f"switches without a leaf: {', '.join(group)}")
            continue
        name = _fabric_name(lab, group, alone=len(groups) == 1)
        taken = {fabric.name for fabric in found}
        found.append(_Fabric(name if name not in taken else f"{name}-{len(found) + 1}", group))
    return found


def _label(lab: Lab, node: str) -> str:
    return lab.labels.get(node, {}).get("fabric", "")


def _fabric_name(lab: Lab, group: tuple[str, ...], *, alone: bool) -> str:
    labels = [name for node in group if (name := _label(lab, node))]
    if labels:
        return site_name(labels[0])
    stems = [split_index(node)[0].strip("-").split("-") for node in group]
    shared = [words[0] for words in takewhile(lambda w: len(set(w)) == 1, zip(*stems, strict=False))]
    return site_name("-".join(shared)) if shared and not alone else "fabric"


def _carrying(draft: Draft, lab: Lab, fabrics: list[_Fabric]) -> dict[str, Any]:
    """The fabrics with what they carry: one carries all, of several the one with most server ports is the backend."""
    weight = {f.name: sum(lab.roles[far] == SERVER for node in f.switches for far in lab.far[node]) for f in fabrics}
    backend = max(fabrics, key=lambda f: ("backend" in f.name, weight[f.name]))
    networks = [["frontend", "storage"], ["inband"], ["oob"]]
    made = {}
    for fabric in fabrics:
        if len(fabrics) == 1:
            carries = ["backend", "frontend", "storage"]
        else:
            carries = ["backend"] if fabric is backend else networks.pop(0) if networks else ["oob"]
        made[fabric.name] = {"carries": carries, **_tiers(lab, fabric)}
    _name_apart(draft, made)
    if len(fabrics) > 1:
        said = "; ".join(f"{name} {'+'.join(spec['carries'])}" for name, spec in made.items())
        draft.note(f"what each fabric carries (assumed: {said})")
    return made


def _name_apart(draft: Draft, made: dict[str, Any]) -> None:
    """Switches that do not hang together may have one stem: those of the later fabric are called after it."""
    taken: set[str] = set()
    for fabric, spec in made.items():
        for tier in [tier for role, tier in spec.items() if role in SWITCHES]:
            if tier["name"] in taken:
                draft.note(
                    f"the names of switches {tier['name']}* of {fabric} (they are called {fabric}-{tier['name']}-*)"
                )
                tier["name"] = f"{fabric}-{tier['name']}"
            taken.add(tier["name"])


def _tiers(lab: Lab, fabric: _Fabric) -> dict[str, Any]:
    tiers = {role: [n for n in fabric.switches if lab.roles[n] == role] for role in SWITCHES}
    if not tiers[LEAF]:
        tiers[LEAF], tiers[BORDER] = tiers[BORDER], []
    found: dict[str, Any] = {role: _leaves(lab, tiers[role]) for role in (LEAF, BORDER) if tiers[role]}
    if tiers[SPINE]:
        spines = tiers[SPINE]
        down = Flow(ports="1-64", breakout=UP)
        found[SPINE] = {"model": _model(lab, spines), "name": _stem(spines), "count": len(spines), "down": down}
    return found


def _leaves(lab: Lab, leaves: list[str]) -> dict[str, Any]:
    ends = {
        role: Counter({n: sum(lab.roles[f] == role for f in lab.far[n]) for n in leaves}) for role in (SERVER, SPINE)
    }
    most = max(*ends[SERVER].values(), -(-ends[SERVER].total() // len(leaves)), 1)
    has_gateways = any(lab.roles[far] == GATEWAY for node in leaves for far in lab.far[node])
    # gateways take four cages' room, below the uplinks
    cages = min(-(-most // 2), _FIRST_UP - 1 - (4 if has_gateways else 0))
    down = [Flow(ports=_range(1, cages), breakout=DOWN)]
    if has_gateways:
        # 200G ports for the gateways' NICs, on odd cages, which every model can split four ways
        first = cages + 1 + cages % 2
        down.append(Flow(ports=_range(first, first + 2) + ":2", breakout="4x200G"))
    spec: dict[str, Any] = {"model": _model(lab, leaves), "name": _stem(leaves), "count": len(leaves)}
    spec["down"] = down[0] if len(down) == 1 else down
    if ups := max(ends[SPINE].values()):
        spec["up"] = Flow(ports=_range(_FIRST_UP, _FIRST_UP + min(ups, _MOST_UP) - 1), breakout=UP)
    return spec


def _model(lab: Lab, nodes: Iterable[str]) -> str:
    said = [lab.labels.get(node, {}).get("model", "") for node in nodes]
    return next((model for model in said if model in switch_models()), MODEL)


def _range(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else str(first)


def _stem(nodes: list[str]) -> str:
    return site_name(split_index(sorted(nodes, key=natural_key)[0])[0])


def _servers(draft: Draft, lab: Lab, fabrics: list[_Fabric]) -> dict[str, Any]:
    """Server classes by stem and ports, with a group of NICs for each fabric that the servers are plugged into."""
    made = {}
    for name, members in _classes(draft, lab, fabrics).items():
        kind = "storage" if "stor" in name else "compute"
        groups = {f.name: _nics(lab, members, f) for f in fabrics}
        nics = {("nic" if len(fabrics) == 1 else fabric): nic for fabric, nic in groups.items() if nic}
        made[name] = {"count": len(members), "kind": kind, "nics": nics}
        wanted = [f"{name}-{n:03}" for n in range(1, len(members) + 1)]
        if members != wanted:
            draft.note(f"the names of servers {split_index(members[0])[0]}* (they are called {name}-001 and on)")
    return made


def _classes(draft: Draft, lab: Lab, fabrics: list[_Fabric]) -> dict[str, list[str]]:
    """Servers of one stem and the same ports; those with others (cut off by a slice) are a class of their own."""
    alike: dict[str, dict[tuple[int, ...], list[str]]] = {}
    for server in lab.of(SERVER):
        ports = tuple(sum(far in fabric.switches for far in lab.far[server]) for fabric in fabrics)
        if any(ports):
            alike.setdefault(site_name(split_index(server)[0]), {}).setdefault(ports, []).append(server)
        else:
            draft.note(f"server {server}, which is on no leaf")
    classes: dict[str, list[str]] = {}
    for stem, by_ports in alike.items():
        for number, members in enumerate(sorted(by_ports.values(), key=len, reverse=True), 1):
            name = stem if number == 1 else f"{stem}-group{number}"
            while number > 1 and name in alike:
                name += "x"
            classes[name] = members
            if number > 1:
                draft.note(
                    f"{', '.join(members)} have other ports than {classes[stem][0]}: a class of their own, {name}"
                )
    return classes


def _nics(lab: Lab, members: list[str], fabric: _Fabric) -> Flow | None:
    homes = [[far for far in lab.far[server] if far in fabric.switches] for server in members]
    ports = len(homes[0])
    if not ports:
        return None
    if all(len(set(home)) <= 1 for home in homes):
        placement = "single-homed"
    elif ports > 2 and len(set(homes[0])) == ports and all(home == homes[0] for home in homes):
        placement = "rail-optimised"
    else:
        placement = "alternating"
    nic = Flow(nic=f"{ports}x {_NIC}" if ports > 1 else _NIC, fabric=fabric.name, placement=placement)
    border = [lab.roles[node] for node in fabric.switches].count(LEAF) and lab.roles[homes[0][0]] == BORDER
    return Flow(**nic, attach=BORDER) if border else nic


def _attachment(lab: Lab, gateways: list[str], fabrics: list[_Fabric]) -> tuple[str, _Fabric]:
    """What the gateways are plugged into, and in which fabric; `leaf` where a lab does not say."""
    ends = Counter(far for node in gateways for far in lab.far[node] if lab.roles[far] in SWITCHES)
    roles = Counter(lab.roles[node] for node in ends.elements())
    attach = roles.most_common(1)[0][0] if roles else LEAF
    fabric = next((f for f in fabrics if ends.keys() & set(f.switches)), fabrics[0])
    if attach == BORDER and not any(lab.roles[node] == LEAF for node in fabric.switches):
        attach = LEAF
    return attach, fabric
