"""From a plan to a lab: all of a site, or as many of its devices as a small machine can run, under their own names."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_interface, ip_network
from typing import TYPE_CHECKING

from fabric.plan import EXTERNAL_LINK, SERVER_LINK
from fabric.problem import InputError, Problem
from labs import model

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Link, Plan

# how many of each kind to take; a kind that is not named is taken whole
COUNTS = ("leaves", "spines", "gateways", "servers")


def parse_counts(text: str) -> dict[str, int]:
    """Read `leaves=2,spines=2`. Raises InputError with every part that is wrong."""
    found: dict[str, int] = {}
    problems = []
    for part in filter(None, text.split(",")):
        name, _, number = part.partition("=")
        if name not in COUNTS or not number.isdigit():
            text_ = f"expected KIND=NUMBER with KIND one of {', '.join(COUNTS)}"
            problems.append(Problem("lab.slice", part, text_, fix="--slice leaves=2,spines=2,gateways=2,servers=4"))
        else:
            found[name] = int(number)
    if problems:
        raise InputError(problems)
    return found


def devices(plan: Plan, counts: dict[str, int]) -> list[str]:
    """Return the devices of the slice: the first of each kind, servers only where one of their leaves is in it."""
    switches = [s for s in plan.switches.values() if s.managed]
    leaves = [s.name for s in switches if s.kind != model.SPINE][: counts.get("leaves")]
    spines = [s.name for s in switches if s.kind == model.SPINE][: counts.get("spines")]
    gateways = list(plan.gateways)[: counts.get("gateways")]
    near = {d for leaf in leaves for link in plan.links_of.get(leaf, ()) for d in (link.a.device, link.b.device)}
    servers = [name for name in plan.servers if name in near][: counts.get("servers")]
    outside = {link.b.device for name in gateways for link in plan.links_of[name] if link.kind == EXTERNAL_LINK}
    return [*spines, *leaves, *gateways, *servers, *(name for name in plan.edges if name in outside)]


def make(plan: Plan, name: str, counts: dict[str, int] | None = None) -> model.Lab:
    """Return the lab of a plan's slice, with what it should look like once converged."""
    chosen = devices(plan, counts or {})
    inside = [k for k in plan.links.values() if k.a.device in chosen and k.b.device in chosen]
    return model.Lab(
        name=name,
        nodes=tuple(_node(plan, device, chosen) for device in chosen),
        links=tuple(_link(plan, link) for link in inside),
        expect=_Expected(plan, frozenset(chosen), tuple(inside)).all(),
        site=plan.site,
        plan_digest=plan.digest,
    )


def _link(plan: Plan, link: Link) -> model.Link:
    fabric = plan.fabrics.get(link.fabric)
    mtu = 1500 if link.kind == EXTERNAL_LINK or fabric is None else fabric.mtu
    near, far = (model.End(end.device, end.interface) for end in (link.a, link.b))
    return model.Link(link.id, near, far, mtu)


def _node(plan: Plan, device: str, chosen: Iterable[str]) -> model.Node:
    kind = {"edge": model.INTERNET}.get(plan.kind_of[device], plan.kind_of[device])
    links = plan.links_of.get(device, ())
    dark = tuple(dict.fromkeys(k.end(device).interface for k in links if k.far(device).device not in chosen))
    rdma: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    if device in plan.servers:
        ports = plan.servers[device].ports
        lit = {k.end(device).interface for k in links} - set(dark)
        rdma = tuple(p.name for p in ports if p.rdma and p.tenant and p.name in lit)
        tenants = tuple(dict.fromkeys(p.tenant for p in ports if p.tenant))
    elif device in plan.gateways:
        tenants = plan.gateways[device].tenants
    return model.Node(device, kind, device, dark, rdma, tenants)


@dataclass(frozen=True)
class _Expected:
    plan: Plan
    chosen: frozenset[str]
    links: tuple[Link, ...]

    def all(self) -> model.Expectation:
        return model.Expectation(tuple(self._sessions()), tuple(self._vteps()), tuple(self._routes()))

    def _sessions(self) -> Iterable[model.Session]:
        for link in self.links:
            if link.kind == SERVER_LINK:
                continue
            outside = link.kind == EXTERNAL_LINK
            for here, far in ((link.a, link.b), (link.b, link.a)):
                neighbor = str(ip_interface(far.address).ip) if far.address else here.interface
                vrf = "Vrf-edge" if outside and here.device in self.plan.gateways else ""
                yield model.Session(here.device, neighbor, vrf, bfd=True, evpn=not outside)

    def _members(self) -> dict[str, tuple[str, dict[str, str]]]:
        """VTEP by device: its address, and VNI -> VRF."""
        plan, found = self.plan, {}
        for name in self.chosen:
            if name in plan.switches and plan.switches[name].vtep:
                tenants = [plan.tenant_of_vrf[vrf] for vrf in plan.switches[name].vrfs if vrf in plan.tenant_of_vrf]
                found[name] = (plan.switches[name].vtep, {str(t.vni): t.vrf for t in tenants})
            elif name in plan.gateways:
                tenants = [plan.tenants[t] for t in plan.gateways[name].tenants]
                found[name] = (plan.gateways[name].vtep, {str(t.vni): t.vrf for t in tenants})
        return found

    def _vteps(self) -> Iterable[model.Vtep]:
        for name, (address, vnis) in sorted(self._members().items()):
            # router MACs come with type 5 routes: a leaf sends its servers' links, so expect those that have any
            remotes = {vni: self._leaves_with(vrf, name) for vni, vrf in vnis.items()}
            yield model.Vtep(name, address, vnis, remotes)

    def _leaves_with(self, vrf: str, but: str) -> tuple[str, ...]:
        found = {}
        for link in self.links:
            leaf = link.b.device
            if link.kind == SERVER_LINK and link.tenant == self.plan.tenant_of_vrf[vrf].name and leaf != but:
                found[self.plan.switches[leaf].vtep] = True
        same = self.plan.switches[but].fabric if but in self.plan.switches else self.plan.gateways[but].fabric
        return tuple(v for v in found if any(s.vtep == v and s.fabric == same for s in self.plan.switches.values()))

    def _routes(self) -> Iterable[model.Route]:
        members = self._members()
        for link in self.links:
            if link.kind != SERVER_LINK or not link.tenant or not link.b.address:
                continue
            tenant, leaf = self.plan.tenants[link.tenant], link.b.device
            prefix = str(ip_network(link.b.address, strict=False))
            for name, (_, vnis) in sorted(members.items()):
                alike = name in self.plan.switches and self.plan.switches[name].fabric == link.fabric
                if name != leaf and alike and str(tenant.vni) in vnis:
                    yield model.Route(name, tenant.vrf, prefix)
