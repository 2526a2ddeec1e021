"""How many loopbacks a BGP neighbor announces by the plan, and the most that a session takes (`maximum-prefix`).

A neighbor that announces without end must not take others with it. So the limit ends the session where the neighbor is
the origin (a spine's to a leaf, a leaf's to a gateway), and only warns where the sum of a fabric comes in (a leaf's to
a spine, a gateway's to a leaf): there it would end every session of every leaf at once.

It counts what the filters let in, in IPv4 unicast. EVPN has no limit: FRR 8.4 refuses one, 10.3 would take it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import GATEWAY_LINK, LEAF_KINDS

if TYPE_CHECKING:
    from fabric.plan import Plan

RESTART_MINUTES = 5
_TIMES, _LEAST = 4, 64


def prefix_limit(expected: int) -> int:
    """Return four times as much as a power of two, 64 at least: a site that grows seldom changes it."""
    return max(_LEAST, 1 << (_TIMES * expected - 1).bit_length())


def expected_from(plan: Plan, device: str) -> int:
    """Return how many /32s a neighbor gets from `device`, a switch or a gateway of the plan.

    A leaf announces its own and those of its gateways, a spine all that its fabric has.
    """
    if device in plan.gateways:
        return 2
    switch = plan.switches[device]
    if switch.kind not in LEAF_KINDS:
        return of_fabric(plan, switch.fabric)
    behind = {k.a.device for k in plan.links_of.get(device, ()) if k.kind == GATEWAY_LINK}
    return _own(switch.vtep) + 2 * len(behind)


def _own(vtep: str) -> int:
    return 2 if vtep else 1


def of_fabric(plan: Plan, fabric: str) -> int:
    """Return how many /32s a fabric has: its switches', and those of the gateways that plug into it."""
    gateways = sum(gateway.fabric == fabric for gateway in plan.gateways.values())
    return sum(_own(switch.vtep) for switch in plan.switches_of(fabric)) + 2 * gateways
