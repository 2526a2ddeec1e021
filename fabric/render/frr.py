"""Target `frr`: any switch as a Linux router, for whiteboxes and for labs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import FABRIC_LINK, GATEWAY_LINK, SERVER_LINK
from fabric.render.frr_view import routing_text, site_view
from fabric.render.linux_machine import with_install
from fabric.render.text_templates import template

if TYPE_CHECKING:
    from typing import Any

    from fabric.plan import Plan, Switch

TARGET = "frr"

_WIRED = ("routed", "tenant_ports", "unused")
# VRF table ids lie above the kernel's own (253..255) and are the tenant's VLAN plus this
_TABLES = 10000


def devices(plan: Plan) -> tuple[str, ...]:
    """Every managed switch: its interface names are kept, whatever its own NOS is."""
    return tuple(name for name, switch in plan.switches.items() if switch.managed)


def render(plan: Plan, device: str) -> dict[str, str]:
    """Return `frr.conf`, `daemons`, `network.sh`, `sysctl.conf`, for a VTEP `nftables.conf`, and what installs them."""
    switch = plan.switches[device]
    view = _network(plan, switch)
    files = {
        "frr.conf": routing_text(plan, switch, fpm=False),
        "daemons": template("frr/daemons.j2").render(switch=switch),
        "network.sh": template("frr/network.sh.j2").render(view),
        "sysctl.conf": template("frr/sysctl.conf.j2").render(view),
    }
    if view["vrfs"]:
        files["nftables.conf"] = template("frr/nftables.conf.j2").render(view)
    return with_install(device, files, [port["interface"] for kind in _WIRED for port in view[kind]])


def _network(plan: Plan, switch: Switch) -> dict[str, Any]:
    """What network.sh makes: ports of the underlay, VRFs with their tunnel, ports of tenants."""
    fabric = plan.fabrics[switch.fabric]
    routed, tenant_ports, unused = [], [], []
    for link in plan.links_of.get(switch.name, ()):
        end = link.end(switch.name)
        port = {"interface": end.interface, "address": end.address, "text": link.far(switch.name).device}
        if link.kind in (FABRIC_LINK, GATEWAY_LINK):
            routed.append(port | {"mtu": fabric.mtu})
        elif link.kind == SERVER_LINK and link.tenant:
            tenant_ports.append(port | {"vrf": plan.tenants[link.tenant].vrf})
        else:
            unused.append(port)
    return {
        "switch": switch,
        "fabric": fabric,
        "routed": routed,
        "tenant_ports": tenant_ports,
        "unused": unused,
        "vrfs": [
            {
                "name": vrf.tenant.vrf,
                "table": _TABLES + vrf.tenant.vlan,
                "bridge": f"Vlan{vrf.tenant.vlan}",
                "vxlan": f"vtep-{vrf.tenant.vlan}",
                "vni": vrf.tenant.vni,
                "tenant": vrf.tenant.name,
            }
            for vrf in site_view(plan).tenant_vrfs(switch)
        ],
    }
