"""Failover in a lab: a gateway dies in each of the ways in which gateways die, and returns; every NAT mode is watched.

What must happen comes from the plan: stateful flows die with the gateway and are made again on the next one's
addresses, static flows survive, new connections work again within the detection time (BFD, 300 ms x 3) and what
routing needs. When one of several links is lost, nothing dies. The gateway is brought back whatever happens: by the
probe itself, else by the lab after `_LEASE_S`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabric.plan import SPINE
from fabric.problem import CouldNotRunError, InputError, Problem
from validators.connections.in_lab import quiet
from validators.connections.lab_stand import Stand
from validators.failover.judge import CHECK, Declared, judge
from validators.failover.lanes import Lane, Rates, Traffic, lay
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.plan import Plan
    from labs.client import Running
    from validators.failover.observed import FlowsSeen

    Say = Callable[[str], None]

BFD_MS = 900.0  # 300 ms x 3, on every session
_ROUTING_MS = 2100.0  # a lab has one CPU for all its routers
_PAUSE_MS = 450.0  # half of BFD's patience
_LEASE_S = 300.0
GONE = "not back"  # the case of a result that says so


@dataclass(frozen=True)
class Case:
    """A way to die: how the lab does it, to the gateway or to one of its links, and whether its flows outlive it."""

    name: str
    how: str
    text: str
    state_kept: bool = False


CASES = (
    Case("process", "daemons", "routing is killed, the kernel goes on"),
    Case("link", "silent", "one inside link loses every packet with its light on", state_kept=True),
    Case("silent", "silent", "all its links lose every packet with their light on"),
    Case("node", "down", "all its links go dark"),
    Case("power", "power", "routing is gone and all links are dark"),
)


def chosen_cases(names: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases of these names, all for none; raises InputError."""
    known = {case.name: case for case in CASES}
    unknown = [name for name in names if name not in known]
    if unknown:
        fix = f"choose from {', '.join(known)}"
        raise InputError([Problem("probe.case", name, "is no case of a failover", fix) for name in unknown])
    return tuple(known[name] for name in names) or CASES


def run_failover(
    plan: Plan,
    lab: Running,
    *,
    tenant: str = "",
    exposure: str = "",
    cases: Sequence[str] = (),
    rates: Rates | None = None,
    within_ms: float = BFD_MS + _ROUTING_MS,
    say: Say = quiet,
) -> list[Result]:
    """Break the preferred gateway of a tenant (the first that exposes anything) in each case and bring it back.

    Disruptive. Returns two results an exposure and case: the loss and the return; and one that fails when the gateway
    does not come back, after which no other case is tried. Raises InputError for names that do not exist and
    CouldNotRunError when the lab is not well before.
    """
    wanted = chosen_cases(cases)
    layout = lay(plan, lab, tenant or first_tenant(plan), exposure, rates)
    gateway = layout.gateway
    settled(lab)
    results = [
        Result(CHECK, target.subject, State.SKIPPED, why, labels=target.labels) for target, why in layout.left_out
    ]
    try:
        with Stand(plan, lab, layout.places, layout.blocks) as stand:
            traffic = Traffic(stand, layout)
            for case in wanted:
                say(f"{CHECK} {gateway} {case.name}: {case.text}")
                results += _Failover(plan, lab, traffic, gateway, case, within_ms).run()
                if any(result.labels.get("case") == GONE for result in results):
                    break
    finally:
        mend(lab)
    return results


def first_tenant(plan: Plan) -> str:
    """Return the first tenant that exposes anything; empty when none does."""
    return next((tenant.name for tenant in plan.tenants.values() if tenant.exposures), "")


def mend(lab: Running, target: str = "") -> None:
    """Undo a fault of the lab, or all of them; a fault that has ended by itself meanwhile is undone already."""
    if any(target in ("", fault["target"]) for fault in lab.call("faults")):
        with suppress(CouldNotRunError, InputError):
            lab.call("heal", target=target)
    left = [fault["target"] for fault in lab.call("faults") if target in ("", fault["target"])]
    if left:
        raise CouldNotRunError(f"lab {lab.name}: {', '.join(left)} could not be healed")


