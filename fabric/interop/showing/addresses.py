"""Find what an address is: whose port, loopback, VTEP, service or public address, or a free one of which range."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from fabric.gateway.nat import static_pairs
from fabric.interop.showing import cards
from fabric.interop.showing.card import Card, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Exposure, Gateway, Plan, Switch

# what it is, the device or tenant to look at next, the tenant, more
Row = tuple[str, str, str, str]
_HEADER = ("what", "of", "tenant", "detail")


def find(plan: Plan, name: str) -> Card | None:
    """Return the card of an address (`10.1.0.5`, `10.1.0.5/31`) or prefix; None when no range of the site has it.

    An address of one device gives that device's card (one of a link, the link's), with what the address is before it.
    """
    text, _, length = name.partition("/")
    try:
        address, network = IPv4Address(text), IPv4Network(name, strict=False)
    except ValueError:
        return None
    if length and network.num_addresses > 2 and address == network.network_address:
        return _prefix_card(plan, network)
    held = list(_held(plan, text))
    ranges = [*_exposed(plan, address), *_subnets(plan, address, held), *_pools(plan, address, held)]
    rows = [*held, *ranges]
    if not rows:
        return None
    owners = list(dict.fromkeys(row[1].partition(" ")[0] for row in held))
    card = _owner_card(plan, owners[0], text) if len(owners) == 1 else None
    card = card or Card(text, f"address of {plan.site}", {} if held else {"given to": _nobody(ranges)})
    card.tables.insert(0, Table(f"what {text} is", _HEADER, list(rows)))
    return card


def _nobody(ranges: list[Row]) -> str:
    """What an address is that no device has: shown by gateways, or free."""
    shown = any(" exposure" in what for what, *_ in ranges)
    return "no device: gateways answer for it" if shown else "no device: it is free"


def _owner_card(plan: Plan, owner: str, address: str) -> Card | None:
    if owner in plan.servers:
        return cards.server_card(plan, plan.servers[owner])
    for link in plan.links_of.get(owner, ()):
        if address in {link.a.address.partition("/")[0], link.b.address.partition("/")[0]}:
            return cards.link_card(plan, link)
    if owner in plan.switches:
        return cards.switch_card(plan, plan.switches[owner])
    if owner in plan.gateways:
        return cards.gateway_card(plan, plan.gateways[owner])
    return cards.edge_card(plan, plan.edges[owner]) if owner in plan.edges else None


def _held(plan: Plan, address: str) -> Iterator[Row]:
    """The devices that have the address."""
    yield from _on_servers(plan, address)
    yield from _on_devices(plan, address)
    for link in plan.links.values():
        for end in (link.a, link.b):
            if _bare(end.address) == address and end.device not in plan.servers:
                far = link.far(end.device)
                yield f"{link.kind} link", f"{end.device} {end.port}", link.tenant, f"to {far.device} {far.port}"


def _bare(address: str) -> str:
    """An address without its length."""
    return address.partition("/")[0]


def _on_servers(plan: Plan, address: str) -> Iterator[Row]:
    for server in plan.servers.values():
        for port in server.ports:
            if _bare(port.address) == address:
                yield "NIC port", f"{server.name} {port.name}", port.tenant, f"{port.address}, gateway {port.gateway}"
        for service in server.services:
            if _bare(service.address) == address:
                yield "service address", server.name, service.tenant, f"on whichever {service.fabric} port is up"
        if _bare(server.management) == address:
            yield "management", server.name, "", server.management
        if _bare(server.bmc) == address:
            yield "BMC", server.name, "", server.bmc


def _on_devices(plan: Plan, address: str) -> Iterator[Row]:
    devices: list[Switch | Gateway] = [*plan.switches.values(), *plan.gateways.values()]
    for device in devices:
        for what, value in (
            ("loopback", device.router_id),
            ("VTEP", device.vtep),
            ("management", device.management),
        ):
            if _bare(value) == address:
                yield what, device.name, "", value
    for edge in plan.edges.values():
        if edge.router_id == address:
            yield "router id", edge.name, "", "not ours to configure"


def _exposed(plan: Plan, address: IPv4Address) -> Iterator[Row]:
    """The exposures that show the address, or that it is shown by; a static one comes before the pool around it."""
    for tenant in plan.tenants.values():
        static = any(e.mode == "static" and _inside(address, e.private) for e in tenant.exposures)
        for exposure in tenant.exposures:
            if static and exposure.mode == "masquerade":
                continue
            what = f"{exposure.title} exposure"
            if _inside(address, exposure.public):
                yield f"{what}, public", f"group {exposure.group}", tenant.name, public_of(exposure, address)
            if _inside(address, exposure.private):
                yield f"{what}, private", f"group {exposure.group}", tenant.name, _private(exposure, address)


def _inside(address: IPv4Address, prefixes: tuple[str, ...]) -> bool:
    return any(address in IPv4Network(prefix) for prefix in prefixes)


def public_of(exposure: Exposure, address: IPv4Address) -> str:
    """Say where a public address of an exposure leads."""
    if exposure.mode == "static":
        return f"is {_mapped(exposure, address, from_public=True)}, both ways"
    ports = [f"{p.protocol}/{p.public_port} to {p.private_address}:{p.private_port}" for p in exposure.ports]
    if ports:
        return ", ".join(ports)
    owner = [s for s in exposure.shares if IPv4Address(s.first) <= address <= IPv4Address(s.last)]
    whose = f", share of {owner[0].gateway}" if owner else ""
    return f"hides {', '.join(exposure.private)}{whose}"


def _private(exposure: Exposure, address: IPv4Address) -> str:
    if exposure.mode == "static":
        return f"is {_mapped(exposure, address, from_public=False)} outside"
    ports = [
        f"{p.protocol}/{p.private_port} is {_first(exposure)}:{p.public_port}"
        for p in exposure.ports
        if p.private_address == str(address)
    ]
    return ", ".join(ports) or f"leaves as {', '.join(exposure.public)}"


def _first(exposure: Exposure) -> str:
    return exposure.public[0].partition("/")[0]


def shown_as(exposure: Exposure, address: IPv4Address) -> IPv4Address:
    """Return the public address of a private one of a static exposure."""
    return _mapped(exposure, address, from_public=False)


def _mapped(exposure: Exposure, address: IPv4Address, *, from_public: bool) -> IPv4Address:
    """The other side of a static exposure: same offset in the block."""
    for private, public in static_pairs(exposure.private, exposure.public):
        here, there = (public, private) if from_public else (private, public)
        if address in here:
            return there[int(address) - int(here.network_address)]
    return address


def _subnets(plan: Plan, address: IPv4Address, held: list[Row]) -> Iterator[Row]:
    for tenant in plan.tenants.values():
        for subnet in tenant.subnets:
            if address in IPv4Network(subnet.prefix):
                given = any(row[2] == tenant.name for row in held)
                yield "subnet", tenant.name, tenant.name, f"{subnet.prefix} ({subnet.fabric}), {_state(given)}"


def _pools(plan: Plan, address: IPv4Address, held: list[Row]) -> Iterator[Row]:
    """The site's own pools; those of tenants are their subnets."""
    for pool in plan.pools:
        if "/" in pool.range and not pool.name.startswith("tenant ") and address in IPv4Network(pool.range):
            yield "pool", pool.name, "", f"{pool.range}, {_state(bool(held))}"


def _state(given: bool) -> str:
    return "given" if given else "free"


def _prefix_card(plan: Plan, network: IPv4Network) -> Card | None:
    """What overlaps a prefix: subnets, exposures and pools."""
    rows = [(*row, prefix) for *row, prefix in _ranges(plan) if network.overlaps(IPv4Network(prefix))]
    return Card(str(network), f"prefix of {plan.site}", {}, [Table("overlaps", _HEADER, list(rows))]) if rows else None


def _ranges(plan: Plan) -> Iterator[Row]:
    """Every range of the site, its prefix last."""
    for tenant in plan.tenants.values():
        for subnet in tenant.subnets:
            yield f"subnet ({subnet.fabric})", tenant.name, tenant.name, subnet.prefix
        for exposure in tenant.exposures:
            for prefix in exposure.public:
                yield f"{exposure.title} exposure, public", f"group {exposure.group}", tenant.name, prefix
    for pool in plan.pools:
        if "/" in pool.range and not pool.name.startswith("tenant "):
            yield "pool", pool.name, "", pool.range
