"""SONiC tables of the overlay: tenant VRFs, their L3VNIs, and the tunnel endpoint.

Each tenant VRF has one VLAN, whose SVI has no address and only carries the L3VNI; a second SVI there would take the
VNI away from it. The VLAN-to-VNI map and the VRF's VNI must agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.render.frr_view import site_view

if TYPE_CHECKING:
    from fabric.plan import Plan, Switch
    from fabric.render.sonic_json import Table, Tables

TUNNEL = "vtep"
_NVO = "nvo1"


def overlay_tables(plan: Plan, switch: Switch) -> Tables:
    """Return the VXLAN tables, to be merged over `port_tables` (VLAN and VLAN_INTERFACE extend what is there)."""
    if not switch.vtep:
        return {}
    mtu = str(plan.fabrics[switch.fabric].server_mtu)
    vrfs: Table = {}
    maps: Table = {}
    vlans: Table = {}
    interfaces: Table = {}
    for item in site_view(plan).tenant_vrfs(switch):
        tenant, vlan = item.tenant, f"Vlan{item.tenant.vlan}"
        vlans[vlan] = {
            "vlanid": str(tenant.vlan),
            "mtu": mtu,
            "admin_status": "up",
            "description": f"L3VNI {tenant.vni} of {tenant.vrf}",
        }
        interfaces[vlan] = {"vrf_name": tenant.vrf}
        vrfs[tenant.vrf] = {"vni": str(tenant.vni)}
        maps[f"{TUNNEL}|map_{tenant.vni}_{vlan}"] = {"vlan": vlan, "vni": str(tenant.vni)}
    return {
        "VRF": vrfs,
        "VLAN": vlans,
        "VLAN_INTERFACE": interfaces,
        "VXLAN_TUNNEL": {TUNNEL: {"src_ip": switch.vtep}},
        "VXLAN_EVPN_NVO": {_NVO: {"source_vtep": TUNNEL}},
        "VXLAN_TUNNEL_MAP": maps,
    }
