"""Which ports a flow crosses, stage by stage, from the plan: where its bytes must show, and in which direction.

Between two leaves every equal-cost path counts, as only the switch's hash knows which one a queue pair takes: the ports
of a stage share the flow's bytes between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.plan import FABRIC_LINK, SPINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Link, Plan
    from validators.rdma.endpoints import Endpoint
    from validators.rdma.sets import Flow


@dataclass(frozen=True, slots=True)
class PortUse:
    """A device's interface, and the direction in which a flow's blocks cross it."""

    device: str
    interface: str
    direction: str


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the way; a flow's bytes are spread over its ports."""

    name: str
    ports: tuple[PortUse, ...]


def stages(plan: Plan, flow: Flow) -> list[Stage]:
    """Return the stages from the owner's NIC to the reader's."""
    owner, reader = flow.owner, flow.reader
    first = [
        Stage("owner NIC", (PortUse(owner.server, owner.port, "tx"),)),
        Stage("owner's leaf in", (PortUse(owner.leaf, _interface(plan, owner), "rx"),)),
    ]
    last = [
        Stage("reader's leaf out", (PortUse(reader.leaf, _interface(plan, reader), "tx"),)),
        Stage("reader NIC", (PortUse(reader.server, reader.port, "rx"),)),
    ]
    if owner.leaf == reader.leaf:
        return [*first, *last]
    up, down = _uplinks(plan, owner), _uplinks(plan, reader)
    shared = {link.far(owner.leaf).device for link in up} & {link.far(reader.leaf).device for link in down}
    up = [link for link in up if link.far(owner.leaf).device in shared]
    down = [link for link in down if link.far(reader.leaf).device in shared]
    middle = [
        Stage("owner's leaf up", tuple(_use(link, owner.leaf, "tx") for link in up)),
        Stage("spines in", tuple(_use(link, link.far(owner.leaf).device, "rx") for link in up)),
        Stage("spines out", tuple(_use(link, link.far(reader.leaf).device, "tx") for link in down)),
        Stage("reader's leaf in", tuple(_use(link, reader.leaf, "rx") for link in down)),
    ]
    return [*first, *middle, *last]


def ports_of(plan: Plan, flows: Iterable[Flow]) -> dict[str, tuple[str, ...]]:
    """Return the interfaces that any of the flows may cross, by device."""
    found: dict[str, dict[str, None]] = {}
    for flow in flows:
        for stage in stages(plan, flow):
            for use in stage.ports:
                found.setdefault(use.device, {})[use.interface] = None
    return {device: tuple(ports) for device, ports in found.items()}


def _interface(plan: Plan, end: Endpoint) -> str:
    return plan.link_at[end.leaf, end.leaf_port].end(end.leaf).interface


def _uplinks(plan: Plan, end: Endpoint) -> list[Link]:
    return [
        link
        for link in plan.links_of[end.leaf]
        if link.kind == FABRIC_LINK and plan.kind_of[link.far(end.leaf).device] == SPINE
    ]


def _use(link: Link, device: str, direction: str) -> PortUse:
    return PortUse(device, link.end(device).interface, direction)
