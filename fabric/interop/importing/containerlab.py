"""containerlab topologies (`*.clab.yml`) as an inventory skeleton: roles, counts and links.

A lab has no port speeds and no cages, so that these are assumed and said. Node settings are looked up as containerlab
does: the node's own, then its group's, its kind's, and the defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import natural_key
from fabric.interop.importing.draft import Draft, site_name
from fabric.interop.importing.lab_skeleton import (
    BORDER,
    DOWN,
    EDGE,
    GATEWAY,
    LEAF,
    MODEL,
    OTHER,
    SERVER,
    SPINE,
    UP,
    Lab,
    Link,
    inventory,
)
from fabric.interop.readers.yaml_documents import dig
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.interop.readers.yaml_documents import Mapping

SOURCE = "a containerlab topology"
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
    if not _of(roles, LEAF, BORDER):
        fix = "name or group the leaves so that 'leaf' is in it, or add `labels: {role: leaf}`"
        raise InputError([Problem("import.clab", path.name, "no leaf among the nodes", fix, str(path), document.line)])
    _assumed(draft)
    lab = Lab(roles, tuple(links), {node: _labels(document, node) for node in roles})
    draft.site = {"site": site_name(name), "profile": "distributed", **inventory(draft, lab)}
    return draft


def _labels(document: Mapping, node: str) -> dict[str, str]:
    own = dig(document, "topology", "nodes", node)
    labels = _setting(document, own if isinstance(own, dict) else {}, "labels")
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}


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


def _of(roles: dict[str, str], *wanted: str) -> list[str]:
    return [node for node, role in roles.items() if role in wanted]


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
    draft.note(f"images, bind mounts, management addresses and start-up files; models without a label are {MODEL}")
    draft.note("which server is on which leaf (leaves are filled in order)")
    draft.note(f"interface names; port speeds are assumed ({DOWN} towards servers, {UP} towards spines)")
