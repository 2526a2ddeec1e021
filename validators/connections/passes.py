"""Run a measurement with agents: one that holds both ports, or one on each side; returns observations only."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.connections.idle_judge import IdleRow, rows
from validators.connections.pacing import Pace
from validators.connections.step import StepObservation, StepSpec, merge
from validators.failover.observed import observed

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from validators.connections.controller import AgentProcess
    from validators.connections.idle import IdleSpec
    from validators.failover.flows import FlowsSpec
    from validators.failover.observed import FlowsSeen

_OPEN_S = 5.0


def idle_pass(
    initiator: AgentProcess,
    responder: AgentProcess,
    spec: IdleSpec,
    *,
    port: str = "p",
    opening: AbstractContextManager[Any] | None = None,
) -> list[IdleRow]:
    """Run one idle pass and return its rows; it takes as long as the oldest flow and a little more.

    Flows are opened inside `opening`, if there is one: passes at the same time take turns there.
    """
    for agent, kind in ((responder, "idle-responder"), (initiator, "idle-initiator")):
        agent.call("role", name="idle", port=port, kind=kind, spec=asdict(spec))
    longest = max(age for ages in spec.ages.values() for age in ages)
    with opening or nullcontext():
        deadline = time.monotonic() + spec.count / spec.per_s + spec.stream_s + longest + 10
        initiator.call("role_do", name="idle", what="start", timeout_s=60 + spec.count / spec.per_s)
    while responder.call("role_do", name="idle", what="remaining")["waiting"]:
        if time.monotonic() > deadline:
            raise CouldNotRunError("the idle pass did not end in time: the responder's host is too slow")
        time.sleep(0.2)
    time.sleep(0.5)
    seen = initiator.call("role_report", name="idle")
    return rows(spec, seen, responder.call("role_report", name="idle"))


def ladder_step(
    initiator: AgentProcess,
    responder: AgentProcess,
    spec: StepSpec,
    *,
    gateway: AgentProcess | None = None,
    inside: str = "p",
    outside: str = "p",
) -> StepObservation:
    """Run one step of a ladder, watching the gateway beside it if there is an agent on it."""
    if gateway is not None:
        gateway.call("watch_start")
    if initiator is responder:
        patience = 60 + 4 * spec.connections / spec.rate_per_s
        found = initiator.call("step", timeout_s=patience, inside=inside, outside=outside, spec=asdict(spec))
        seen = StepObservation(**found)
    else:
        seen = _two_hosts(initiator, responder, spec, inside, outside)
    return replace(seen, gateway=gateway.call("watch_stop")) if gateway is not None else seen


def _two_hosts(
    initiator: AgentProcess, responder: AgentProcess, spec: StepSpec, inside: str, outside: str
) -> StepObservation:
    data: dict[str, Any] = asdict(spec)
    patience = 60 + 4 * spec.connections / spec.rate_per_s
    responder.call("role", name="step", port=outside, kind="responder", spec=data)
    initiator.call("role", name="step", port=inside, kind="initiator", spec=data)
    rate = {"rate_per_s": spec.rate_per_s}
    created = Pace(**initiator.call("role_do", name="step", what="create", args=rate, timeout_s=patience))
    time.sleep(spec.settle_s + spec.hold_s)
    back = {"rate_per_s": spec.validate_per_s or spec.rate_per_s}
    validated = Pace(**responder.call("role_do", name="step", what="validate", args=back, timeout_s=patience))
    time.sleep(spec.settle_s)
    seen = initiator.call("role_report", name="step", timeout_s=patience)
    return merge(spec, seen, responder.call("role_report", name="step", timeout_s=patience), created, validated)


def flows_during(
    initiator: AgentProcess,
    responder: AgentProcess,
    spec: FlowsSpec,
    event: Callable[[], None],
    *,
    before_s: float = 1.0,
    after_s: float = 3.0,
    inside: str = "p",
    outside: str = "p",
    name: str = "flows",
) -> FlowsSeen:
    """Keep long flows and canaries talking while `event` happens; return what each of them met."""
    begin_flows(initiator, responder, spec, inside=inside, outside=outside, name=name)
    time.sleep(before_s)
    event()
    time.sleep(after_s)
    return end_flows(initiator, responder, spec, name=name)


def begin_flows(
    initiator: AgentProcess, responder: AgentProcess, spec: FlowsSpec, *, inside: str, outside: str, name: str
) -> None:
    """Open the long flows and see that they all talk; those that do not after `_OPEN_S` are left to the judge."""
    responder.call("role", name=name, port=outside, kind="flows-responder", spec=asdict(spec))
    initiator.call("role", name=name, port=inside, kind="flows-initiator", spec=asdict(spec))
    initiator.call("role_do", name=name, what="start")
    deadline = time.monotonic() + _OPEN_S
    pause_s = 0.1
    while initiator.call("role_do", name=name, what="retry")["unanswered"] and time.monotonic() < deadline:
        time.sleep(pause_s)
        pause_s = min(1.0, 1.5 * pause_s)  # the first packets of a path may wait for ARP, or for a CPU


def end_flows(
    initiator: AgentProcess, responder: AgentProcess, spec: FlowsSpec, *, name: str, hang_up: bool = False
) -> FlowsSeen:
    """Freeze both sides and return what was seen; `hang_up` then ends the TCP flows, as a client that leaves does."""
    for agent in (initiator, responder):
        agent.begin("role_do", name=name, what="freeze")
    for agent in (initiator, responder):
        agent.finish()
    if hang_up:
        initiator.call("role_do", name=name, what="hang_up")
    seen = initiator.call("role_report", name=name)
    return observed(spec, seen, responder.call("role_report", name=name))
