"""containerlab topologies (`*.clab.yml`) as an inventory skeleton: roles, counts and links.

A lab has no port speeds and no cages, so that these are assumed and said. Node settings are looked up as containerlab
does: the node's own, then its group's, its kind's, and the defaults.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import natural_key
from fabric.interop.importing.draft import Draft, Flow, site_name
from fabric.interop.names import split_index
from fabric.interop.readers.yaml_documents import dig
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.interop.readers.yaml_documents import Mapping

SOURCE = "a containerlab topology"
LEAF, BORDER, SPINE, SERVER, GATEWAY, EDGE, OTHER = "leaf", "border-leaf", "spine", "server", "gateway", "edge", "other"
# the first word that fits decides, so that `border-leaf` is not taken for a leaf
_WORDS = (
    ("border", BORDER),
    ("spine", SPINE),
    ("leaf", LEAF),
    ("tor", LEAF),
    ("gateway", GATEWAY),
    ("gw", GATEWAY),
    ("edge", EDGE),
    ("internet", EDGE),
    ("server", SERVER),
    ("compute", SERVER),
    ("storage", SERVER),
    ("host", SERVER),
    ("client", SERVER),
    ("srv", SERVER),
)
_MODEL = "linux-64x800"
_DOWN, _UP, _MOST = "2x400G", "1x800G", 28
_FIRST_UP = 33
_NIC = "cx7-1x400g"
_EDGE_ASN = 64999
Link = tuple[str, str]


def recognises(documents: list[Mapping]) -> bool:
    """Whether one of the documents is a containerlab topology."""
    return any(isinstance(dig(document, "topology", "nodes"), dict) for document in documents)


def read(sources: list[tuple[Path, list[Mapping]]], name: str) -> Draft:
    """Turn one topology into a skeleton; several are refused."""
    found = [(path, d) for path, documents in sources for d in documents if dig(d, "topology", "nodes")]
    if len(found) != 1:
        text = "several topologies, each is a lab of its own" if found else "a topology without nodes"
        raise InputError([Problem("import.clab", name, text, "import one topology with nodes and links")])
    path, document = found[0]
    draft = Draft({}, f"{path.name} (containerlab {document.get('name', '')})".replace(" )", ")"))
    roles = _roles(draft, document)
    links = _links(draft, path, document, roles)
    leaves = [node for node, role in roles.items() if role in {LEAF, BORDER}]
    if not leaves:
        fix = "name or group the leaves so that 'leaf' is in it, or add `labels: {role: leaf}`"
        raise InputError([Problem("import.clab", path.name, "no leaf among the nodes", fix, str(path), document.line)])
    _assumed(draft)
    servers, kept = _servers(draft, roles, links)
    fabric: dict[str, Any] = {"carries": ["backend", "frontend", "storage"], "leaf": _leaf(roles, links, kept)}
    spines = _of(roles, SPINE)
    if spines:
        down = Flow(ports="1-64", breakout=_UP)
        fabric["spine"] = {"model": _MODEL, "name": _stem(spines), "count": len(spines), "down": down}
    draft.site = {"site": site_name(name), "profile": "distributed", "fabrics": {"fabric": fabric}, "servers": servers}
    _gateways(draft, roles, links)
    return draft


def _roles(draft: Draft, document: Mapping) -> dict[str, str]:
    nodes = dig(document, "topology", "nodes")
    roles = {}
    for node in sorted(nodes, key=natural_key):
        own = nodes[node] if isinstance(nodes[node], dict) else {}
        hints = [str(dig(own, "labels", "role") or ""), str(_setting(document, own, "group") or ""), node]
        roles[node] = next((role for hint in hints for word, role in _WORDS if word in hint.lower()), OTHER)
    for role, members in _grouped(roles).items():
        if role == OTHER:
            draft.note(f"nodes whose part in the network is not to be told: {', '.join(members)}")
    return roles


def _setting(document: Mapping, node: dict[str, Any], key: str) -> Any:
    """A node's setting with containerlab's inheritance."""
    topology = document["topology"]
    group = dig(topology, "groups", str(node.get("group", "")))
    kind = dig(topology, "kinds", str(node.get("kind", "") or dig(topology, "defaults", "kind") or ""))
    for source in (node, group, kind, topology.get("defaults")):
        if isinstance(source, dict) and source.get(key) is not None:
            return source[key]
    return None


def _grouped(roles: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node, role in roles.items():
        found.setdefault(role, []).append(node)
    return found


def _of(roles: dict[str, str], role: str) -> list[str]:
    return [node for node, its in roles.items() if its == role]


def _links(draft: Draft, path: Path, document: Mapping, roles: dict[str, str]) -> list[Link]:
    """Pairs of nodes, from the short form `["a:eth1", "b:eth1"]` and the long one with `node` and `interface`."""
    rows = dig(document, "topology", "links")
    found, problems = [], []
    for row in rows if isinstance(rows, list) else []:
        ends = row.get("endpoints") if isinstance(row, dict) else None
        if not isinstance(ends, list) or len(ends) != 2:
            draft.note(f"a link of type {row.get('type', 'unknown') if isinstance(row, dict) else 'unknown'}")
            continue
        nodes = [_node(end) for end in ends]
        outside = [node for node in nodes if node not in roles]
        if outside and set(outside) & {"host", "mgmt-net", "macvlan", "vxlan", "bridge"}:
            draft.note(f"links to {', '.join(outside)}")
        elif outside:
            line = row.line if hasattr(row, "line") else document.line
            fix = "add the node, or correct the link"
            text = f"a link names {' and '.join(outside)}, which is no node"
            problems.append(Problem("import.clab", str(ends), text, fix, str(path), line))
        else:
            found.append((nodes[0], nodes[1]))
    if problems:
        raise InputError(problems)
    return found


def _node(end: Any) -> str:
    if isinstance(end, dict):
        return str(end.get("node", ""))
    return str(end).partition(":")[0]


def _assumed(draft: Draft) -> None:
    draft.note(f"images, bind mounts, management addresses and start-up files; models are {_MODEL}")
    draft.note("which server is on which leaf (leaves are filled in order)")
    draft.note(f"interface names; port speeds are assumed ({_DOWN} towards servers, {_UP} towards spines)")


def _leaf(roles: dict[str, str], links: list[Link], ports: int) -> dict[str, Any]:
    leaves = [node for node, role in roles.items() if role in {LEAF, BORDER}]
    ups = Counter(end for link in links for end, far in (link, link[::-1]) if end in leaves and roles.get(far) == SPINE)
    cages = min(max(-(-ports // 2), 1), _MOST)
    spec: dict[str, Any] = {"model": _MODEL, "name": _stem(leaves), "count": len(leaves)}
    down = [Flow(ports=_range(1, cages), breakout=_DOWN)]
    if _of(roles, GATEWAY):
        # 200G ports for the gateways' NICs, on odd cages, which every model can split four ways
        first = cages + 1 + cages % 2
        down.append(Flow(ports=_range(first, first + 2) + ":2", breakout="4x200G"))
    spec["down"] = down[0] if len(down) == 1 else down
    if ups:
        spec["up"] = Flow(ports=_range(_FIRST_UP, _FIRST_UP + min(max(ups.values()), 32) - 1), breakout=_UP)
    return spec


def _range(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else str(first)


def _stem(nodes: list[str]) -> str:
    return site_name(split_index(sorted(nodes, key=natural_key)[0])[0])


def _servers(draft: Draft, roles: dict[str, str], links: list[Link]) -> tuple[dict[str, Any], int]:
    """Server classes by stem, and the most server ports that one leaf needs."""
    homes: dict[str, list[str]] = {}
    for link in links:
        for end, far in (link, link[::-1]):
            if roles[end] == SERVER and roles[far] in {LEAF, BORDER}:
                homes.setdefault(end, []).append(far)
    classes: dict[str, list[str]] = {}
    for server in _of(roles, SERVER):
        if server in homes:
            classes.setdefault(site_name(split_index(server)[0]), []).append(server)
        else:
            draft.note(f"server {server}, which is on no leaf")
    made = {}
    total = 0
    for name, members in classes.items():
        ports = len(homes[members[0]])
        single = len(set(homes[members[0]])) == 1
        placement = "single-homed" if single else "alternating"
        kind = "storage" if "stor" in name else "compute"
        nic = Flow(nic=f"{ports}x {_NIC}" if ports > 1 else _NIC, fabric="fabric", placement=placement)
        made[name] = {"count": len(members), "kind": kind, "nics": {"nic": nic}}
        total += len(members) * ports
        draft.note(f"the names of servers {split_index(members[0])[0]}* (they are called {name}-001 and on)")
    leaves = sum(1 for role in roles.values() if role in {LEAF, BORDER})
    most = max(Counter(far for ends in homes.values() for far in ends).values(), default=1)
    return made, max(most, -(-total // leaves))


def _gateways(draft: Draft, roles: dict[str, str], links: list[Link]) -> None:
    gateways, edges = _of(roles, GATEWAY), _of(roles, EDGE)
    if gateways:
        upper = Counter(roles[far] for link in links for end, far in (link, link[::-1]) if roles[end] == GATEWAY)
        attach = "spine" if upper[SPINE] > upper[LEAF] + upper[BORDER] else "leaf"
        draft.site["gateways"] = {_stem(gateways): Flow(count=len(gateways), attach=attach)}
        draft.site["edge"] = Flow(asn=_EDGE_ASN, count=max(len(edges), 1))
        draft.note(f"what the gateways do (describe tenants and `expose`); the edge's AS is assumed {_EDGE_ASN}")
