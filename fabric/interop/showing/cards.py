"""The card of each kind of thing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fabric.gateway.targets import default_route_target
from fabric.interop.physical import Cage, Cages, ways
from fabric.interop.showing.card import Card, Table
from fabric.interop.showing.sessions import asn, sessions

if TYPE_CHECKING:
    from fabric.plan import EdgeRouter, Exposure, Gateway, GatewayGroup, Link, Plan, Server, Switch, Tenant

_LINK_HEADER = ("port", "interface", "speed", "use", "peer", "peer_port", "address", "peer_address", "tenant", "cable")


def switch_card(plan: Plan, switch: Switch) -> Card:
    """A leaf, border leaf or spine."""
    used = Counter(port.speed for port in switch.ports if port.link)
    spare = Counter(port.speed for port in switch.ports if not port.link)
    facts = {
        "fabric": switch.fabric,
        "model": f"{switch.model}, {switch.nos}",
        "AS": switch.asn,
        "router id": switch.router_id,
        "VTEP": switch.vtep,
        "management": switch.management,
        "MAC": switch.mac,
        "rack": switch.rack,
        "managed": switch.managed,
        "VRFs": list(switch.vrfs),
        "ports used": [f"{count} x {speed}G" for speed, count in used.items()],
        "ports free": [f"{count} x {speed}G" for speed, count in spare.items()],
        "servers": len({far for far in _peers(plan, switch.name) if far in plan.servers}) or None,
    }
    tables = [_links(plan, switch.name), sessions(plan, switch.name)]
    return Card(switch.name, f"{switch.kind} of {plan.site}", facts, tables)


def server_card(plan: Plan, server: Server) -> Card:
    """A server: its NIC ports, tenants, addresses, and whom it may talk to."""
    tenants = list(dict.fromkeys(port.tenant for port in server.ports if port.tenant))
    reach = sorted({peer for name in tenants for peer in plan.tenants[name].peers})
    facts = {
        "class": server.server_class,
        "accelerators": server.xpus or None,
        "management": server.management,
        "BMC": server.bmc,
        "rack": server.rack,
        "tenants": tenants,
        "reaches tenants": [*tenants, *reach],
        "service addresses": [f"{s.address} ({s.tenant}, {s.fabric})" for s in server.services],
        "first hops": list(dict.fromkeys(_peers(plan, server.name))),
    }
    header = ("port", "nic", "speed", "fabric", "rail", "rdma", "leaf", "leaf_port", "tenant", "address", "gateway")
    rows = []
    for port in server.ports:
        far = plan.links[port.link].far(server.name) if port.link in plan.links else None
        where = (far.device, far.port) if far else ("not cabled", "")
        own = (port.name, port.model, port.speed, port.fabric, port.rail, port.rdma)
        rows.append((*own, *where, port.tenant, port.address, port.gateway))
    return Card(server.name, f"{server.kind} server of {plan.site}", facts, [Table("ports", header, rows)])


def gateway_card(plan: Plan, gateway: Gateway) -> Card:
    """A gateway: where it is plugged in, its place in each group, the tenants and exposures it serves."""
    facts = {
        "class": gateway.gateway_class,
        "fabric": gateway.fabric,
        "AS": gateway.asn,
        "router id": gateway.router_id,
        "VTEP": gateway.vtep,
        "RMAC": gateway.router_mac,
        "management": gateway.management,
        "rack": gateway.rack,
        "groups": [f"{group} (rank {rank})" for group, rank in gateway.ranks.items()],
        "tenants": list(gateway.tenants),
        "health check": f"every {gateway.health_interval_s} s, {gateway.health_failures} failures take it out",
        "drain deadline": f"{gateway.drain_deadline_s} s",
        "conntrack entries": gateway.conntrack_max,
    }
    exposures = [e for t in plan.tenants.values() for e in t.exposures if e.group in gateway.ranks]
    tables = [_links(plan, gateway.name), sessions(plan, gateway.name), _exposures(exposures)]
    return Card(gateway.name, f"gateway of {plan.site}", facts, tables)


def edge_card(plan: Plan, edge: EdgeRouter) -> Card:
    """The provider's router, as far as the plan knows it."""
    facts = {"AS": edge.asn, "router id": edge.router_id, "ours": "no: labs play it"}
    return Card(edge.name, f"edge router of {plan.site}", facts, [_links(plan, edge.name), sessions(plan, edge.name)])


def group_card(plan: Plan, group: GatewayGroup) -> Card:
    """A gateway group: who is preferred, and what goes through it."""
    exposures = [e for t in plan.tenants.values() for e in t.exposures if e.group == group.name]
    facts = {"gateways, preferred first": list(group.gateways)}
    return Card(group.name, f"gateway group of {plan.site}", facts, [_exposures(exposures)])


