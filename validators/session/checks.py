"""The check of requests that outlive their connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from validators.check import CheckInputs, Context
from validators.connections import lab_timers
from validators.connections.from_plan import targets
from validators.failover.probe_check import GatewayProbe, not_tried, tenants_to_break, undo_gateway
from validators.failover.timeline import request_timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan
    from labs.client import Running
    from validators.results import Result

Event = Literal["worker", "tool", "drain", "gateway"]


class RequestSessionsInputs(CheckInputs):
    """The port forward that requests come by, and what happens to them meanwhile; `sessions` requests run at once."""

    tenant: str
    exposure: str
    events: Annotated[tuple[Event, ...], Field(min_length=1)] = ("worker", "tool")
    sessions: Annotated[int, Field(ge=1, le=16)] = 2


class RequestSessions(GatewayProbe):
    """A client's request goes on where it stopped when its connection is lost, and its work is done once.

    A streaming service answers behind a port forward of the gateways. By default its workers fail while answers stream
    (`worker`), and a tool call is silent for longer than the gateway's idle timer (`tool`). A gateway that is drained
    or dies (`drain`, `gateway`) is another check's business, and run here when the catalog says so.

    Pass: every connection was made again, each answer is whole and in order, and no work was done twice.
    Fail: an answer is not whole, is wrong, comes twice or late, or work was done twice.
    Error: the service or a client could not run.
    Skipped: without --allow-disruptive; on a real site; where the lab does not have the forward's server or gateway.
    Example:
        request-sessions:
          - {tenant: acme, exposure: forward, events: [worker, tool]}
    """

    Inputs = RequestSessionsInputs

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case for each set of gateways that serve together: the first forward of a TCP port."""
        for tenant in tenants_to_break(plan):
            for target in targets(plan, tenant=tenant):
                if any(port.protocol == "tcp" for port in target.exposure.ports):
                    yield RequestSessionsInputs(tenant=tenant, exposure=target.exposure.name)
                    break

    @classmethod
    def subject(cls, inputs: RequestSessionsInputs) -> str:
        """The exposure."""
        return f"{inputs.tenant} {inputs.exposure}"

    def prepare(self, context: Context, lab: Running, inputs: RequestSessionsInputs) -> None:
        """Write the undo of the gateways: service and clients end with the lab's channel."""
        for gateway in self.touches(context.plan, inputs):
            if lab.lab.has(gateway):
                context.undo.push(gateway, lab_timers.PLANNED, "load the plan's own timers")
                undo_gateway(context, gateway)

    def probe(self, context: Context, lab: Running, inputs: RequestSessionsInputs) -> list[Result]:
        """Run all events with one service."""
        from validators.session.in_lab import run_session

        return run_session(
            context.plan, lab, tenant=inputs.tenant, exposure=inputs.exposure, cases=inputs.events,
            sessions=inputs.sessions,
        )  # fmt: skip

    def good(self, inputs: RequestSessionsInputs, results: list[Result]) -> str:
        """Say how many requests were whole, and which events nobody caused."""
        left = not_tried(Event, inputs.events)
        text = f"{len(results) * inputs.sessions} requests were answered whole and once, through {len(results)} events"
        return text + (f"; not tried: {', '.join(left)}" if left else "")

    def drawing(self, inputs: RequestSessionsInputs, results: list[Result]) -> dict[str, Any]:
        """Draw the sessions."""
        left = not_tried(Event, inputs.events)
        drawn = request_timeline(results)
        note = "Flows are requests; one that waits for a tool call is silent on purpose until the call has ended."
        return ({"timeline": drawn | {"note": note}} if drawn else {}) | {"not tried": left}
