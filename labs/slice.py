"""From a plan to a lab: all of a site, or as many of its devices as a small machine can run, under their own names."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_interface, ip_network
from itertools import zip_longest
from typing import TYPE_CHECKING

from fabric.plan import EXTERNAL_LINK, SERVER_LINK
from fabric.problem import InputError, Problem
from labs import model, outside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.inventory.load import Inventory
    from fabric.plan import Link, Plan

# how many of each kind to take, leaves and spines of each fabric; a kind that is not named is taken whole
KINDS = ("leaves", "spines", "gateways", "servers")
# parallel cables between a leaf and a spine; a slice that does not say takes one, because every one of them costs
# a small machine two BGP and two BFD sessions
LINKS, _FEW_LINKS = "links", 1
COUNTS = (*KINDS, LINKS)
# without them a lab has nothing to show: no path, or nobody to use it
_NEEDED = frozenset({"leaves", "servers", LINKS})
_EXAMPLE = "--slice leaves=2,spines=2,gateways=2,servers=4"


def parse_counts(text: str) -> dict[str, int]:
    """Read `leaves=2,spines=2`; an empty text is all of the site. Raises InputError with every part that is wrong."""
    found: dict[str, int] = {}
    problems = []
    parts = [part.strip() for part in text.split(",")] if text else []
    if "" in parts:
        words = f"has nothing before or after a comma in {text!r}"
        problems.append(Problem("lab.slice", "--slice", words, fix=_EXAMPLE))
    for part in filter(None, parts):
        name, _, number = part.partition("=")
        if name not in COUNTS or not (number.isascii() and number.isdigit() and len(number) < 10):
            words = f"expected KIND=NUMBER with KIND one of {', '.join(COUNTS)}"
            problems.append(Problem("lab.slice", part, words, fix=_EXAMPLE))
        elif name in found:
            problems.append(Problem("lab.slice", part, f"{name} is said twice", fix=_EXAMPLE))
        elif name in _NEEDED and not int(number):
            problems.append(Problem("lab.slice", part, f"there is no lab without {name}", fix=f"{name}=1"))
        else:
            found[name] = int(number)
    if problems:
        raise InputError(problems)
    return found


def devices(plan: Plan, counts: dict[str, int]) -> list[str]:
    """Return the devices of the slice, in the plan's order by kind.

    Of each fabric the first leaves and spines; the first gateways, with the border leaves that they plug into; servers
    that have a port on one of the leaves, taken in turn from every tenant and leaf, so that a small slice has both
    neighbours and strangers. Raises InputError when the site has fewer than asked.
    """
    fewer = _Fewer(counts)
    switches = [s for s in plan.switches.values() if s.managed]
    fabrics = list(dict.fromkeys(s.fabric for s in switches))
    gateways = fewer.take("gateways", list(plan.gateways), plan.site)
    plugged = {link.far(name).device for name in gateways for link in plan.links_of[name]}
    leaves, spines = [], []
    for fabric in fabrics:
        here = [s for s in switches if s.fabric == fabric]
        leaves += fewer.take("leaves", [s.name for s in here if s.kind == model.LEAF], f"fabric {fabric}")
        spines += fewer.take("spines", [s.name for s in here if s.kind == model.SPINE], f"fabric {fabric}")
        borders = [s.name for s in here if s.kind == model.BORDER_LEAF]
        leaves += [name for name in borders if "leaves" not in counts or name in plugged]
    servers = fewer.take("servers", _in_turn(plan, set(leaves)), "the chosen leaves")
    fewer.check()
    outside = {link.b.device for name in gateways for link in plan.links_of[name] if link.kind == EXTERNAL_LINK}
    chosen = set(servers)
    return [
        *spines,
        *leaves,
        *gateways,
        *(name for name in plan.servers if name in chosen),
        *(name for name in plan.edges if name in outside),
    ]


class _Fewer:
    """Takes what was asked for and remembers where there was less."""

    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts
        self._most: dict[str, tuple[int, str]] = {}

    def take(self, kind: str, names: list[str], where: str) -> list[str]:
        """Return the first names, as many as were asked for."""
        if len(names) > self._most.get(kind, (-1, ""))[0]:
            self._most[kind] = (len(names), where)
        return names[: self._counts.get(kind)]

    def check(self) -> None:
        """Raise InputError for every kind of which no place has as many as were asked for."""
        raise_for = [
            Problem("lab.slice", f"{kind}={number}", f"there are {most} {kind} in {where}", fix=f"{kind}={most}")
            for kind, number in self._counts.items()
            for most, where in [self._most.get(kind, (number, ""))]
            if number > most
        ]
        if raise_for:
            raise InputError(raise_for)


def _in_turn(plan: Plan, leaves: set[str]) -> list[str]:
    """Return the servers with a port on one of the leaves: those with all ports lit first, one of each group a round.

    A group is a tenant on the same leaves. A server that is in no tenant has no configuration, and no place in a lab.
    """
    groups: dict[tuple[int, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, server in plan.servers.items():
        near = [link.b.device for link in plan.links_of.get(name, ())]
        lit = tuple(dict.fromkeys(leaf for leaf in near if leaf in leaves))
        tenants = tuple(dict.fromkeys(port.tenant for port in server.ports if port.tenant))
        if lit and any(port.address for port in server.ports):
            groups.setdefault((sum(leaf not in leaves for leaf in near), tenants, lit), []).append(name)
    ordered = [groups[key] for key in sorted(groups, key=lambda key: key[0])]
    return [name for round_ in zip_longest(*ordered) for name in round_ if name]


def make(plan: Plan, name: str, counts: dict[str, int] | None = None, inventory: Inventory | None = None) -> model.Lab:
    """Return the lab of a plan's slice and its outside, with what it should look like once converged.

    Raises InputError when the site has public addresses that play the outside in a lab, with their line when the
    `inventory` of the plan is given.
    """
    counts = counts or {}
    chosen = devices(plan, counts)
    inside = list(_links(plan, frozenset(chosen), counts.get(LINKS, _FEW_LINKS if counts else 0)))
    lit = frozenset(link.id for link in inside)
    lab = model.Lab(
        name=name,
        nodes=tuple(_node(plan, device, lit) for device in chosen),
        links=tuple(_link(plan, link) for link in inside),
        expect=_Expected(plan, frozenset(chosen), tuple(inside)).all(),
        site=plan.site,
        plan_digest=plan.digest,
    )
    return outside.extend(plan, lab, inventory)


def _links(plan: Plan, chosen: frozenset[str], parallel: int) -> Iterable[Link]:
    """The cables between chosen devices; between two switches the first `parallel` ones, all of them when 0."""
    seen: dict[tuple[str, str], int] = {}
    for link in plan.links.values():
        pair = (link.a.device, link.b.device)
        if not chosen.issuperset(pair):
            continue
        seen[pair] = seen.get(pair, 0) + 1
        if not parallel or seen[pair] <= parallel or not plan.switches.keys() >= set(pair):
            yield link


def _link(plan: Plan, link: Link) -> model.Link:
    fabric = plan.fabrics.get(link.fabric)
    mtu = 1500 if link.kind == EXTERNAL_LINK or fabric is None else fabric.mtu
    near, far = (model.End(end.device, end.interface) for end in (link.a, link.b))
    return model.Link(link.id, near, far, mtu)


def _node(plan: Plan, device: str, inside: frozenset[str]) -> model.Node:
    links = plan.links_of.get(device, ())
    outside = [k for k in links if k.id not in inside]
    dark = tuple(dict.fromkeys(k.end(device).interface for k in outside))
    far = [k.far(device).address for k in outside if k.kind != SERVER_LINK]
    absent = tuple(dict.fromkeys(str(ip_interface(address).ip) for address in far if address))
    rdma: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    if device in plan.servers:
        ports = plan.servers[device].ports
        lit = {k.end(device).interface for k in links} - set(dark)
        rdma = tuple(p.name for p in ports if p.rdma and p.tenant and p.name in lit)
        tenants = tuple(dict.fromkeys(p.tenant for p in ports if p.tenant))
    elif device in plan.gateways:
        tenants = plan.gateways[device].tenants
    return model.Node(device, plan.kind_of[device], device, dark, absent, rdma, tenants)


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
