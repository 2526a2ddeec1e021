"""Target `gateway`: an x86 gateway with FRR, VRFs, VXLAN and nftables, and its own control program."""

from __future__ import annotations

import json
from ipaddress import IPv4Network, collapse_addresses
from typing import TYPE_CHECKING, Any

from fabric.gateway import timeouts
from fabric.gateway.capacity import share_addresses
from fabric.gateway.served import (
    EDGE_TABLE,
    EDGE_VRF,
    HANDOVER_BIT,
    MED_STEP,
    RANK_ASN,
    announcements,
    edge_neighbors,
    fabric_neighbors,
    served,
)
from fabric.gateway.space import NEVER_OUTSIDE
from fabric.prefix_counts import of_fabric, prefix_limit
from fabric.render.frr_view import loopback_pools
from fabric.render.linux_machine import with_install
from fabric.render.text_templates import template
from fabric.resources import data_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fabric.gateway.served import Announcement, Neighbor, Served, Shown
    from fabric.plan import Gateway, Plan

TARGET = "gateway"
DRAIN_MARK = 65535  # beside the ranks, which count from 0: other gateways pass no flows on to who has it
ICMP_SOURCE = "192.0.0.8"  # RFC 7600: the address of a router that has none; sender of ICMP errors towards tenants
EDGE_MTU = 1500
_COMMANDS = "# ---------------------------------------------------------------------- commands\n"
# why a packet of a tenant is dropped, as counters say it; what no tenant is known of has the gateway's own
_REASONS = ("drained", "private", "invalid", "no-state")
_TEMPLATES = ("frr.conf", "daemons", "network.sh", "sysctl.conf", "nftables.conf")


def devices(plan: Plan) -> tuple[str, ...]:
    """Return the gateways of the site."""
    return tuple(plan.gateways)


def render(plan: Plan, device: str) -> dict[str, str]:
    """Return the files of a gateway: name -> text."""
    view = view_model(plan, plan.gateways[device])
    files = {name: template(f"gateway/{name}.j2").render(view) for name in _TEMPLATES}
    files["gatewayctl"] = control_program()
    files["gateway.json"] = json.dumps(facts(view), indent=2) + "\n"
    return with_install(device, files, [*view["fabric_ports"], *view["edge_ports"]])


