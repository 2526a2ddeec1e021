"""What a server reaches by the plan: an address inside, shown by a gateway, or outside, and how it gets there."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from fabric.gateway.space import NEVER_OUTSIDE, special_use
from fabric.interop.showing import addresses
from fabric.interop.showing.card import Card, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Exposure, Plan, Server, Tenant

_HEADER = ("from tenant", "reached", "how")


def reach_card(plan: Plan, name: str, address: IPv4Address) -> Card:
    """Say for each tenant of the server `name` whether it reaches the address, by routing, peering and exposures."""
    server = plan.servers[name]
    tenants = [plan.tenants[tenant] for tenant in dict.fromkeys(p.tenant for p in server.ports if p.tenant)]
    rows = [(tenant.name, *_answer(plan, server, tenant, address)) for tenant in tenants]
    facts = {} if rows else {"reached": "no: the server is in no tenant"}
    return Card(f"{name} to {address}", f"reach in {plan.site}, by the plan", facts, [Table("reach", _HEADER, rows)])


def _answer(plan: Plan, server: Server, tenant: Tenant, address: IPv4Address) -> tuple[str, str]:
    near = [tenant, *(plan.tenants[peer] for peer in tenant.peers)]
    fabrics = {port.fabric for port in server.ports if port.tenant == tenant.name}
    for other in near:
        by = f"of tenant {other.name}" + ("" if other is tenant else ", which is a peer")
        if found := _inside(plan, other, address, fabrics, by):
            return found
    shown = next(_shown(plan, address), None)
    if shown and shown[0] is tenant:
        return _hairpin(shown[1], address)
    if use := special_use(IPv4Network(address)):
        return "no", f"it is for {use}"
    if any(address in IPv4Network(prefix) for prefix in NEVER_OUTSIDE):
        return "no", "neither the tenant nor a peer has it, and private addresses never cross the edge"
    return _outside(_way_out(plan, server, tenant), shown, address)


def _inside(plan: Plan, tenant: Tenant, address: IPv4Address, fabrics: set[str], by: str) -> tuple[str, str] | None:
    """What the subnets of one tenant say of the address; None where it is in none of them."""
    for owner, fabric in _owners(plan, tenant, address):
        if fabric in fabrics:
            return "yes", f"{owner} {by}"
        return "no", f"{owner} {by}: in {fabric} only, where this server has no port"
    for subnet in tenant.subnets:
        if address in IPv4Network(subnet.prefix):
            return "no", f"it is free in {subnet.prefix} {by}: no port has it"
    return None


def _outside(out: str, shown: tuple[Tenant, Exposure] | None, address: IPv4Address) -> tuple[str, str]:
    if not out:
        return "no", "no address of this server is shown outside: no masquerade or static exposure covers it"
    if shown is None:
        return "yes", f"outside: {out}"
    there, exposure = shown
    if exposure.mode == "masquerade":
        return "no", f"it is in the masquerade pool of tenant {there.name}, which leads to no host"
    back = f"{exposure.title} of {there.name}: {addresses.public_of(exposure, address)}"
    return "yes", f"outside: {out}; back in by {back}"


def _owners(plan: Plan, tenant: Tenant, address: IPv4Address) -> Iterator[tuple[str, str]]:
    """The ports and services of the tenant's servers that have the address, and their fabric."""
    for server in plan.servers.values():
        for port in server.ports:
            if port.tenant == tenant.name and port.address.partition("/")[0] == str(address):
                yield f"{server.name} {port.name}", port.fabric
        for service in server.services:
            if service.tenant == tenant.name and service.address.partition("/")[0] == str(address):
                yield f"{server.name} (service address)", service.fabric


def _shown(plan: Plan, address: IPv4Address) -> Iterator[tuple[Tenant, Exposure]]:
    """Tenants and exposures with this public address; one that leads to a host comes before the pool around it."""
    found = [
        (tenant, exposure)
        for tenant in plan.tenants.values()
        for exposure in tenant.exposures
        if any(address in IPv4Network(prefix) for prefix in exposure.public)
    ]
    yield from sorted(found, key=lambda pair: pair[1].mode == "masquerade")


def _hairpin(exposure: Exposure, address: IPv4Address) -> tuple[str, str]:
    if exposure.mode == "masquerade":
        return "no", "it is in the tenant's own masquerade pool, which leads to no host"
    return "yes", f"{exposure.title}, turned round at the gateway: {addresses.public_of(exposure, address)}"


def _way_out(plan: Plan, server: Server, tenant: Tenant) -> str:
    """As whom and by which gateways the server's flows leave; empty when the tenant shows none of its addresses."""
    mine = [p.address for p in server.ports if p.tenant == tenant.name]
    mine += [s.address for s in server.services if s.tenant == tenant.name]
    bare = [IPv4Address(text.partition("/")[0]) for text in mine if text]
    words = []
    for exposure in sorted(tenant.exposures, key=lambda e: e.mode == "masquerade"):
        own = [a for a in bare if any(a in IPv4Network(prefix) for prefix in exposure.private)]
        if own and exposure.mode == "static":
            words.append(f"{', '.join(f'{a} as {addresses.shown_as(exposure, a)}' for a in own)} ({exposure.title})")
        if own and exposure.mode == "masquerade":
            order = plan.groups[exposure.group].gateways
            pools = {share.gateway: f"{share.first}-{share.last}" for share in exposure.shares}
            by = ", else ".join(f"{pools[gateway]} by {gateway}" for gateway in order if gateway in pools)
            words.append(f"as {by} ({exposure.title})")
    return "; ".join(words)
