"""What containerlab left behind, against what was exported: its data export, its Ansible inventory, its containers.

Reading is apart from judging: `read` takes files and the output of `inspect`, `differences` is pure. Formats of 0.60:
`clab-<lab>/topology-data.json` (its default export template), `ansible-inventory.yml`, `inspect --format json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DATA, INVENTORY = "topology-data.json", "ansible-inventory.yml"


@dataclass(frozen=True, slots=True)
class Container:
    """A node as containerlab reports it. `address` is the management address without length, empty when unknown."""

    node: str
    name: str
    kind: str = ""
    image: str = ""
    group: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """What was read: nodes by name, links as pairs of `NODE:INTERFACE`, Ansible groups with the address of each host.

    `states` are container states by container name, from `inspect`; None where nobody asked. `unreadable` says which
    parts could not be read, and why: what is unknown is never equal.
    """

    name: str = ""
    nodes: dict[str, Container] = field(default_factory=dict)
    links: frozenset[frozenset[str]] = frozenset()
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    states: dict[str, str] | None = None
    unreadable: tuple[str, ...] = ()


def read(folder: Path, inspect: str | None = None) -> Left:
    """Read the folder `clab-<lab>` that a deploy leaves, and the text of `containerlab inspect --format json`."""
    unreadable: list[str] = []
    texts = {name: _text(folder / name, unreadable) for name in (DATA, INVENTORY)}
    data = _parsed(DATA, texts[DATA], unreadable)
    groups = _groups(texts[INVENTORY], unreadable)
    states = None if inspect is None else _states(inspect, unreadable)
    nodes = {name: _container(name, row) for name, row in data.get("nodes", {}).items()}
    links = frozenset(frozenset(_end(link[side]) for side in ("a", "z")) for link in data.get("links", ()))
    return Left(str(data.get("name", "")), nodes, links, groups, states, tuple(unreadable))


def _text(path: Path, unreadable: list[str]) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        unreadable.append(f"{path} is not there: the lab is not deployed, or its deploy was cut short")
    except OSError as error:
        unreadable.append(f"{path}: {error.strerror}")
    return ""


def _parsed(name: str, text: str, unreadable: list[str]) -> dict[str, Any]:
    if not text:
        return {}
    try:
        data = json.loads(text)
        if isinstance(data.get("nodes"), dict) and isinstance(data.get("links"), list):
            return dict(data)
        reason = "has no nodes and links: containerlab could not export them"
    except (ValueError, AttributeError) as error:
        reason = f"is not what containerlab writes: {error}"
    unreadable.append(f"{name} {reason}")
    return {}


def _container(name: str, row: dict[str, Any]) -> Container:
    words = {key: str(row.get(key, "")) for key in ("longname", "kind", "image", "group", "mgmt-ipv4-address")}
    return Container(name, words["longname"], words["kind"], words["image"], words["group"], words["mgmt-ipv4-address"])


def _end(end: dict[str, Any]) -> str:
    return f"{end['node']}:{end['interface']}"


def _groups(text: str, unreadable: list[str]) -> dict[str, dict[str, str]]:
    import yaml

    if not text:
        return {}
    try:
        children = yaml.safe_load(text)["all"]["children"]
        return {
            group: {host: str((row or {}).get("ansible_host", "")) for host, row in (body.get("hosts") or {}).items()}
            for group, body in children.items()
        }
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        unreadable.append(f"{INVENTORY} is not what containerlab writes: {type(error).__name__} {error}")
        return {}


def _states(text: str, unreadable: list[str]) -> dict[str, str]:
    try:
        return {row["name"]: row["state"] for row in json.loads(text)["containers"]}
    except (ValueError, KeyError, TypeError) as error:
        unreadable.append(f"`containerlab inspect` said something else than its containers: {error}")
        return {}


def differences(exported: dict[str, Any], left: Left) -> list[str]:
    """Return how what containerlab left differs from an exported topology, in words; empty when it does not.

    `exported` is what `labs.containerlab.topology.topology` returned.
    """
    found = list(left.unreadable)
    if not left.unreadable:
        # empty lists are no agreement
        found += [] if left.nodes else [f"{DATA} names no node"]
        found += [] if left.groups else [f"{INVENTORY} names no host"]
    if left.nodes and left.name != exported["name"]:
        found.append(f"the lab is called {left.name}, not {exported['name']}")
    if left.nodes:
        found += _nodes(exported, left)
        found += _links(exported, left)
    if left.groups:
        found += _hosts(exported, left)
    if left.states is not None:
        found += _running(exported, left.states)
    return found


def names(exported: dict[str, Any]) -> dict[str, str]:
    """Return the container's name of every node, as containerlab makes it."""
    prefix = exported.get("prefix", "clab")
    before = {"": "", "__lab-name": f"{exported['name']}-"}.get(prefix, f"{prefix}-{exported['name']}-")
    return {node: f"{before}{node}" for node in exported["topology"]["nodes"]}


def _nodes(exported: dict[str, Any], left: Left) -> list[str]:
    planned, kinds = exported["topology"]["nodes"], exported["topology"]["kinds"]
    found = _sets("node", planned, left.nodes)
    containers = names(exported)
    for name, spec in planned.items():
        if name not in left.nodes:
            continue
        there = left.nodes[name]
        wanted = {
            "container name": (containers[name], there.name),
            "kind": (spec["kind"], there.kind),
            "image": (spec.get("image", kinds[spec["kind"]]["image"]), there.image),
            "group": (spec.get("group", ""), there.group),
        }
        if "mgmt-ipv4" in spec:
            wanted["management address"] = (spec["mgmt-ipv4"], there.address)
        found += [f"{name}: {what} is {b or 'empty'}, not {a}" for what, (a, b) in wanted.items() if a != b]
    return found


def _links(exported: dict[str, Any], left: Left) -> list[str]:
    planned = {frozenset(link["endpoints"]) for link in exported["topology"]["links"]}
    text = {ends: " to ".join(sorted(ends, key=natural_key)) for ends in planned | left.links}
    return _sets("link", [text[ends] for ends in planned], [text[ends] for ends in left.links])


def _hosts(exported: dict[str, Any], left: Left) -> list[str]:
    wanted: dict[str, set[str]] = {}
    containers = names(exported)
    for node, spec in exported["topology"]["nodes"].items():
        wanted.setdefault(spec["kind"], set()).add(containers[node])
        if group := spec.get("labels", {}).get("ansible-group"):
            wanted.setdefault(group, set()).add(containers[node])
    found = _sets("Ansible group", wanted, left.groups)
    for group in wanted.keys() & left.groups.keys():
        found += _sets(f"Ansible group {group}: host", wanted[group], left.groups[group])
    addresses = {node.name: node.address for node in left.nodes.values()}
    told = {(host, address) for hosts in left.groups.values() for host, address in hosts.items()}
    return found + [
        f"Ansible reaches {host} at {address or 'no address'}, containerlab gave it {addresses[host]}"
        for host, address in sorted(told)
        if addresses.get(host, address) != address
    ]


def _running(exported: dict[str, Any], states: dict[str, str]) -> list[str]:
    planned = list(names(exported).values())
    found = _sets("container", planned, states)
    return found + [
        f"container {name} is {states[name]}" for name in planned if states.get(name, "running") != "running"
    ]


def _sets(what: str, planned: Iterable[str], there: Iterable[str]) -> list[str]:
    a, b = set(planned), set(there)
    found = [f"{what} {name} is planned and not there" for name in sorted(a - b, key=natural_key)]
    return found + [f"{what} {name} is there and not planned" for name in sorted(b - a, key=natural_key)]
