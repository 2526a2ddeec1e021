"""The allow/deny matrix of tenants: as declared, and as the route targets in the files make it.

Model: a VRF sees a tenant when it imports a route target that a VRF of that tenant exports on another router of the
same fabric (or its own). Routes learnt by EVPN are not exported again, so seeing is never passed on.
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
    """What one VRF of one router imports: tenants it `sees`, of those `present` in the fabric; lines by tenant."""

    device: str
    vrf: str
    tenant: str
    line: int
    sees: frozenset[str]
    present: frozenset[str]
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
    present = {fabric: frozenset(name for names in by_rt.values() for name in names) for fabric, by_rt in exporters.items()}
    for device, fabric, bgp in instances:
        family = bgp.evpn
        assert family is not None
        lines: dict[str, int] = {}
        for target, line in family.rt_import.items():
            for name in exporters.get(fabric, {}).get(target, ()):
                lines[name] = line
        tenant = plan.tenant_of_vrf[bgp.vrf]
        yield View(device, bgp.vrf, tenant.name, family.line, frozenset(lines), present.get(fabric, frozenset()), lines)


def reachability(facts: Facts) -> dict[tuple[str, str], bool]:
    """Return the site's matrix from the files: (tenant, tenant) -> can exchange packets, which needs both directions."""
    sees: dict[str, set[str]] = {}
    for view in matrix(facts):
        sees.setdefault(view.tenant, set()).update(view.sees)
    names = list(facts.plan.tenants)
    return {(a, b): b in sees.get(a, ()) and a in sees.get(b, ()) for a in names for b in names}
