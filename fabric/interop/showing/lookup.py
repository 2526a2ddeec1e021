"""Find a thing by name: device, tenant, VRF, gateway group, link id, cable number, port, or address."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from fabric.interop.showing import cards
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.interop.showing.card import Card
    from fabric.plan import Plan


def find(plan: Plan, name: str) -> Card:
    """Return the card of `name`; InputError with the closest names when there is no such thing."""
    for look in (_device, _tenant, _group, _link, _address):
        card = look(plan, name.strip())
        if card:
            return card
    raise InputError([unknown(plan, name)])


def unknown(plan: Plan, name: str) -> Problem:
    """The problem of a name that nothing has, with suggestions."""
    close = difflib.get_close_matches(name, list(_names(plan)), 3, 0.5)
    kinds = "give a device, a tenant, a link (`be-leaf-01 E1/33`, a link id or cable number) or an address"
    fix = f"did you mean {' or '.join(close)}?" if close else kinds
    return Problem("show.unknown", name or "''", f"site {plan.site} has nothing of that name", fix)


def _names(plan: Plan) -> Iterator[str]:
    yield from plan.kind_of
    yield from plan.tenants
    yield from plan.groups
    yield from plan.links


def _device(plan: Plan, name: str) -> Card | None:
    if name in plan.switches:
        return cards.switch_card(plan, plan.switches[name])
    if name in plan.servers:
        return cards.server_card(plan, plan.servers[name])
    if name in plan.gateways:
        return cards.gateway_card(plan, plan.gateways[name])
    if name in plan.edges:
        return cards.edge_card(plan, plan.edges[name])
    return None


def _tenant(plan: Plan, name: str) -> Card | None:
    tenant = plan.tenants.get(name) or plan.tenant_of_vrf.get(name)
    return cards.tenant_card(plan, tenant) if tenant else None


def _group(plan: Plan, name: str) -> Card | None:
    return cards.group_card(plan, plan.groups[name]) if name in plan.groups else None


def _link(plan: Plan, name: str) -> Card | None:
    if name in plan.links:
        return cards.link_card(plan, plan.links[name])
    number = name.lstrip("#")
    if number.isdecimal():
        found = [link for link in plan.links.values() if str(link.cable) == number.lstrip("0")]
        return cards.link_card(plan, found[0]) if found else None
    for separator in (" ", ":", "/"):
        device, found_separator, port = name.partition(separator)
        link = plan.link_at.get((device, port.strip())) if found_separator else None
        if link:
            return cards.link_card(plan, link)
        if found_separator and device in plan.switches and any(p.name == port for p in plan.switches[device].ports):
            return cards.spare_port_card(plan, plan.switches[device], port)
    return None


def _address(plan: Plan, name: str) -> Card | None:
    if not name[:1].isdigit():
        return None
    for server in plan.servers.values():
        addresses = [*(p.address for p in server.ports), *(s.address for s in server.services), server.management]
        if any(address.partition("/")[0] == name for address in addresses):
            return cards.server_card(plan, server)
    for link in plan.links.values():
        if name in {end.address.partition("/")[0] for end in (link.a, link.b)}:
            return cards.link_card(plan, link)
    for switch in plan.switches.values():
        if name in {switch.router_id, switch.vtep, switch.management.partition("/")[0]}:
            return cards.switch_card(plan, switch)
    for gateway in plan.gateways.values():
        if name in {gateway.router_id, gateway.vtep, gateway.management.partition("/")[0]}:
            return cards.gateway_card(plan, gateway)
    return None
