"""Exposures of a lab measured at the same time: one stand for all that do not get in each other's way.

Most of a probe is waiting: for packets that must not come, for timers. Each exposure has agents and a block outside of
its own, so that nothing of one is heard by another.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from validators.connections.command import Place, Testers
from validators.connections.lab_stand import INTERFACE, NEXT_HOP, OUTSIDE, Stand
from validators.connections.programs import LabHost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fabric.plan import Plan
    from labs.client import Running
    from validators.connections.in_lab import Site
    from validators.results import Result

_AT_ONCE = 4
_SITES = 15  # of one stand: each has a /28 outside, and flows of a number of its own (four bits of a TCP sequence)
_LENGTH = 28
_FIRST_TABLE = 778  # of the ways to the gateways, one a site


def measure(
    plan: Plan,
    lab: Running,
    sites: list[Site],
    probe: Callable[[Site, Testers], Result],
    *,
    around: Callable[[list[Site]], AbstractContextManager[None]] = lambda _sites: nullcontext(),
    apart: Callable[[Site, Site], bool] = lambda _a, _b: False,
    on_gateway: bool = False,
    at_once: int = _AT_ONCE,
) -> Iterator[tuple[Site, Result]]:
    """Probe every site, wave by wave: inside `around`, at most `at_once` at the same time, with their results.

    Sites that are `apart` are never in one wave. `on_gateway` wants an agent on each gateway too. Raises
    CouldNotRunError when a stand cannot be set up or taken back.
    """
    for wave in waves(sites, apart):
        places: dict[str, list[str]] = {}
        for site in wave:
            for node, prefixes in site.places().items():
                places.setdefault(node, []).extend(prefixes)
        with ExitStack() as stack:
            stack.enter_context(Stand(plan, lab, places, [site.block for site in wave if site.block]))
            stack.enter_context(around(wave))
            benches = []
            for number, site in enumerate(wave):
                watched = on_gateway or site.target.exposure.mode == "static"
                benches.append(stack.enter_context(_testers(lab, site, number, on_gateway=watched)))
            pool = ThreadPoolExecutor(at_once)
            try:
                results = list(pool.map(probe, wave, benches))
            finally:
                # who is interrupted does not wait for a probe to end: its agents are closed next, and it with them
                pool.shutdown(wait=False, cancel_futures=True)
        yield from zip(wave, results, strict=True)


def waves(sites: list[Site], apart: Callable[[Site, Site], bool] = lambda _a, _b: False) -> list[list[Site]]:
    """Return the sites in few groups that can be measured at the same time, each site in the first that it fits."""
    found: list[list[Site]] = []
    for site in sites:
        fits = (w for w in found if len(w) < _SITES and not any(_clash(site, o) or apart(site, o) for o in w))
        wave = next(fits, None)
        if wave is None:
            found.append([site])
        else:
            wave.append(site)
    return found


def _clash(a: Site, b: Site) -> bool:
    """Whether two sites speak for the same addresses at one server, or bring one block to two servers."""
    if a.inside == b.inside:
        return IPv4Network(a.prefix).overlaps(IPv4Network(b.prefix))
    same = a.target.exposure.tenant == b.target.exposure.tenant
    return same and a.block is not None and b.block is not None and a.block.prefix == b.block.prefix


def _testers(lab: Running, site: Site, number: int, *, on_gateway: bool) -> Testers:
    """Start the testers of the site that has this number in its wave."""
    own = _outside_of(number)
    beside = site.block.prefix if site.block and site.block.prefix != site.prefix else ""
    inside = Place(LabHost(lab, site.inside), INTERFACE, NEXT_HOP, site.prefix, site.hosts, beside)
    outside = Place(LabHost(lab, site.outside), INTERFACE, NEXT_HOP, str(own), (str(own[10]), str(own[11])))
    return Testers(inside, outside, LabHost(lab, site.gateway) if on_gateway else None)


def _outside_of(number: int) -> IPv4Network:
    return IPv4Network((int(OUTSIDE[0]) + (number << (32 - _LENGTH)), _LENGTH))


@contextmanager
def straight_in(plan: Plan, lab: Running, wave: list[Site]) -> Iterator[None]:
    """Have what testers outside send to private addresses go to the gateway: no router has a way there of its own.

    Only then does the gateway, and not the lack of a route, keep it out. Raises CouldNotRunError.
    """
    ways: dict[str, list[str]] = {}
    for number, site in enumerate(wave):
        links = (plan.links[ident] for ident in plan.gateways[site.gateway].externals)
        hops = [link.end(site.gateway).address for link in links if link.far(site.gateway).device == site.outside]
        if not hops:
            continue
        table = _FIRST_TABLE + number
        mine = ways.setdefault(site.outside, [])
        mine.append(f"ip route replace default via {hops[0].partition('/')[0]} table {table}")
        for private in site.target.exposure.private:
            mine.append(f"ip rule add pref 1 from {_outside_of(number)} to {private} lookup {table}")
    try:
        for node, lines in ways.items():
            _shell(lab, node, " && ".join(lines))
        yield
    finally:
        for node, lines in ways.items():
            undone = (
                line.replace("ip rule add", "ip rule del").replace("route replace", "route del") for line in lines
            )
            _shell(lab, node, "; ".join([*(f"{line} 2>/dev/null" for line in undone), "true"]))


def _shell(lab: Running, node: str, script: str) -> None:
    done = lab.run(node, ["sh", "-c", script])
    if done.rc:
        raise CouldNotRunError(f"{node}: no way from the testers to the gateway: {done.err.strip()[:300]}")


def number_of(testers: Testers) -> int:
    """Return the number that the testers' site has in its wave, from 0 on."""
    return (int(IPv4Network(testers.places["outside"].network)[0]) - int(OUTSIDE[0])) >> (32 - _LENGTH)
