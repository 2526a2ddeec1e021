"""VPCs, attachments and peerings as tenants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import host_patterns, natural_key
from fabric.interop.importing.draft import Draft, site_name
from fabric.interop.names import split_index
from fabric.interop.readers.hedgehog import kind_of, name_of
from fabric.interop.readers.yaml_documents import dig
from fabric.plan import SERVER

if TYPE_CHECKING:
    from fabric.interop.cable_map import Cable
    from fabric.interop.importing.wiring_fabric import WiringFabric
    from fabric.interop.readers.yaml_documents import Mapping

_NAME_MAX = 11


def tenants_of(
    draft: Draft, documents: list[Mapping], cables: list[Cable], fabrics: list[WiringFabric]
) -> dict[str, Any]:
    """Return the tenants by name: servers that are attached, one subnet a fabric, peers."""
    at = {cable.id: cable for cable in cables if cable.a.role == SERVER}
    home = {switch: fabric.name for fabric in fabrics for switch in fabric.switches}
    members: dict[str, set[str]] = {}
    touched: dict[str, set[str]] = {}
    for document in documents:
        if kind_of(document) != "VPCAttachment":
            continue
        vpc = str(dig(document, "spec", "subnet")).partition("/")[0]
        cable = at.get(str(dig(document, "spec", "connection")))
        if cable is None:
            draft.note(f"attachment {name_of(document)}: its connection is not in these files, or not to a server")
            continue
        members.setdefault(vpc, set()).add(_renamed(cable.a.device))
        touched.setdefault(vpc, set()).add(home.get(cable.b.device, ""))
    made = {}
    for document in documents:
        if kind_of(document) == "VPC":
            vpc = name_of(document)
            made[site_name(vpc, _NAME_MAX)] = _tenant(draft, document, members.get(vpc, set()), touched.get(vpc, set()))
    _peer(documents, made)
    return made


def _renamed(server: str) -> str:
    stem, number = split_index(server)
    return f"{site_name(stem)}-{number}" if number else site_name(server)


def _tenant(draft: Draft, document: Mapping, servers: set[str], fabrics: set[str]) -> dict[str, Any]:
    name = name_of(document)
    subnets = dig(document, "spec", "subnets")
    found = [row for row in subnets.values() if isinstance(row, dict)] if isinstance(subnets, dict) else []
    if any(dig(row, "dhcp", "enable") for row in found):
        draft.note("DHCP (every server port has a planned /31)")
    tenant: dict[str, Any] = {}
    if servers:
        tenant["servers"] = host_patterns(sorted(servers, key=natural_key))
    prefixes = [str(row["subnet"]) for row in found if row.get("subnet")]
    if prefixes:
        tenant["subnets"] = dict(zip(sorted(fabrics) or ["default"], prefixes, strict=False))
    if len(prefixes) > max(len(fabrics), 1):
        draft.note(f"VPC {name}: {len(prefixes)} subnets, one a fabric is kept")
    if len(prefixes) < len(fabrics):
        draft.note(f"VPC {name}: its one subnet is for {sorted(fabrics)[0]}, the other fabric needs one of its own")
    return tenant


def _peer(documents: list[Mapping], tenants: dict[str, Any]) -> None:
    for document in documents:
        if kind_of(document) != "VPCPeering":
            continue
        permits = dig(document, "spec", "permit")
        for permit in permits if isinstance(permits, list) else []:
            pair = [site_name(str(vpc), _NAME_MAX) for vpc in permit] if isinstance(permit, dict) else []
            if len(pair) == 2 and all(vpc in tenants for vpc in pair):
                peers = tenants[pair[0]].setdefault("peers", [])
                if pair[1] not in peers:
                    peers.append(pair[1])
