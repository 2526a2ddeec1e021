"""The gateway probes in a lab: NAT behaviour, idle timers and ladders of a plan's exposures, against rendered gateways.

`run_nat`, `run_idle` and `run_ladder` take the plan and the running lab and return one result an exposure; an exposure
that the lab cannot show (its servers or gateways are not in the slice) is skipped with the reason.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.connections import idle_judge, lab_stand, lab_waves, ladder_judge, nat_judge
from validators.connections.command import probe_idle, probe_ladder, probe_nat
from validators.connections.from_plan import Target, targets
from validators.connections.lab_stand import OUTSIDE, Block
from validators.connections.lab_timers import scaled_timers
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fabric.plan import Plan, Server
    from labs.client import Running
    from validators.connections.command import Testers

    Say = Callable[[str], None]
    Only = Sequence[tuple[str, str]]

# one CPU carries the whole lab: a packet takes its time
_WAIT_S, _REST_S = 0.6, 0.005
_FLOWS_PER_S = 80.0  # an idle pass opens them, beside routers that must not miss a BFD packet meanwhile
_PASSES = 3  # of a timer measurement, while the machine is too busy for it
_IDLE_MOST_S = 12  # the longest timer that a lab waits for, unless it is told otherwise


@dataclass(frozen=True)
class Site:
    """Where an exposure is measured in a lab: the inside node with its addresses, the outside node, the gateway."""

    target: Target
    inside: str
    hosts: tuple[str, str]
    prefix: str
    outside: str
    gateway: str
    block: Block | None

    @property
    def label(self) -> str:
        """The exposure's name in the gateway's rules."""
        return f"{self.target.exposure.tenant}.{self.target.exposure.name}"

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of flows whose idle time is measured: a port forward is entered by its own protocols only."""
        ports = {port.protocol for port in self.target.exposure.ports}
        forward = self.target.exposure.mode == "portForward"
        return frozenset(kind for kind in self.target.idle() if not forward or kind.partition("-")[0] in ports)

    def places(self) -> dict[str, list[str]]:
        """Return what the stand speaks for, by node."""
        own = [self.prefix, *([self.block.prefix] if self.block else [])]
        return {self.inside: own, self.outside: [str(OUTSIDE)]}


def quiet(_text: str) -> None:
    """Say nothing."""


def run_nat(
    plan: Plan, lab: Running, *, tenant: str = "", exposure: str = "", only: Only = (), say: Say = quiet
) -> list[Result]:
    """Ask all NAT cases of every exposure (or those of one tenant, one name). Raises InputError, CouldNotRunError."""

    def one(site: Site, testers: Testers) -> Result:
        return probe_nat(site.target, testers)

    def around(wave: list[Site]) -> AbstractContextManager[None]:
        return lab_waves.straight_in(plan, lab, wave)

    return _each(plan, lab, _chosen(plan, tenant, exposure, only), nat_judge.CHECK, say, one, around=around)


def run_idle(
    plan: Plan,
    lab: Running,
    *,
    tenant: str = "",
    exposure: str = "",
    only: Only = (),
    scale: float = 0.0,
    say: Say = quiet,
) -> list[Result]:
    """Measure the idle truth table of every stateful exposure, in one pass for all whose timers can be had at once.

    The gateway is given timers that are `scale` times the plan's for as long as it takes (0: such that the longest is
    12 s); the result says which. Loading them, and the plan's own afterwards, keeps open flows.
    """
    opening = threading.Lock()  # one after another, so that all together open no more flows a second than one

    def own(site: Site) -> float:
        return scale or min(1.0, _IDLE_MOST_S / max(site.target.idle().values(), default=1.0))

    def one(site: Site, testers: Testers) -> Result:
        run = lab_waves.number_of(testers) + 1

        def measured() -> Result:
            return probe_idle(site.target, testers, scale=own(site), per_s=_FLOWS_PER_S, run=run, opening=opening)

        result = measured()
        for _ in range(_PASSES - 1):
            if result.state is State.UNKNOWN:
                say(f"{idle_judge.CHECK} {site.target.subject}: once more: {result.text}")
                result = idle_judge.decided(result, measured())
        return result

    @contextmanager
    def timers(sites: list[Site]) -> Iterator[None]:
        with ExitStack() as stack:
            for gateway in dict.fromkeys(site.gateway for site in sites):
                mine = {site.label: own(site) for site in sites if site.gateway == gateway}
                icmp = next((own(s) for s in sites if s.gateway == gateway and "icmp" in s.kinds), 1.0)
                stack.enter_context(scaled_timers(lab, gateway, mine, icmp))
            yield

    def apart(a: Site, b: Site) -> bool:
        # a gateway has one timer for ICMP
        return a.gateway == b.gateway and "icmp" in a.kinds and "icmp" in b.kinds and own(a) != own(b)

    chosen = _chosen(plan, tenant, exposure, only)
    return _each(plan, lab, chosen, idle_judge.CHECK, say, one, skip=_stateless, around=timers, apart=apart)