def control_program() -> str:
    """Return gatewayctl: two files here, one program on a gateway."""
    folder = data_folder("templates") / "gateway" / "gatewayctl"
    first, second = ((folder / name).read_text(encoding="utf-8") for name in ("gateway.py", "commands.py"))
    return first + "\n\n" + _COMMANDS + second.partition(_COMMANDS)[2]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def collapsed(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Return the fewest prefixes that hold the same addresses: nftables refuses intervals that overlap."""
    return tuple(str(network) for network in collapse_addresses(IPv4Network(prefix) for prefix in prefixes))


def view_model(plan: Plan, gateway: Gateway) -> dict[str, Any]:
    """Return everything that the templates show; they decide nothing."""
    tenants = served(plan, gateway)
    public = announcements(tenants, gateway)
    inside, outside = fabric_neighbors(plan, gateway), edge_neighbors(plan, gateway)
    fabric = plan.fabrics[gateway.fabric]
    edge_ports = [n.interface for n in outside]
    return {
        "name": gateway.name,
        "asn": gateway.asn,
        "router_id": gateway.router_id,
        "vtep": gateway.vtep,
        "router_mac": gateway.router_mac,
        "max_paths": fabric.max_paths,
        "fabric_mtu": fabric.mtu,
        "tenant_mtu": fabric.server_mtu,
        "edge_mtu": int(plan.settings.get("external_mtu", EDGE_MTU)),
        "vxlan_port": fabric.vxlan_port,
        "edge_vrf": EDGE_VRF,
        "edge_table": EDGE_TABLE,
        "rank_asn": RANK_ASN,
        "handover_bit": f"{HANDOVER_BIT:#x}",
        "icmp_source": ICMP_SOURCE,
        "icmp_timeout": timeouts.ICMP_S,
        "dns_port": timeouts.DNS_PORT,
        "never_out": NEVER_OUTSIDE,
        "loopbacks": loopback_pools(plan),
        "limit": prefix_limit(of_fabric(plan, gateway.fabric)),
        "quoted": _quoted,
        "collapsed": lambda prefixes: ", ".join(collapsed(prefixes)),
        "fabric": inside,
        "edges": outside,
        "gateway": gateway,
        "conntrack_max": gateway.conntrack_max,
        "conntrack_buckets": gateway.conntrack_max,
        **_routing(tenants, public),
        **_filtering(tenants, inside, outside, edge_ports),
    }


def _routing(tenants: Sequence[Served], public: Sequence[Announcement]) -> dict[str, Any]:
    by_rank: dict[int, list[str]] = {}
    for item in sorted(public, key=lambda a: a.rank):
        by_rank.setdefault(item.rank, []).append(item.prefix)
    return {
        "tenants": tenants,
        "announcements": public,
        "public_by_rank": list(by_rank.items()),
        "tenant_ranks": sorted({item.rank for item in tenants}),
        "med": lambda rank: MED_STEP * (rank + 1),
    }


def _filtering(
    tenants: Sequence[Served], inside: Sequence[Neighbor], outside: Sequence[Neighbor], edge_ports: list[str]
) -> dict[str, Any]:
    shown = [(item, s) for item in tenants for s in item.shown]
    return {
        "fabric_ports": [n.interface for n in inside],
        "edge_ports": edge_ports,
        "edge_inputs": [EDGE_VRF, *edge_ports],
        "own": [n.local.partition("/")[0] for n in outside],
        "edge_routers": [n.address for n in outside],
        "bridges": [item.bridge for item in tenants],
        "reasons": _REASONS,
        "tenant_inputs": [name for item in tenants for name in (item.bridge, item.tenant.vrf)],
        "standby_macs": sorted({s.router_mac for item in tenants for s in item.standbys}),
        "numbers": ", ".join(f"{item.number} : {item.number}" for item in tenants),
        "zones": [(prefix, item.number) for item in tenants for prefix in item.public],
        "forwards": [forward for _, s in shown for forward in _forwards(s)],
        "statics": [block for item, s in shown for block in _blocks(item, s)],
        "marks": [(s.mark, s.label) for _, s in shown],
        "labels": [s.label for _, s in shown],
        "longest_idle": max((s.exposure.idle_timeout_s for _, s in shown), default=0) or timeouts.DEFAULT_IDLE_S,
        "timeouts": [policy for _, s in shown for policy in _policies(s)],
    }


def _forwards(shown: Shown) -> list[dict[str, Any]]:
    public = shown.exposure.public[0].partition("/")[0] if shown.exposure.public else ""
    return [
        {
            "public": public,
            "protocol": m.protocol,
            "public_port": m.public_port,
            "private": m.private_address,
            "private_port": m.private_port,
        }
        for m in shown.exposure.ports
    ]


def _blocks(item: Served, shown: Shown) -> list[dict[str, Any]]:
    return [
        {
            "number": item.number,
            "bridge": item.bridge,
            "label": shown.label,
            "single": public.prefixlen == 32,
            "private": _plain(private),
            "public": _plain(public),
            "inward": _translation("ip daddr", private),
            "outward": _translation("ip saddr", public),
        }
        for private, public in shown.pairs
    ]


def _plain(network: IPv4Network) -> str:
    return str(network.network_address) if network.prefixlen == 32 else str(network)


def _translation(field: str, to: IPv4Network) -> str:
    """Return the nftables expression that keeps the host part of an address and replaces its network part."""
    if to.prefixlen == 32:
        return str(to.network_address)
    return f"{field} & {to.hostmask} | {to.network_address}"


def _policies(shown: Shown) -> list[dict[str, str]]:
    return [
        {
            "name": f"{protocol}.{shown.label}",
            "protocol": "udp" if protocol == "dns" else protocol,
            "policy": ", ".join(f"{state} : {seconds}" for state, seconds in shown.policy(protocol).items()),
        }
        for protocol in shown.protocols
    ]


def facts(view: dict[str, Any]) -> dict[str, Any]:
    """Return what `gatewayctl` and live checks need to know about this gateway."""
    gateway: Gateway = view["gateway"]
    tenants: Sequence[Served] = view["tenants"]
    return {
        "name": gateway.name,
        "asn": gateway.asn,
        "vtep": gateway.vtep,
        "table": "kvfabric",
        "edge_vrf": EDGE_VRF,
        "fabric_sessions": [{"address": n.address, "device": n.device} for n in view["fabric"]],
        "edge_sessions": [{"address": n.address, "device": n.device} for n in view["edges"]],
        "route_maps": {"edge": "EDGE-OUT", "fabric": "DEFAULT-ONLY"},
        "loopback_route_map": "FABRIC-OUT",
        "drain_mark": f"{RANK_ASN}:{DRAIN_MARK}",
        "health": {"interval_s": gateway.health_interval_s, "failures": gateway.health_failures},
        "drain_deadline_s": gateway.drain_deadline_s,
        "conntrack_max": gateway.conntrack_max,
        "announced": [{"prefix": a.prefix, "med": a.med} for a in view["announcements"]],
        "tenants": [_tenant_facts(item, gateway.name) for item in tenants],
    }


def _tenant_facts(item: Served, gateway: str) -> dict[str, Any]:
    return {
        "name": item.tenant.name,
        "vrf": item.tenant.vrf,
        "vni": item.tenant.vni,
        "zone": item.number,
        "table": item.table,
        "bridge": item.bridge,
        "vxlan": item.vxlan,
        "handover_table": item.handover_table,
        "standbys": [{"name": s.name, "vtep": s.vtep, "router_mac": s.router_mac} for s in item.standbys],
        "rank": item.rank,
        "exposures": [_exposure_facts(s, gateway) for s in item.shown],
    }


def _exposure_facts(shown: Shown, gateway: str) -> dict[str, Any]:
    exposure = shown.exposure
    return {
        "name": exposure.name,
        "mode": exposure.mode,
        "mark": shown.mark,
        "label": shown.label,
        "private": list(exposure.private),
        "public": list(exposure.public),
        "pool": [shown.first, shown.last] if shown.first else [],
        "addresses": share_addresses(exposure, gateway) if shown.first else 0,
        "idle_timeout_s": exposure.idle_timeout_s,
        "timeouts": {protocol: shown.policy(protocol) for protocol in shown.protocols},
    }
