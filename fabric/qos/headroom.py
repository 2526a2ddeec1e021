"""Which links are lossless, what headroom their ports have, and how far it exceeds the headroom that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.plan import FABRIC_LINK

if TYPE_CHECKING:
    from fabric.plan import Headroom, Link, Plan, Port, Switch


@dataclass(frozen=True, slots=True)
class HeadroomUse:
    """The switch that asks for most: `asked` and `shared` are bytes, `limit` is the ratio that the site allows."""

    switch: str
    asked: int
    shared: int
    limit: float

    @property
    def ratio(self) -> float:
        """Asked over shared."""
        return round(self.asked / self.shared, 3)


def rdma_links(plan: Plan) -> frozenset[str]:
    """Return the ids of the server links whose NIC carries RDMA."""
    return frozenset(port.link for server in plan.servers.values() for port in server.ports if port.rdma)


def is_lossless(link: Link, rdma: frozenset[str]) -> bool:
    """Whether a link of a fabric with an RDMA class has PFC: between switches, and to NICs that carry RDMA (`rdma`)."""
    return link.kind == FABRIC_LINK or link.id in rdma


def lossless_ports(plan: Plan, switch: Switch) -> list[tuple[Port, Headroom]]:
    """Return the ports of a switch that have PFC, each with its planned headroom; none without an RDMA class."""
    qos = plan.fabrics[switch.fabric].qos
    if qos is None or not qos.lossless:
        return []
    rdma = rdma_links(plan)
    links = ((port, plan.links[port.link]) for port in switch.ports if port.link)
    return [(port, qos.headroom_for(port.speed, link.length_m)) for port, link in links if is_lossless(link, rdma)]


def headroom_use(plan: Plan, fabric: str) -> HeadroomUse | None:
    """Return the use of the switch that asks for most; None where the fabric has no RDMA or no pool is known."""
    qos = plan.fabrics[fabric].qos
    if qos is None or not qos.pool_xoff:
        return None
    rdma = rdma_links(plan)
    names = {switch.name for switch in plan.switches_of(fabric)}
    asked = dict.fromkeys(sorted(names), 0)
    rows: dict[tuple[int, int], int] = {}
    for link in plan.links.values():
        if link.fabric != fabric or not is_lossless(link, rdma):
            continue
        key = (link.speed, link.length_m)
        if key not in rows:
            rows[key] = qos.headroom_for(*key).xoff * len(qos.lossless)
        for end in (link.a, link.b):
            if end.device in names:
                asked[end.device] += rows[key]
    switch = max(asked, key=asked.__getitem__, default="")
    return HeadroomUse(switch, asked[switch], qos.pool_xoff, qos.headroom_ratio) if switch else None
