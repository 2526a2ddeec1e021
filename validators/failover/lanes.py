"""Lanes: the long flows of one exposure in a lab, from an inside node through the gateways to an outside node or back.

All lanes of a tenant talk at the same time, so that one event is seen by every NAT mode.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from validators.connections import lab_stand, passes
from validators.connections.from_plan import Target, targets
from validators.connections.in_lab import site_of
from validators.failover.flows import REPLACEMENTS, FlowsSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Plan
    from labs.client import Running
    from validators.connections.controller import AgentProcess
    from validators.connections.lab_stand import Block, Stand
    from validators.failover.observed import FlowsSeen

_FAR_LENGTH = 29
_PORTS_EACH = 2500
_FIRST_PORT, _LAST_PORT = 10_000, 60_000


@dataclass(frozen=True)
class Rates:
    """How much the lanes talk: flows of each mode, seconds between two frames of one, new connections a second."""

    flows: int = 10
    interval_s: float = 0.05
    new_per_s: float = 20.0


@dataclass(frozen=True)
class Lane:
    """One exposure's flows: who opens them, who answers, on which port of either agent."""

    target: Target
    initiator: str
    responder: str
    initiator_port: str
    responder_port: str
    spec: FlowsSpec
    gateway: str

    @property
    def name(self) -> str:
        """Name its roles in the agents."""
        return f"{self.target.exposure.tenant}.{self.target.exposure.name}"


@dataclass(frozen=True)
class Layout:
    """The lanes of a tenant, what the stand must speak for, and the exposures that have no lane here, with reasons."""

    lanes: tuple[Lane, ...]
    ports: tuple[tuple[str, str, str], ...]
    places: dict[str, list[str]]
    blocks: tuple[Block, ...]
    left_out: tuple[tuple[Target, str], ...]

    @property
    def gateway(self) -> str:
        """The gateway that the flows go through: a tenant has one group, so one gateway is preferred."""
        return self.lanes[0].gateway


def lay(plan: Plan, lab: Running, tenant: str, exposure: str = "", rates: Rates | None = None) -> Layout:
    """Return the lanes of a tenant's exposures; raises InputError, and CouldNotRunError when there is none."""
    rates = rates or Rates()
    lanes: list[Lane] = []
    ports: list[tuple[str, str, str]] = []
    places: dict[str, list[str]] = {}
    blocks: list[Block] = []
    left_out: list[tuple[Target, str]] = []
    far = itertools.islice(lab_stand.OUTSIDE.subnets(new_prefix=_FAR_LENGTH), 1, None)
    for target in targets(plan, tenant=tenant, exposure=exposure):
        try:
            site = site_of(plan, lab, target)
            if target.exposure.mode != "masquerade":
                # a forward's block is for its hairpin only, and two blocks at two servers would be the same addresses
                site = replace(site, block=None)
            outside = next(far)
            spec = _spec(target, site.hosts[0], str(outside[2]), rates)
        except CouldNotRunError as error:
            left_out.append((target, str(error)))
            continue
        for node, prefixes in site.places().items():
            places.setdefault(node, []).extend(prefixes)
        blocks += [site.block] if site.block else []
        name = target.exposure.name
        ports += [(site.inside, f"{name}-in", site.prefix), (site.outside, f"{name}-out", str(outside))]
        ends = [(site.inside, f"{name}-in"), (site.outside, f"{name}-out")]
        if target.exposure.mode == "portForward":
            ends.reverse()
        (first, first_port), (second, second_port) = ends
        lanes.append(Lane(target, first, second, first_port, second_port, spec, site.gateway))
    if not lanes:
        raise CouldNotRunError("; ".join(reason for _, reason in left_out))
    return Layout(tuple(lanes), tuple(ports), places, tuple(dict.fromkeys(blocks)), tuple(left_out))


def _spec(target: Target, inside: str, outside: str, rates: Rates) -> FlowsSpec:
    """Stateful modes talk TCP, where a lost flow can be told from one that was made again unseen; static talks UDP."""
    common = {"slots": rates.flows, "interval_s": rates.interval_s, "new_per_s": rates.new_per_s}
    common |= {"canaries": _PORTS_EACH - (1 + REPLACEMENTS) * rates.flows, "reopen_s": max(0.3, 4 * rates.interval_s)}
    mode = target.exposure.mode
    if mode != "portForward":
        return FlowsSpec("tcp" if mode == "masquerade" else "udp", inside, outside, 7000, **common)  # type: ignore[arg-type]
    ends = target.ends((inside, inside), (outside, outside))
    forward = next((item for item in ends.forwards if item[0] == "tcp"), None)
    if forward is None:
        raise CouldNotRunError(f"{target.subject}: forwards no TCP port, and a UDP flow is made again unseen")
    return FlowsSpec("tcp", outside, ends.public, forward[1], **common)  # type: ignore[arg-type]


class Traffic:
    """The lanes on a stand; each `begin` uses source ports of its own, so that no flow meets an older one's state."""

    def __init__(self, stand: Stand, layout: Layout, *, rest_s: float = 0.004) -> None:
        """Open the agents' ports. `rest_s` is how long a role sleeps between two looks at its ring."""
        self._stand, self.layout = stand, layout
        self._runs = itertools.count(1)
        for node, port, prefix in layout.ports:
            stand.open(node, port, prefix, ring_megabytes=4)
            stand.agent(node).call("rest", seconds=rest_s)
        self._specs: dict[str, FlowsSpec] = {}

    def begin(self, lanes: Iterable[Lane] | None = None) -> None:
        """Open all flows and canaries of the lanes."""
        run = next(self._runs)
        first = _FIRST_PORT + _PORTS_EACH * ((run - 1) % ((_LAST_PORT - _FIRST_PORT) // _PORTS_EACH))
        for lane in lanes or self.layout.lanes:
            spec = self._specs[lane.name] = replace(lane.spec, run=run % 15 + 1, first_port=first)
            initiator, responder = self._ends(lane)
            ends = {"inside": lane.initiator_port, "outside": lane.responder_port}
            passes.begin_flows(initiator, responder, spec, **ends, name=lane.name)

    def end(self, *, hang_up: bool = False) -> list[tuple[Lane, FlowsSeen]]:
        """Freeze and report the lanes that were begun, in their order; `hang_up` ends TCP flows by a reset."""
        found = []
        for lane in self.layout.lanes:
            if lane.name in self._specs:
                spec = self._specs.pop(lane.name)
                initiator, responder = self._ends(lane)
                found.append((lane, passes.end_flows(initiator, responder, spec, name=lane.name, hang_up=hang_up)))
        return found

    def clock_ns(self) -> int:
        """Return the time on the clock that the agents use, in ns since 1970."""
        now: int = self._stand.agent(self.layout.lanes[0].initiator).call("hello")["clock_ns"]
        return now

    def _ends(self, lane: Lane) -> tuple[AgentProcess, AgentProcess]:
        return self._stand.agent(lane.initiator), self._stand.agent(lane.responder)
