"""What a network engineer asks first: sessions, BFD, EVPN, VNIs, RMACs, tenant routes, conntrack, RDMA devices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from labs import converge
from labs.model import GATEWAY, SERVER

if TYPE_CHECKING:
    from labs.converge import Observation
    from labs.model import Lab, Node


def collect(lab: Lab) -> dict[str, Any]:
    """Observe every node from inside the machine and return JSON-ready data, with what differs from the plan."""
    from labs.native import faults, lldp
    from labs.native.nodes import run_in

    seen = {name: converge.observe(name) for name in converge.routers(lab)}
    rows = [router(seen[name], node) for node in lab.nodes if (name := node.name) in seen]
    for row in rows:
        if row["kind"] == GATEWAY:
            row["conntrack"] = _number(
                run_in(row["node"], ["cat", "/proc/sys/net/netfilter/nf_conntrack_count"]).stdout
            )
    return {
        "lab": lab.name,
        "site": lab.site,
        "plan_digest": lab.plan_digest,
        "routers": rows,
        "servers": [_server(node) for node in lab.nodes if node.kind == SERVER],
        "links": [
            {
                "id": link.id,
                "a": f"{link.a.node}:{link.a.interface}",
                "b": f"{link.b.node}:{link.b.interface}",
                "mtu": link.mtu,
            }
            for link in lab.links
        ],
        "faults": faults.listed(),
        "missing": converge.missing(lab.expect, seen) + lldp.missing(lab, lldp.observe(lab)),
    }


def router(seen: Observation, node: Node) -> dict[str, Any]:
    """Return the figures of one router from its observation."""
    sessions = [
        (vrf, neighbor, str(peer.get("state", "")))
        for vrf, families in seen.said.get("bgp", {}).items()
        if isinstance(families, dict)
        for family in families.values()
        if isinstance(family, dict)
        for neighbor, peer in family.get("peers", {}).items()
    ]
    names = {(vrf, neighbor) for vrf, neighbor, _ in sessions}
    down = {(vrf, neighbor) for vrf, neighbor, state in sessions if state != "Established"}
    peers = list(converge._bfd_peers(seen.said.get("bfd", [])))
    vrfs = seen.said.get("vni", {}).get("vrfs", [])
    return {
        "node": seen.node,
        "kind": node.kind,
        "bgp": {"up": len(names - down), "all": len(names), "down": sorted(neighbor for _, neighbor in down)},
        "bfd": {"up": sum(1 for peer in peers if peer.get("status") == "up"), "all": len(peers)},
        "vni": {"up": sum(1 for entry in vrfs if entry.get("state") == "Up"), "all": len(vrfs)},
        "rmac": {str(entry["vni"]): sorted(seen.rmac_vteps(str(entry["vni"]))) for entry in vrfs},
        "routes": {vrf: len(seen.routes(vrf)) for vrf in seen.said.get("route", {})},
    }


def _server(node: Node) -> dict[str, Any]:
    from labs.native.bringup import rdma_name
    from labs.native.nodes import run_in

    devices = []
    if node.rdma:
        wanted = {rdma_name(node.name, interface) for interface in node.rdma}
        links = json.loads(run_in(node.name, ["rdma", "-j", "link", "show"]).stdout or "[]")
        devices = [
            {"device": link["ifname"], "interface": link.get("netdev", ""), "state": link.get("state", "")}
            for link in links
            if link.get("ifname") in wanted
        ]
    return {"node": node.name, "tenants": list(node.tenants), "rdma": devices, "rdma_wanted": len(node.rdma)}


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else -1
