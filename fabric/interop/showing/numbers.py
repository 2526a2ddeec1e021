"""Find what a number stands for: a VNI, a VLAN, an AS number, a route target or a route distinguisher."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fabric.gateway.targets import default_route_target
from fabric.interop.showing import cards
from fabric.interop.showing.card import Card, Table
from fabric.interop.showing.sessions import asn

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan, Tenant

_NUMBER = re.compile(r"(vni|vlan|asn?|rt|rd)?[ :]*((?:[0-9.]{1,15}:)?[0-9]{1,10})", re.IGNORECASE)


def find(plan: Plan, name: str) -> Card | None:
    """Return the card of `VNI 100`, `VLAN 3000`, `AS 65101`, `64512:100`, `RD 172.30.8.3:1`, or of a bare number.

    None when nothing of the site has it.
    """
    match = _NUMBER.fullmatch(name)
    if match is None:
        return None
    kind, number = (match[1] or "").lower(), match[2]
    looks = _LOOKS.get(kind) or (_PAIRS if ":" in number else _BARE)
    cards_found = (look(plan, number) for look in looks)
    return next((card for card in cards_found if card), None)


def _said(plan: Plan, tenant: Tenant, what: str) -> Card:
    """The tenant's card, with what the number is said before its facts."""
    card = cards.tenant_card(plan, tenant)
    card.facts = {"found as": what, **card.facts}
    return card


def _vni(plan: Plan, number: str) -> Card | None:
    found = [tenant for tenant in plan.tenants.values() if tenant.vni == int(number)]
    return _said(plan, found[0], f"VNI {found[0].vni}") if found else None


def _vlan(plan: Plan, number: str) -> Card | None:
    found = [tenant for tenant in plan.tenants.values() if tenant.vlan == int(number)]
    return _said(plan, found[0], f"VLAN {found[0].vlan}, of the L3VNI") if found else None


def _asn(plan: Plan, number: str) -> Card | None:
    rows = [
        (device, kind, _fabric(plan, device))
        for device, kind in plan.kind_of.items()
        if asn(plan, device) == int(number) != 0
    ]
    facts = {"used by": f"{len(rows)} devices" if len(rows) > 1 else "one device"}
    table = Table("devices", ("device", "kind", "fabric"), rows)
    return Card(f"AS {int(number)}", f"AS number of {plan.site}", facts, [table]) if rows else None


def _fabric(plan: Plan, device: str) -> str:
    if device in plan.switches:
        return plan.switches[device].fabric
    return plan.gateways[device].fabric if device in plan.gateways else ""


def _rt(plan: Plan, target: str) -> Card | None:
    for tenant in plan.tenants.values():
        if target == tenant.rt:
            return _said(plan, tenant, f"RT {target}: on the tenant's own routes; imported by {tenant.vrf} only")
        if target == default_route_target(tenant.rt):
            what = f"RT {target}: on the default route from gateways; imported by {tenant.vrf} only"
            return _said(plan, tenant, what)
    return None


def _rd(plan: Plan, number: str) -> Card | None:
    router, _, last = number.partition(":")
    devices = {switch.router_id: (switch.name, switch.vrfs) for switch in plan.switches.values()}
    for gateway in plan.gateways.values():
        devices[gateway.router_id] = (gateway.name, tuple(plan.tenants[name].vrf for name in gateway.tenants))
    name, vrfs = devices.get(router, ("", ()))
    for tenant in plan.tenants.values():
        if tenant.vrf in vrfs and str(tenant.rd_number) == last:
            return _said(plan, tenant, f"RD {number}: routes that {name} tells of {tenant.vrf}")
    return None


_Look = tuple["Callable[[Plan, str], Card | None]", ...]
_LOOKS: dict[str, _Look] = {"vni": (_vni,), "vlan": (_vlan,), "as": (_asn,), "asn": (_asn,), "rt": (_rt,), "rd": (_rd,)}
_PAIRS: _Look = (_rt, _rd)
_BARE: _Look = (_vni, _asn, _vlan)
