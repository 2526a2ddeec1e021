"""The world outside the gateways, which no site configures: edge routers, an internet host, load balancers.

The plan names the edge routers (the provider's) and says what the gateways announce to them. The rest is the lab's,
in the provider's AS: `internet-01`, a host that calls and is called; `vip-01` and `vip-02`, which both announce one VIP
per tenant with forwarded TCP ports. The edge routers spread clients over the two (ECMP, BFD), haproxy on each takes a
client's connection to a forwarded public address, so a connection goes by edge and gateway as any other from outside.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, ip_interface
from typing import TYPE_CHECKING, Any

from fabric.gateway.served import announcements, served
from fabric.plan import EXTERNAL_LINK
from fabric.problem import InputError, Problem
from fabric.render.text_templates import template
from labs import model
from labs.balancer import SOCKET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fabric.inventory.load import Inventory
    from fabric.plan import Exposure, Plan, PortMap, Tenant

# RFC 5737 documentation ranges: what only the outside has. Every edge router answers on the first address.
INTERNET_ADDRESS = "198.51.100.1"
STATIONS = {"internet-01": "198.51.100.2", "vip-01": "198.51.100.11", "vip-02": "198.51.100.12"}
INTERNET_HOST, *BALANCERS = STATIONS
_INTERNET = IPv4Network("198.51.100.0/24")
_LINKS = IPv4Network("198.51.100.128/25")
_VIPS = IPv4Network("192.0.2.0/24")

_MTU = 1500
# seconds, and how often in a row; a failover by BFD (1 s) costs a check or two and no backend
_CHECK = {"check_s": 1, "fall": 3, "rise": 1, "connect_s": 2, "retries": 4}
_WHAT = {
    model.EDGE: "the provider's router outside the gateways",
    model.INTERNET: "a host of the internet",
    model.LOADBALANCER: "a load balancer outside the gateways",
}


@dataclass(frozen=True, slots=True)
class Cable:
    """A link of the outside, from a station to an edge router; addresses carry a length."""

    station: str
    port: str
    address: str
    edge: str
    edge_port: str
    edge_address: str

    @property
    def id(self) -> str:
        """Its name in the lab."""
        return f"{self.station}:{self.port}--{self.edge}:{self.edge_port}"


@dataclass(frozen=True, slots=True)
class Backend:
    """A forwarded port, as a load balancer reaches it (public) and where it leads (private)."""

    name: str
    address: str
    private: str


@dataclass(frozen=True, slots=True)
class Service:
    """What a VIP shows on one port: forwarded ports of one tenant that have this number outside."""

    name: str
    vip: str
    port: int
    idle_timeout_s: int
    backends: tuple[Backend, ...]

    @property
    def address(self) -> str:
        """VIP and port."""
        return f"{self.vip}:{self.port}"


def extend(plan: Plan, lab: model.Lab, inventory: Inventory | None = None) -> model.Lab:
    """Return the lab with its outside: nodes, links, and what they should look like. Raises InputError.

    A lab without an edge router has no outside. `inventory` says in which line stands what cannot be.
    """
    edges = [node.name for node in lab.nodes if node.kind == model.EDGE]
    if not edges:
        return lab
    _refuse_taken(plan, inventory)
    shown = services(plan, lab)
    names = [name for name in STATIONS if shown or name == INTERNET_HOST]
    wires = list(cables(names, edges))
    kinds = {INTERNET_HOST: model.INTERNET}
    nodes = tuple(model.Node(name, kinds.get(name, model.LOADBALANCER), name) for name in names)
    links = tuple(model.Link(c.id, model.End(c.station, c.port), model.End(c.edge, c.edge_port), _MTU) for c in wires)
    expect = replace(
        lab.expect,
        sessions=(*lab.expect.sessions, *(session for cable in wires for session in _sessions(cable))),
        routes=(*lab.expect.routes, *_routes(plan, lab, edges, shown)),
        services=tuple(
            model.Service(name, service.name, service.address, {b.name: b.address for b in service.backends})
            for name in names[1:]
            for service in shown
        ),
    )
    return replace(lab, nodes=(*lab.nodes, *nodes), links=(*lab.links, *links), expect=expect)


def _refuse_taken(plan: Plan, inventory: Inventory | None) -> None:
    problems = [
        _taken(tenant.name, index, exposure, prefix, taken, inventory)
        for tenant in plan.tenants.values()
        for index, exposure in enumerate(tenant.exposures)
        for prefix in exposure.public
        for taken in (_INTERNET, _VIPS)
        if taken.overlaps(IPv4Network(prefix))
    ]
    if problems:
        raise InputError(problems)


def _taken(
    tenant: str, index: int, exposure: Exposure, prefix: str, taken: IPv4Network, inventory: Inventory | None
) -> Problem:
    subject = f"tenant {tenant} {exposure.name}"
    text = f"public {prefix} is of {taken}, which plays the internet in a lab"
    fix = "use other addresses, such as 203.0.113.0/24"
    if inventory is None:
        return Problem("lab.outside", subject, text, fix)
    return inventory.problem("lab.outside", ("tenants", tenant, "expose", index, "public"), subject, text, fix)


def cables(stations: Sequence[str], edges: Sequence[str]) -> Iterator[Cable]:
    """Yield the links of every station to every edge router."""
    blocks = _LINKS.subnets(new_prefix=31)
    for station, (number, edge) in itertools.product(stations, enumerate(edges, 1)):
        block = next(blocks)
        yield Cable(station, f"eth{number}", f"{block[1]}/31", edge, station, f"{block[0]}/31")


def _sessions(cable: Cable) -> Iterator[model.Session]:
    for here, far in ((cable.station, cable.edge_address), (cable.edge, cable.address)):
        yield model.Session(here, str(ip_interface(far).ip), bfd=True, evpn=False)


def _routes(plan: Plan, lab: model.Lab, edges: list[str], shown: list[Service]) -> Iterator[model.Route]:
    """Yield what the outside must have learnt: a way out, and on edge routers the VIPs and what gateways announce."""
    yield model.Route(INTERNET_HOST, "", "0.0.0.0/0")
    for edge in edges:
        prefixes = dict.fromkeys(f"{service.vip}/32" for service in shown)
        for link in plan.links_of[edge]:
            gateway = plan.gateways.get(link.far(edge).device)
            if gateway and lab.has(gateway.name):
                prefixes.update({a.prefix: None for a in announcements(served(plan, gateway), gateway)})
        for prefix in prefixes:
            yield model.Route(edge, "", prefix)


def _served(plan: Plan, lab: model.Lab, exposure: Exposure) -> bool:
    return any(lab.has(name) for name in plan.groups[exposure.group].gateways)


def services(plan: Plan, lab: model.Lab) -> list[Service]:
    """Return what the load balancers show: forwarded TCP ports that a gateway and a server of this lab can serve.

    A tenant keeps its VIP in every slice. haproxy balances no UDP, so forwarded UDP ports are reached directly only.
    """
    owners = _owners(plan, lab)
    found: dict[str, Service] = {}
    showing = [t for t in plan.tenants.values() if any(_forwards(t))]
    for vip, tenant in zip(_VIPS.hosts(), showing, strict=False):
        for exposure, port in _forwards(tenant):
            owner = owners.get((tenant.name, port.private_address))
            if not owner or not _served(plan, lab, exposure):
                continue
            name = f"{tenant.name}-{port.public_port}"
            service = found.get(name, Service(name, str(vip), port.public_port, exposure.idle_timeout_s, ()))
            backend = Backend(
                exposure.name,
                f"{exposure.public[0].partition('/')[0]}:{port.public_port}",
                f"{owner} {port.private_address}:{port.private_port}",
            )
            found[name] = replace(service, backends=(*service.backends, backend))
    return list(found.values())


def _forwards(tenant: Tenant) -> Iterator[tuple[Exposure, PortMap]]:
    for exposure in tenant.exposures:
        for port in exposure.ports:
            if port.protocol == "tcp":
                yield exposure, port


def _owners(plan: Plan, lab: model.Lab) -> dict[tuple[str, str], str]:
    """Server of this lab by tenant and address."""
    found = {}
    for server in plan.servers.values():
        if lab.has(server.name):
            pairs = [(s.tenant, s.address) for s in server.services]
            pairs += [(p.tenant, p.address.partition("/")[0]) for p in server.ports if p.tenant]
            found.update(dict.fromkeys(pairs, server.name))
    return found


# ------------------------------------------------------------------ files


def write(plan: Plan, folder: Path, lab: model.Lab) -> None:
    """Write the files of the outside's nodes below `folder`, in the shape of rendered ones."""
    edges = [node.name for node in lab.nodes if node.kind == model.EDGE]
    stations = [node.name for node in lab.nodes if node.name in STATIONS]
    wires = list(cables(stations, edges))
    for node in lab.nodes:
        if node.kind == model.EDGE:
            _write_node(folder / node.name, node, _edge_view(plan, node.name, wires))
        elif node.name in STATIONS:
            shown = services(plan, lab) if node.kind == model.LOADBALANCER else []
            _write_node(folder / node.name, node, _station_view(plan, node.name, wires, shown))


