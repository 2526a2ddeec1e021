"""Hedgehog wiring and VPC objects into an inventory: switches by role, servers by name, VPCs as tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import natural_key
from fabric.interop.importing.draft import Draft, site_name
from fabric.interop.importing.wiring_fabric import WiringFabric, split_fabrics
from fabric.interop.importing.wiring_objects import require_ends, require_sound
from fabric.interop.importing.wiring_tenants import tenants_of
from fabric.interop.names import split_index
from fabric.interop.readers.hedgehog import cables_of, kind_of, name_of
from fabric.plan import SERVER
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.interop.cable_map import Cable
    from fabric.interop.readers.yaml_documents import Mapping

SOURCE = "Hedgehog wiring"
_TAKEN = frozenset(
    {"Switch", "Server", "Connection", "VPC", "VPCAttachment", "VPCPeering", "VLANNamespace", "IPv4Namespace"}
)


def recognises(documents: list[Mapping]) -> bool:
    """Whether one of the documents is a Hedgehog object."""
    return any("githedgehog.com/" in str(document.get("apiVersion", "")) for document in documents)


def read(sources: list[tuple[Path, list[Mapping]]], name: str) -> Draft:
    """Turn the objects of all files into one inventory."""
    require_sound(sources)
    documents = [document for _, found in sources for document in found]
    draft = Draft({}, f"Hedgehog objects in {', '.join(path.name for path, _ in sources)}")
    placed = [(path, cable) for path, found in sources for cable in cables_of(path, found)]
    require_ends(placed, documents)
    cables = [cable for _, cable in placed]
    switches = {name_of(d): d for d in documents if kind_of(d) == "Switch"}
    fabrics = split_fabrics(switches, cables, [path.stem for path, _ in sources])
    if not any(fabric.leaves for fabric in fabrics):
        fix = "give the wiring file, with Switch, Server and Connection objects"
        raise InputError([Problem("import.empty", name, "no leaf with a cable in the files", fix)])
    _notes(draft, documents)
    servers = _servers(draft, fabrics, cables)
    specs = {fabric.name: fabric.spec(draft) for fabric in fabrics if fabric.leaves}
    profile = "distributed" if any("backend" in spec["carries"] for spec in specs.values()) else "minimal"
    draft.site = {"site": site_name(name), "profile": profile, "fabrics": specs, "servers": servers}
    draft.tenants = tenants_of(draft, documents, cables, fabrics)
    return draft


def _notes(draft: Draft, documents: list[Mapping]) -> None:
    kinds = {kind_of(document) for document in documents}
    others = sorted(kinds - _TAKEN - {"", "SwitchGroup"})
    if others:
        draft.note(f"objects of kind {', '.join(others)}")
    if "SwitchGroup" in kinds:
        draft.note("switch groups and redundancy (servers are routed here, each port on its own)")
    if "VLANNamespace" in kinds:
        draft.note("VLAN and IPv4 namespaces (VLANs and VNIs come from this planner's own pools)")


def _servers(draft: Draft, fabrics: list[WiringFabric], cables: list[Cable]) -> dict[str, Any]:
    """Servers of one stem with the same ports are a class."""
    names = sorted({c.a.device for c in cables if c.a.role == SERVER}, key=natural_key)
    classes: dict[str, list[str]] = {}
    for server in names:
        classes.setdefault(split_index(server)[0], []).append(server)
    made = {}
    for stem, members in classes.items():
        nics: dict[str, Any] = {}
        for fabric in fabrics:
            nics.update(fabric.nics(draft, members))
        if not nics:
            continue
        name = site_name(stem)
        spec: dict[str, Any] = {"count": len(members), "kind": _kind(name), "nics": nics}
        digits = len(split_index(members[0])[1])
        if digits and digits != 3:
            spec["digits"] = digits
        expected = [f"{name}-{n:0{digits or 3}d}" for n in range(1, len(members) + 1)]
        if members != expected:
            draft.note(f"the names of servers {stem}* (they are called {expected[0]} to {expected[-1]})")
        made[name] = spec
    return made


def _kind(name: str) -> str:
    for word, kind in (("stor", "storage"), ("meta", "metadata"), ("contr", "controller")):
        if word in name:
            return kind
    return "compute"
