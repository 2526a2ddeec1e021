"""The allow/deny matrix of tenants: as declared, and as the route targets in the files make it.

Model: a VRF sees a tenant when it imports a route target that a VRF of that tenant exports on a router of the same
fabric, or takes routes from that tenant's VRF beside it (`import vrf`). Imported routes are not imported again and a
VRF advertises its own subnets only (rule `isolation.no-transit` looks), so seeing is never passed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.facts import Facts
    from fabric.analysis.frr_conf import Bgp
    from fabric.plan import Plan


@dataclass(frozen=True, slots=True)
class View:
    """What one VRF of one router imports: tenants it `sees` and those it needs; the lines of its imports by tenant.

    `needs` are the tenant itself and its peers, as far as they are in this fabric, when the router has ports of the
    tenant; only the tenant itself when the VRF is there for its peers.
    """

    device: str
    vrf: str
    tenant: str
    line: int
    sees: frozenset[str]
    needs: frozenset[str]
    lines: dict[str, int]


def declared(plan: Plan) -> dict[str, frozenset[str]]:
    """Return, by tenant, who it may reach: itself and its peers, where both sides agree."""
    peers = {name: set(tenant.peers) for name, tenant in plan.tenants.items()}
    return {
        name: frozenset({name, *(other for other in others if name in peers.get(other, ()))})
        for name, others in peers.items()
    }


def fabric_of(plan: Plan, device: str) -> str:
    """Return the fabric that a switch or gateway belongs to."""
    if device in plan.switches:
        return plan.switches[device].fabric
    return plan.gateways[device].fabric if device in plan.gateways else ""


def matrix(facts: Facts) -> Iterator[View]:
    """Yield the view of each tenant VRF of each router, from its own file."""
    plan = facts.plan
    exporters: dict[str, dict[str, set[str]]] = {}
    instances: list[tuple[str, str, Bgp]] = []
    for device, bgp in facts.bgp():
        tenant = plan.tenant_of_vrf.get(bgp.vrf)
        if tenant is None or bgp.evpn is None:
            continue
        fabric = fabric_of(plan, device)
        instances.append((device, fabric, bgp))
        for target in bgp.evpn.rt_export:
            exporters.setdefault(fabric, {}).setdefault(target, set()).add(tenant.name)
    present = {fabric: frozenset(n for names in by_rt.values() for n in names) for fabric, by_rt in exporters.items()}
    allowed = declared(plan)
    home = tenants_of_leaf(plan)
    for device, fabric, bgp in instances:
        family = bgp.evpn
        assert family is not None
        name = plan.tenant_of_vrf[bgp.vrf].name
        lines: dict[str, int] = {}
        for target, line in family.rt_import.items():
            for other in exporters.get(fabric, {}).get(target, ()):
                lines[other] = line
        for vrf, line in (bgp.ipv4.import_vrf if bgp.ipv4 else {}).items():
            if vrf in plan.tenant_of_vrf:
                lines[plan.tenant_of_vrf[vrf].name] = line
        needs = allowed[name] & present[fabric] if name in home.get(device, ()) else frozenset({name})
        yield View(device, bgp.vrf, name, family.line, frozenset(lines), needs, lines)


def tenants_of_leaf(plan: Plan) -> dict[str, set[str]]:
    """Return, by leaf, the tenants that have ports on it."""
    home: dict[str, set[str]] = {}
    for link in plan.links.values():
        if link.tenant:
            home.setdefault(link.b.device, set()).add(link.tenant)
    return home


def reachability(facts: Facts) -> dict[tuple[str, str], bool]:
    """Return the matrix that the files make: (tenant, tenant) -> can exchange packets, which needs both ways."""
    sees: dict[str, set[str]] = {}
    for view in matrix(facts):
        sees.setdefault(view.tenant, set()).update(view.sees)
    names = list(facts.plan.tenants)
    return {(a, b): b in sees.get(a, ()) and a in sees.get(b, ()) for a in names for b in names}