def tenant_card(plan: Plan, tenant: Tenant) -> Card:
    """A tenant: its numbers, members, peers and what the outside sees of it."""
    where = [switch.name for switch in plan.switches.values() if tenant.vrf in switch.vrfs]
    default = default_route_target(tenant.rt)
    facts = {
        "VRF": tenant.vrf,
        "L3VNI": tenant.vni,
        "VLAN": tenant.vlan,
        "RD": f"<router id>:{tenant.rd_number}",
        "RT": tenant.rt,
        "imports": [tenant.rt, f"{default} (default route, from gateways)"],
        "import vrf": _leaked(plan, tenant),
        "peers": list(tenant.peers) or "none: default deny",
        "service": "yes: reached by its peers, no way between them" if tenant.service else None,
        "subnets": [f"{s.prefix} ({', '.join(dict.fromkeys((s.name, s.fabric)))})" for s in tenant.subnets],
        "switches": where,
        "gateways": [g.name for g in plan.gateways.values() if tenant.name in g.tenants],
    }
    header = ("server", "port", "fabric", "speed", "leaf", "leaf_port", "address", "gateway")
    rows = []
    for server in plan.servers.values():
        for port in server.ports:
            if port.tenant == tenant.name and port.link in plan.links:
                far = plan.links[port.link].far(server.name)
                at = (far.device, far.port)
                rows.append((server.name, port.name, port.fabric, port.speed, *at, port.address, port.gateway))
    return Card(
        tenant.name,
        f"tenant of {plan.site}",
        facts,
        [Table("members", header, rows), _exposures(list(tenant.exposures))],
    )


def link_card(plan: Plan, link: Link) -> Card:
    """A cable or breakout leg: both ends in both kinds of name."""
    cages = Cages(plan)
    both = _cages(cages, link)
    split = [f"{cage.device} {cage.cage} is {cage.mode}" for cage in both if ways(cage.mode) > 1]
    facts = {
        "a end": f"{link.a.device} {link.a.port} ({link.a.interface})",
        "b end": f"{link.b.device} {link.b.port} ({link.b.interface})",
        "cable": link.cable,
        "fabric": link.fabric,
        "use": link.kind,
        "speed": f"{link.speed} Gb/s",
        "medium": f"{link.medium}, {link.length_m} m" if link.length_m else link.medium,
        "breakout": split,
        "tenant": link.tenant,
        "access VLAN": link.vlan or None,
        "addresses": [end.address for end in (link.a, link.b) if end.address] or None,
        "AS": [f"{end.device} {asn(plan, end.device)}" for end in (link.a, link.b) if asn(plan, end.device)],
    }
    split_cages = {(cage.device, cage.cage) for cage in both if ways(cage.mode) > 1}
    near = [x for device, _ in split_cages for x in plan.links_of[device] if x.id != link.id]
    same = [x for x in near if split_cages & {(c.device, c.cage) for c in _cages(cages, x)}]
    parallel = [
        x for x in plan.links_of[link.a.device] if x.id != link.id and x.far(link.a.device).device == link.b.device
    ]
    header = ("id", "a", "a_port", "b", "b_port", "speed")
    tables = [
        Table(title, header, [(x.id, x.a.device, x.a.port, x.b.device, x.b.port, x.speed) for x in links])
        for title, links in (("other legs of the cable", same), ("parallel links", parallel))
    ]
    return Card(link.id, f"link of {plan.site}", facts, tables)


def spare_port_card(plan: Plan, switch: Switch, name: str) -> Card:
    """A switch port that nothing is plugged into."""
    port = next(p for p in switch.ports if p.name == name)
    facts = {
        "interface": port.interface,
        "speed": f"{port.speed} Gb/s",
        "lanes": port.lanes,
        "zone": port.zone or "none",
        "FEC": port.fec,
    }
    return Card(f"{switch.name} {name}", f"spare port of {plan.site}", facts)


def _cages(cages: Cages, link: Link) -> tuple[Cage, Cage]:
    return cages.of(link.a, link.speed), cages.of(link.b, link.speed)


def _peers(plan: Plan, device: str) -> list[str]:
    return [link.far(device).device for link in plan.links_of.get(device, ())]


def _links(plan: Plan, device: str) -> Table:
    rows = []
    for link in plan.links_of.get(device, ()):
        near, far = link.end(device), link.far(device)
        addresses = (near.address, far.address)
        own = (near.port, near.interface, link.speed, link.kind)
        rows.append((*own, far.device, far.port, *addresses, link.tenant, link.cable))
    return Table("links", _LINK_HEADER, rows)


def _leaked(plan: Plan, tenant: Tenant) -> list[str]:
    """The peers' VRFs that the tenant's VRF takes subnets from, and the fabrics where it does."""
    ours = {link.fabric for link in plan.links.values() if link.tenant == tenant.name}
    found = []
    for name in tenant.peers:
        peer = plan.tenants[name]
        fabrics = [f for f in dict.fromkeys(subnet.fabric for subnet in peer.subnets) if f in ours]
        if fabrics:
            found.append(f"{peer.vrf} ({', '.join(fabrics)})")
    return found


def _exposures(exposures: list[Exposure]) -> Table:
    header = ("exposure", "tenant", "mode", "group", "private", "public", "ports", "idle_timeout_s", "shares")
    rows = [
        (
            e.name,
            e.tenant,
            e.mode,
            e.group,
            list(e.private),
            list(e.public),
            [f"{p.protocol}/{p.public_port} to {p.private_address}:{p.private_port}" for p in e.ports],
            e.idle_timeout_s or None,
            [f"{share.gateway} {share.first}-{share.last}" for share in e.shares],
        )
        for e in exposures
    ]
    return Table("exposures", header, rows, nothing="none: stateless")