def settled(lab: Running, timeout_s: float = 90) -> None:
    """Wait until the lab is what the plan says; raises CouldNotRunError with what is missing."""
    missing = unsettled(lab, timeout_s)
    if missing:
        raise CouldNotRunError(f"lab {lab.name} is not as planned: {missing}")


def unsettled(lab: Running, timeout_s: float = 90) -> str:
    """Wait until the lab is what the plan says; return what is missing when the time is over, else nothing."""
    return "; ".join(lab.call("converge", timeout_s=timeout_s)["missing"][:4])


def not_back(check: str, gateway: str, event: str, missing: str) -> list[Result]:
    """Return the result of a gateway that did not come back after an event; none when nothing is `missing`."""
    text = f"{gateway} is not back: the lab is not as planned: {missing}"
    labels = {"gateway": gateway, "case": GONE}
    return [Result(check, f"{gateway} {event}", State.FAIL, text, gateway, labels=labels)] if missing else []


@dataclass
class _Failover:
    plan: Plan
    lab: Running
    traffic: Traffic
    gateway: str
    case: Case
    within_ms: float
    event_ns: int = 0
    missing: str = ""

    def run(self) -> list[Result]:
        target, why = self._target()
        if why:
            return [Result(CHECK, f"{self.gateway} {self.case.name}", State.SKIPPED, why)]
        lost = self._watch("lost", lambda: self._cut(target), after_s=self.within_ms / 1000 + 1)
        try:
            # the lab is well when its routes are: what they carry has as long to follow as when they were lost
            back = self._watch("back", lambda: self._heal(target), after_s=self.within_ms / 1000 + 1)
        finally:
            mend(self.lab, target)
        return [*lost, *back, *not_back(CHECK, self.gateway, self.case.name, self.missing)]

    def _target(self) -> tuple[str, str]:
        """Return what the lab is to break, and why it cannot be asked for here; one of them is empty."""
        if self.case.name != "link":
            return self.gateway, ""
        inside = set(self.plan.gateways[self.gateway].uplinks)
        links = [link for link in self.lab.lab.links if link.id in inside]
        if len(links) < 2:
            return "", f"{self.gateway} has one inside link only: its loss is the loss of the gateway"
        leaves = {self.plan.links[link.id].far(self.gateway).device for link in links}
        spines = [s.name for s in self.plan.switches.values() if s.kind == SPINE and self.lab.lab.has(s.name)]
        if len(spines) < 2 and not leaves <= set(spines):
            return (
                "",
                "one spine tells a leaf one way to a gateway: with the link to it flows are lost until routes settle",
            )
        return links[0].id, ""

    def _cut(self, target: str) -> None:
        self.lab.call("cut", target=target, how=self.case.how, seconds=_LEASE_S)

    def _heal(self, target: str) -> None:
        mend(self.lab, target)
        self.missing = unsettled(self.lab)

    def _watch(self, phase: str, event: Callable[[], None], after_s: float) -> list[Result]:
        self.traffic.begin()
        time.sleep(1.0)
        self.event_ns = self.traffic.clock_ns()
        event()
        time.sleep(after_s)
        return [self._judged(lane, seen, phase) for lane, seen in self.traffic.end()]

    def _judged(self, lane: Lane, seen: FlowsSeen, phase: str) -> Result:
        declared = lane.target.failover(self.within_ms, self.gateway)
        if phase == "back":
            declared = replace(declared, before=declared.after, after=declared.before)
        if self.case.state_kept:
            declared = Declared(declared.mode, self.within_ms, state_kept=True)
        labels = {**lane.target.labels, "gateway": self.gateway, "case": f"{self.case.name} {phase}"}
        subject = f"{self.gateway} {self.case.name} {phase}: {lane.target.subject}"
        result = judge(subject, seen, declared, longest_pause_ms=_PAUSE_MS, labels=labels)
        result.evidence["event_ns"] = self.event_ns
        return result
