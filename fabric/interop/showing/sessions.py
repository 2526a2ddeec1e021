"""The BGP sessions a device is expected to have, from its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.showing.card import Table
from fabric.plan import EXTERNAL_LINK, FABRIC_LINK, GATEWAY_LINK

if TYPE_CHECKING:
    from fabric.plan import Link, Plan

HEADER = ("peer", "peer_as", "interface", "local", "remote", "families", "bfd")
_WITH_BGP = frozenset({FABRIC_LINK, GATEWAY_LINK, EXTERNAL_LINK})


def sessions(plan: Plan, device: str) -> Table:
    """One row a session: underlay and EVPN inside the site, IPv4 only towards an edge router."""
    rows = [_session(plan, device, link) for link in plan.links_of.get(device, ()) if _speaks(plan, link)]
    return Table("BGP sessions", HEADER, rows)


def _speaks(plan: Plan, link: Link) -> bool:
    return link.kind in _WITH_BGP and plan.fabrics[link.fabric].managed


def _session(plan: Plan, device: str, link: Link) -> tuple[object, ...]:
    near, far = link.end(device), link.far(device)
    families = "ipv4" if link.kind == EXTERNAL_LINK else "ipv4, evpn"
    interface = f"Vlan{link.vlan}" if link.vlan and device in plan.switches else near.interface
    remote = far.address.partition("/")[0] or "unnumbered"
    return (far.device, asn(plan, far.device), interface, near.address or "unnumbered", remote, families, "300 ms x 3")


def asn(plan: Plan, device: str) -> int:
    """The AS of a switch, gateway or edge router; 0 for a server, which has none."""
    for devices in (plan.switches, plan.gateways, plan.edges):
        if device in devices:
            return int(devices[device].asn)
    return 0