def _write_node(target: Path, node: model.Node, view: dict[str, Any]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    names = ["frr.conf", "network.sh", "sysctl.conf", *(["haproxy.cfg"] if view["services"] else [])]
    values = {"name": node.name, "what": _WHAT[node.kind], "mtu": _MTU, "socket": SOCKET, **_CHECK, **view}
    for name in names:
        (target / name).write_text(template(f"outside/{name}.j2").render(values))
    (target / "daemons").write_text("bgpd=yes\nbfdd=yes\nstaticd=no\n")


def _edge_view(plan: Plan, name: str, wires: list[Cable]) -> dict[str, Any]:
    edge = plan.edges[name]
    links = [link for link in plan.links_of[name] if link.kind == EXTERNAL_LINK]
    mine = [cable for cable in wires if cable.edge == name]
    ports = [(link.end(name).interface, link.end(name).address) for link in links]
    ports += [(cable.edge_port, cable.edge_address) for cable in mine]
    gateways = [(link.far(name).address, link.far(name).device) for link in links]
    peers = [_peer(address, device, plan.gateways[device].asn, inside=False) for address, device in gateways]
    peers += [_peer(cable.address, cable.station, edge.asn, inside=True) for cable in mine]
    return {
        "asn": edge.asn,
        "router_id": edge.router_id,
        "source": "",
        "forwards": True,
        "networks": [f"{INTERNET_ADDRESS}/32"],
        "ports": [{"interface": interface, "address": address} for interface, address in ports],
        "peers": peers,
        "services": [],
    }


def _peer(address: str, name: str, asn: int, inside: bool, default: bool = True) -> dict[str, Any]:
    return {"address": address.partition("/")[0], "name": name, "asn": asn, "inside": inside, "default": default}


def _station_view(plan: Plan, name: str, wires: list[Cable], shown: list[Service]) -> dict[str, Any]:
    mine = [cable for cable in wires if cable.station == name]
    own = [f"{STATIONS[name]}/32", *dict.fromkeys(f"{service.vip}/32" for service in shown)]
    asn = plan.edges[mine[0].edge].asn
    return {
        "asn": asn,
        "router_id": STATIONS[name],
        "source": STATIONS[name],
        "forwards": False,
        "networks": own,
        "ports": [{"interface": cable.port, "address": cable.address} for cable in mine],
        "peers": [_peer(cable.edge_address, cable.edge, asn, inside=False, default=False) for cable in mine],
        "services": shown,
    }
