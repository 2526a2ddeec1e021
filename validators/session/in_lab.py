"""Requests in a lab: a streaming service behind a VIP, clients outside, and what goes wrong between them.

Clients call the VIP of the lab's load balancers, which take each connection to a forwarded public address and so by
edge router and gateway to a worker; every server behind the VIP has workers, the store is one for all.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError, InputError, Problem
from validators.connections.from_plan import Target, targets
from validators.connections.in_lab import quiet, site_of
from validators.connections.lab_timers import scaled_timers
from validators.connections.programs import LabHost
from validators.failover.in_lab import mend, settled
from validators.results import Result, State
from validators.session.cases import Service, run_case
from validators.session.client import Request
from validators.session.judge import CHECK, judge
from validators.session.vip import front_of, wait_until_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fabric.plan import Plan
    from labs.client import Running
    from validators.connections.in_lab import Site
    from validators.session.vip import Front

    Say = Callable[[str], None]

CASES = ("worker", "tool", "drain", "gateway")
_LEASE_S = 300.0
_IDLE_S = 3.0  # what idleTimeout becomes while a tool call outlasts it
_TOOL_S = 6.0
# BFD, routing on one CPU, and the silence after which a client gives a connection up
_WITHIN_MS = 6000.0


def run_session(
    plan: Plan,
    lab: Running,
    *,
    tenant: str = "",
    exposure: str = "",
    cases: Sequence[str] = (),
    sessions: int = 4,
    say: Say = quiet,
) -> list[Result]:
    """Run the cases (default: all) with a service behind the VIP of the first TCP port forward; one result a case.

    `drain` and `gateway` are disruptive; the gateway is brought back. Raises InputError for names that do not exist and
    for a site without such a forward, CouldNotRunError when the lab is not well before, or after.
    """
    unknown = [name for name in cases if name not in CASES]
    if unknown:
        fix = f"choose from {', '.join(CASES)}"
        raise InputError([Problem("probe.case", name, "is no case of a session", fix) for name in unknown])
    target = _forward(plan, tenant, exposure)
    try:
        site = site_of(plan, lab, target)
    except CouldNotRunError as error:
        return [Result(CHECK, target.subject, State.SKIPPED, str(error), labels=target.labels)]
    settled(lab)
    front = front_of(plan, lab, site)
    say(f"{CHECK} {target.subject}: {front.text}")
    with Service([(LabHost(lab, seat.node), seat.address, seat.port) for seat in front.seats]) as service:
        run = _Run(plan, lab, site, front, service, sessions, say)
        results = [run.case(name) for name in cases or CASES]
    settled(lab)
    return results


def _forward(plan: Plan, tenant: str, exposure: str) -> Target:
    for target in targets(plan, tenant=tenant, exposure=exposure):
        if any(port.protocol == "tcp" for port in target.exposure.ports):
            return target
    text = "no port forward of a TCP port, so there is nowhere for a service to answer"
    raise InputError([Problem("probe.forward", exposure or tenant or "site", text, "add a portForward exposure")])


@dataclass
class _Run:
    plan: Plan
    lab: Running
    site: Site
    front: Front
    service: Service
    sessions: int
    say: Say

    def case(self, name: str) -> Result:
        self.say(f"{CHECK} {self.site.target.subject}: {name}")
        ask: dict[str, dict[str, Any]] = {
            "worker": {"pieces": 60, "each_s": 0.1},
            "tool": {"op": "tool", "each_s": _TOOL_S, "silence_s": _TOOL_S + 1.5},
            "drain": {"pieces": 60, "each_s": 0.1, "silence_s": 3.0},
            "gateway": {"pieces": 80, "each_s": 0.1},
        }
        expect: dict[str, dict[str, Any]] = {
            "drain": {"must_break": False, "may_break": False},
            "gateway": {"within_ms": _WITHIN_MS},
        }
        requests = [self._request(f"{name}-{number}", ask[name]) for number in range(self.sessions)]
        wait_until_served(self.lab, self.front)
        with ExitStack() as stack:
            event = stack.enter_context(getattr(self, f"_{name}")())
            client = LabHost(self.lab, self.front.client)
            seen = run_case(name, requests, client=client, service=self.service, event=event, **expect.get(name, {}))
        labels = {**self.site.target.labels, "gateway": self.site.gateway, "front": self.front.text}
        return judge(self.site.target.subject, seen, labels=labels)

    def _request(self, name: str, ask: dict[str, Any]) -> Request:
        # a token of an earlier run is work that has been done already
        token = f"{name}-{time.time_ns()}"
        values = {"silence_s": 1.5, "patience_s": 60.0, "source": self.front.source, **ask}
        return Request(self.front.address, self.front.port, name, token, **values)

    @contextmanager
    def _worker(self) -> Iterator[Callable[[], None]]:
        """Each worker fails once while answers stream, after another one has taken its place."""
        yield self.service.all_workers_fail

    @contextmanager
    def _tool(self) -> Iterator[Callable[[], None]]:
        """IdleTimeout passes while a tool call runs in silence."""
        scale = _IDLE_S / self.site.target.exposure.idle_timeout_s
        with scaled_timers(self.lab, self.site.gateway, min(scale, 1.0)):
            yield lambda: None

    @contextmanager
    def _drain(self) -> Iterator[Callable[[], None]]:
        """The gateway is drained while answers stream, and stays so until they have ended."""
        started = []

        def event() -> None:
            words = ["gatewayctl", "drain", "--deadline", "60", "--settle", "1"]
            started.append(self.lab.start(self.site.gateway, words))
            started[0].wait_for("flows open", timeout_s=30)

        try:
            yield event
        finally:
            for process in started:
                process.kill()
            self.lab.run(self.site.gateway, ["gatewayctl", "undrain"]).check()

    @contextmanager
    def _gateway(self) -> Iterator[Callable[[], None]]:
        """The gateway loses every packet, with its light on, until the answers have ended on another one."""
        gateway = self.site.gateway
        try:
            yield lambda: self.lab.call("cut", target=gateway, how="silent", seconds=_LEASE_S)
        finally:
            mend(self.lab, gateway)
            settled(self.lab)
