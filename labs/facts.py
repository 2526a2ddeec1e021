"""What a lab's routers agree on, whatever holds them: observations without times, counters, kernel numbers, MACs.

Two engines that run the same files must come to the same facts. Link-local addresses are made of MACs, so neighbours
and next hops that have one are known by their interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labs.converge import bfd_peers

if TYPE_CHECKING:
    from labs.converge import Observation

_LINK_LOCAL = "fe80:"
# the management interface, which only containers have
_MANAGEMENT = "eth0"


def of(seen: Observation) -> dict[str, Any]:
    """Return the facts of one router, JSON-ready and in a fixed order."""
    return {
        "bgp": _sessions(seen),
        "bfd": sorted([_peer(peer), str(peer.get("vrf", "")), str(peer.get("status", ""))] for peer in _bfd(seen)),
        "vni": sorted([str(e.get("vni")), str(e.get("vrf")), str(e.get("state"))] for e in _vrfs(seen)),
        "rmac": {str(entry["vni"]): sorted(seen.rmac_vteps(str(entry["vni"]))) for entry in _vrfs(seen)},
        "routes": {vrf: _routes(table) for vrf, table in sorted(seen.said.get("route", {}).items())},
    }


def _bfd(seen: Observation) -> list[dict[str, Any]]:
    return list(bfd_peers(seen.said.get("bfd", [])))


def _vrfs(seen: Observation) -> list[dict[str, Any]]:
    return list(seen.said.get("vni", {}).get("vrfs", []))


def _peer(peer: dict[str, Any]) -> str:
    address = str(peer.get("peer", ""))
    return str(peer.get("interface", "")) if address.startswith(_LINK_LOCAL) else address


def _sessions(seen: Observation) -> list[list[str]]:
    found = []
    for vrf, families in seen.said.get("bgp", {}).items():
        for family, body in families.items() if isinstance(families, dict) else ():
            for neighbor, peer in body.get("peers", {}).items() if isinstance(body, dict) else ():
                # how many prefixes a neighbour sent depends on which of equal paths was there first
                found.append([vrf, family, neighbor, str(peer.get("state", "")), str(peer.get("remoteAs", ""))])
    return sorted(found)


def _routes(table: dict[str, Any]) -> list[list[Any]]:
    """Prefix, protocol and next hops of the routes in the kernel."""
    found = []
    for prefix, entries in table.items():
        if prefix.startswith(_LINK_LOCAL):
            continue
        for entry in entries:
            hops = sorted(_hop(hop) for hop in entry.get("nexthops", []) if hop.get("fib"))
            if entry.get("installed") and hops != [_MANAGEMENT]:
                found.append([prefix, str(entry.get("protocol", "")), hops])
    return sorted(found)


def _hop(hop: dict[str, Any]) -> str:
    address = str(hop.get("ip", ""))
    where = str(hop.get("interfaceName", ""))
    return where if not address or address.startswith(_LINK_LOCAL) else f"{address} {where}".strip()