def run_ladder(
    plan: Plan,
    lab: Running,
    *,
    tenant: str = "",
    exposure: str = "",
    only: Only = (),
    protocols: tuple[str, ...] = ("udp", "tcp"),
    connections: int = 400,
    start: float = 100.0,
    highest: float = 6400.0,
    wanted: float | None = None,
    say: Say = quiet,
) -> list[Result]:
    """Climb to the knee of every exposure that lets something out. The whole lab is the limit, not a real gateway."""
    found: list[Result] = []
    for protocol in protocols:

        def one(site: Site, testers: Testers, protocol: str = protocol) -> Result:
            return probe_ladder(
                site.target,
                testers,
                protocol=protocol,
                connections=connections,
                start=start,
                highest=highest,
                wanted=wanted,
                precision=0.25,
            )

        chosen = _chosen(plan, tenant, exposure, only)
        found += _each(plan, lab, chosen, ladder_judge.CHECK, say, one, skip=_no_way_out, on_gateway=True, at_once=1)
    return found


def _stateless(target: Target) -> str:
    return "static keeps no state and has no idle timeout" if target.exposure.mode == "static" else ""


def _no_way_out(target: Target) -> str:
    return "a port forward lets nothing out" if target.exposure.mode == "portForward" else ""


def _chosen(plan: Plan, tenant: str, exposure: str, only: Only) -> list[Target]:
    """Return the targets of a tenant and name; of those only the (tenant, exposure) in `only`, in its order."""
    found = targets(plan, tenant=tenant, exposure=exposure)
    by_name = {(target.exposure.tenant, target.exposure.name): target for target in found}
    return [by_name[name] for name in only] if only else found


def _each(
    plan: Plan,
    lab: Running,
    chosen: list[Target],
    check: str,
    say: Say,
    probe: Callable[[Site, Testers], Result],
    *,
    skip: Callable[[Target], str] = lambda _target: "",
    **how: Any,
) -> list[Result]:
    """Probe exposures; `how` is as `lab_waves.measure` says."""
    found: dict[str, Result] = {}
    sites = []
    for target in chosen:
        reason = skip(target)
        try:
            site = None if reason else site_of(plan, lab, target)
        except CouldNotRunError as error:
            site, reason = None, str(error)
        if site is None:
            found[target.subject] = Result(check, target.subject, State.SKIPPED, reason, labels=target.labels)
        else:
            sites.append(site)

    def one(site: Site, testers: Testers) -> Result:
        say(f"{check} {site.target.subject}: {site.inside} by {site.gateway} to {site.outside}")
        testers.slow_down(_WAIT_S, _REST_S)
        try:
            return _placed(probe(site, testers), site)
        except CouldNotRunError as error:  # of one exposure, which is nothing to the others
            return _placed(Result(check, site.target.subject, State.ERROR, str(error), labels=site.target.labels), site)

    found |= {site.target.subject: result for site, result in lab_waves.measure(plan, lab, sites, one, **how)}
    return [found[target.subject] for target in chosen]


def _placed(result: Result, site: Site) -> Result:
    """Name the gateway that was measured where something is wrong with it."""
    if result.state not in (State.FAIL, State.ERROR) or result.place:
        return result
    exposure = site.target.exposure
    return replace(result, place=f"{site.gateway}, exposure {exposure.name} of {exposure.tenant}")


def site_of(plan: Plan, lab: Running, target: Target) -> Site:
    """Return where an exposure is measured; raises CouldNotRunError when this lab cannot show it."""
    nodes, exposure = lab.lab, target.exposure
    gateway = next((name for name in plan.groups[exposure.group].gateways if nodes.has(name)), "")
    if not gateway:
        raise CouldNotRunError(f"no gateway of group {exposure.group} is in lab {lab.name}")
    edge = next((name for name in plan.edges if nodes.has(name)), "")
    if not edge:
        raise CouldNotRunError(f"nothing outside the gateways is in lab {lab.name}")
    tenant = plan.tenants[exposure.tenant]
    if exposure.mode == "masquerade":
        block = lab_stand.free_block(plan, lab, tenant)
        return Site(target, block.server, (block.host(0), block.host(1)), block.prefix, edge, gateway, block)
    if exposure.mode == "static":
        prefixes = [IPv4Network(prefix) for prefix in exposure.private]
        server, address = _owner(plan, lab, target, lambda a: any(IPv4Address(a) in prefix for prefix in prefixes))
    else:
        ends = {port.private_address for port in exposure.ports}
        server, address = _owner(plan, lab, target, ends.__contains__)
    # the neighbour that tries the hairpin is a host of the block, so it must be at the same server
    block = lab_stand.free_block(plan, lab, tenant, server)
    return Site(target, server.name, (address, block.host(0)), f"{address}/32", edge, gateway, block)


def _owner(plan: Plan, lab: Running, target: Target, wanted: Callable[[str], bool]) -> tuple[Server, str]:
    tenant = target.exposure.tenant
    for server in lab_stand.servers_of(plan, lab, tenant):
        for address in lab_stand.addresses(server, tenant):
            if wanted(address):
                return server, address
    raise CouldNotRunError(f"{target.subject}: no server that it leads to is in lab {lab.name}")
