"""Pairs each cable between routers with the BGP neighbor statements at its two ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.plan import EXTERNAL_LINK, FABRIC_LINK, GATEWAY_LINK

if TYPE_CHECKING:
    from fabric.analysis.facts import Facts
    from fabric.analysis.frr_conf import Bgp, Neighbor
    from fabric.plan import Link

_ROUTED = frozenset({FABRIC_LINK, GATEWAY_LINK, EXTERNAL_LINK})
_FAMILIES = ("ipv4 unicast", "l2vpn evpn")


@dataclass(frozen=True, slots=True)
class Session:
    """One direction of a session: what `here` says of `there`. `far_active` is None when `there` is not ours."""

    link: Link
    here: str
    there: str
    bgp: Bgp | None
    neighbor: Neighbor | None
    far_asn: int
    active: frozenset[str]
    far_active: frozenset[str] | None
    bfd: tuple[bool, str]


def asn_of(facts: Facts, device: str) -> int:
    """Return a device's AS as its own file says, else as planned (edge routers have no file of ours)."""
    conf = facts.routers.get(device)
    if conf is not None and conf.default is not None:
        return conf.default.asn
    for owner in (facts.plan.switches.get(device), facts.plan.gateways.get(device), facts.plan.edges.get(device)):
        if owner is not None:
            return owner.asn
    return 0


def sessions(facts: Facts) -> list[Session]:
    """Return both directions of every session that the cables ask for, kept with the facts."""
    if not facts.session_cache:
        facts.session_cache.extend(_find(facts))
    return facts.session_cache


def _find(facts: Facts) -> list[Session]:
    found = []
    asns = {device: asn_of(facts, device) for device in (*facts.routers, *facts.plan.edges)}
    for link in facts.plan.links.values():
        if link.kind not in _ROUTED:
            continue
        ends = [_statement(facts, link, d) for d in (link.a.device, link.b.device)]
        for i, here in enumerate((link.a.device, link.b.device)):
            if here not in facts.routers:
                continue
            there = link.far(here).device
            if there not in asns:
                continue
            bgp, neighbor, active = ends[i]
            far_active = ends[1 - i][2] if there in facts.routers else None
            found.append(
                Session(link, here, there, bgp, neighbor, asns[there], active, far_active, _bfd(bgp, neighbor))
            )
    return found


def _statement(facts: Facts, link: Link, device: str) -> tuple[Bgp | None, Neighbor | None, frozenset[str]]:
    conf = facts.routers.get(device)
    far = link.far(device).address.partition("/")[0]
    name = far or link.end(device).interface
    if conf is None:
        return None, None, frozenset()
    for bgp in conf.bgp.values():
        neighbor = bgp.neighbors.get(name)
        if neighbor is not None and not neighbor.is_group:
            return bgp, neighbor, _active(bgp, neighbor)
    return conf.default, None, frozenset()


def _active(bgp: Bgp, neighbor: Neighbor) -> frozenset[str]:
    names = bgp.names(neighbor)
    active = {f for f in _FAMILIES if f in bgp.families and any(n in bgp.families[f].active for n in names)}
    if "no bgp default ipv4-unicast" not in bgp.statements:
        active.add("ipv4 unicast")
    return frozenset(active)


def _bfd(bgp: Bgp | None, neighbor: Neighbor | None) -> tuple[bool, str]:
    if bgp is None or neighbor is None:
        return False, ""
    group = bgp.neighbors.get(neighbor.group)
    on = neighbor.bfd or bool(group and group.bfd)
    return on, neighbor.bfd_profile or (group.bfd_profile if group else "")
