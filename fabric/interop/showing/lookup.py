"""Find a thing by name: device, tenant, VRF, gateway group, link, cable number, port, address, VNI, AS number or RT."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from fabric.interop.showing import addresses, cards, numbers
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.interop.showing.card import Card
    from fabric.plan import Plan


def find(plan: Plan, name: str) -> Card:
    """Return the card of `name`; InputError with the closest names when there is no such thing."""
    for look in (_device, _tenant, _group, _link, numbers.find, addresses.find):
        card = look(plan, name.strip())
        if card:
            return card
    raise InputError([unknown(plan, name)])


def unknown(plan: Plan, name: str) -> Problem:
    """The problem of a name that nothing has, with suggestions."""
    close = difflib.get_close_matches(name, list(_names(plan)), 3, 0.5)
    kinds = (
        "give a device, a tenant, a link (`be-leaf-01 E1/33`, a link id or cable number), an address or prefix, "
        "`VNI 100`, `AS 65101`, or a route target"
    )
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
