"""The gateway probes in a lab: NAT behaviour, idle timers and ladders of a plan's exposures, against rendered gateways.

`run_nat`, `run_idle` and `run_ladder` take the plan and the running lab and return one result an exposure; an exposure
that the lab cannot show (its servers or gateways are not in the slice) is skipped with the reason.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from fabric.gateway import timeouts
from fabric.problem import CouldNotRunError
from fabric.render import gateway as render
from validators.connections import idle_judge, lab_stand, ladder_judge, nat_judge
from validators.connections.command import Place, Testers, probe_idle, probe_ladder, probe_nat
from validators.connections.from_plan import Target, targets
from validators.connections.lab_stand import INTERFACE, NEXT_HOP, OUTSIDE, Block, Stand
from validators.connections.programs import LabHost
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fabric.plan import Plan, Server
    from labs.client import Running

    Say = Callable[[str], None]

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

    def places(self) -> dict[str, list[str]]:
        """Return what the stand speaks for, by node."""
        own = [self.prefix, *([self.block.prefix] if self.block else [])]
        return {self.inside: own, self.outside: [str(OUTSIDE)]}


def quiet(_text: str) -> None:
    """Say nothing."""


def run_nat(plan: Plan, lab: Running, *, tenant: str = "", exposure: str = "", say: Say = quiet) -> list[Result]:
    """Ask all NAT cases of every exposure (or those of one tenant, one name). Raises InputError, CouldNotRunError."""
    return _each(
        plan, lab, (tenant, exposure), nat_judge.CHECK, say, lambda site, testers: probe_nat(site.target, testers)
    )


def run_idle(
    plan: Plan, lab: Running, *, tenant: str = "", exposure: str = "", scale: float = 0.0, say: Say = quiet
) -> list[Result]:
    """Measure the idle truth table of every stateful exposure.

    The gateway is given timers that are `scale` times the plan's for as long as it takes (0: such that the longest is
    12 s); the result says which. Loading them, and the plan's own afterwards, keeps open flows.
    """

    def one(site: Site, testers: Testers) -> Result:
        own = scale or min(1.0, _IDLE_MOST_S / max(site.target.idle().values(), default=1.0))
        with scaled_timers(plan, lab, site.gateway, own):
            result = probe_idle(site.target, testers, scale=own, per_s=_FLOWS_PER_S)
            for _ in range(_PASSES - 1):
                if result.state is State.UNKNOWN:
                    say(f"{idle_judge.CHECK} {site.target.subject}: once more: {result.text}")
                    result = idle_judge.decided(result, probe_idle(site.target, testers, scale=own, per_s=_FLOWS_PER_S))
        return result

    return _each(plan, lab, (tenant, exposure), idle_judge.CHECK, say, one, skip=_stateless)


def run_ladder(
    plan: Plan,
    lab: Running,
    *,
    tenant: str = "",
    exposure: str = "",
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

        found += _each(plan, lab, (tenant, exposure), ladder_judge.CHECK, say, one, skip=_no_way_out)
    return found


def _stateless(target: Target) -> str:
    return "static keeps no state and has no idle timeout" if target.exposure.mode == "static" else ""


def _no_way_out(target: Target) -> str:
    return "a port forward lets nothing out" if target.exposure.mode == "portForward" else ""


def _each(
    plan: Plan,
    lab: Running,
    wanted: tuple[str, str],
    check: str,
    say: Say,
    probe: Callable[[Site, Testers], Result],
    *,
    skip: Callable[[Target], str] = lambda _target: "",
) -> list[Result]:
    tenant, exposure = wanted
    found = []
    for target in targets(plan, tenant=tenant, exposure=exposure):
        reason = skip(target)
        try:
            site = None if reason else site_of(plan, lab, target)
        except CouldNotRunError as error:
            site, reason = None, str(error)
        if site is None:
            found.append(Result(check, target.subject, State.SKIPPED, reason, labels=target.labels))
            continue
        say(f"{check} {target.subject}: {site.inside} by {site.gateway} to {site.outside}")
        with Stand(plan, lab, site.places(), [site.block] if site.block else []), _testers(lab, site) as testers:
            testers.slow_down(_WAIT_S, _REST_S)
            found.append(probe(site, testers))
    return found


def _testers(lab: Running, site: Site) -> Testers:
    far = (str(OUTSIDE[10]), str(OUTSIDE[11]))
    inside = Place(LabHost(lab, site.inside), INTERFACE, NEXT_HOP, site.prefix, site.hosts)
    outside = Place(LabHost(lab, site.outside), INTERFACE, NEXT_HOP, str(OUTSIDE), far)
    return Testers(inside, outside, LabHost(lab, site.gateway))


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
    if exposure.mode == "static":
        prefixes = [IPv4Network(prefix) for prefix in exposure.private]
        server, address = _owner(plan, lab, target, lambda a: any(IPv4Address(a) in prefix for prefix in prefixes))
        return Site(target, server.name, (address, address), f"{address}/32", edge, gateway, None)
    if exposure.mode == "masquerade":
        block = lab_stand.free_block(plan, lab, tenant)
        return Site(target, block.server, (block.host(0), block.host(1)), block.prefix, edge, gateway, block)
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


@contextmanager
def scaled_timers(plan: Plan, lab: Running, gateway: str, scale: float) -> Iterator[None]:
    """Give a gateway of the lab timers at a scale while the block runs, then the plan's own again."""
    text = render.render(plan, gateway)["nftables.conf"]
    try:
        if scale != 1:
            _load(lab, gateway, shortened(text, scale), timeouts.scaled(timeouts.ICMP_S, scale))
        yield
    finally:
        if scale != 1:
            _load(lab, gateway, text, timeouts.ICMP_S)


def shortened(text: str, scale: float) -> str:
    """Return a gateway's nftables.conf with every connection timer at a scale."""

    def policy(found: re.Match[str]) -> str:
        return re.sub(r"(?<=: )\d+", lambda number: str(timeouts.scaled(int(number[0]), scale)), found[0])

    return re.sub(r"policy = \{[^}]*\}", policy, text)


def _load(lab: Running, gateway: str, text: str, icmp_s: int) -> None:
    lab.run(gateway, ["nft", "-f", "-"], stdin=text.encode()).check()
    place = "/proc/sys/net/netfilter/nf_conntrack_icmp_timeout"
    lab.run(gateway, ["sh", "-c", f"echo {icmp_s} > {place}"]).check()
