"""The checks of a gateway that leaves: because it dies, and because somebody drains it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from validators.check import CheckInputs, Context
from validators.failover.probe_check import GatewayProbe, not_tried, tenants_to_break
from validators.failover.timeline import timeline
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan
    from labs.client import Running

# few frames, since the lab's processors carry them beside its routers: what they tell is good to a quarter of a second
_INTERVAL_S, _NEW_PER_S = 0.1, 10.0
Way = Literal["process", "link", "silent", "node", "power"]


class GatewayFailoverInputs(CheckInputs):
    """Whose preferred gateway dies, in which ways, and for how long new connections may be out, in ms.

    Each exposure of the tenant has `flows` long flows.
    """

    tenant: str
    ways: Annotated[tuple[Way, ...], Field(min_length=1)] = ("process",)
    within_ms: Annotated[float, Field(gt=0)] = 5000.0
    flows: Annotated[int, Field(ge=1, le=100)] = 4


class GatewayFailover(GatewayProbe):
    """When a gateway dies, another one takes over, and what may die with it does not linger.

    Long flows and new connections of each exposure of a tenant run through its preferred gateway, which then dies and
    comes back. By default it dies in one way, `process`: its routing is killed while its kernel goes on. The other
    ways (`link`, `silent`, `node`, `power`) take longer and are run when the catalog says so; the result names those
    that were not.

    Pass: stateful flows are made again on another gateway's addresses, static ones live on, new ones work in time.
    Fail: new connections are out for longer, a flow that must live dies, or one is made again with a strange address.
    Error: nothing was open before the event, or the lab is not as planned afterwards.
    Skipped: without --allow-disruptive; on a real site; where the lab has no server or gateway of the tenant.
    Example:
        gateway-failover:
          - {tenant: acme, ways: [process, silent], within_ms: 5000}
    """

    Inputs = GatewayFailoverInputs

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case for each set of gateways that serve together: its first tenant."""
        yield from (GatewayFailoverInputs(tenant=tenant) for tenant in tenants_to_break(plan))

    def probe(self, context: Context, lab: Running, inputs: GatewayFailoverInputs) -> list[Result]:
        """Let the gateway die in each of the ways."""
        from validators.failover.in_lab import run_failover
        from validators.failover.lanes import Rates

        rates = Rates(flows=inputs.flows, interval_s=_INTERVAL_S, new_per_s=_NEW_PER_S)
        return run_failover(
            context.plan, lab, tenant=inputs.tenant, cases=inputs.ways, rates=rates, within_ms=inputs.within_ms
        )

    def good(self, inputs: GatewayFailoverInputs, results: list[Result]) -> str:
        """Say what was seen, and which ways to die nobody tried."""
        left = not_tried(Way, inputs.ways)
        out = max((m.value for one in results for m in one.measurements if m.name == "new connections out"), default=0)
        text = f"new connections were out for at most {out:.0f} ms, {inputs.within_ms:g} ms are allowed"
        return text + (f"; not tried: {', '.join(left)}" if left else "")

    def drawing(self, inputs: GatewayFailoverInputs, results: list[Result]) -> dict[str, Any]:
        """Draw the flows around the moment in which the gateway died (in the first way)."""
        lost = [one for one in results if one.labels.get("case") == f"{inputs.ways[0]} lost"]
        drawn = timeline(lost, f"dies ({inputs.ways[0]})", inputs.within_ms)
        return ({"timeline": drawn} if drawn else {}) | {"not tried": not_tried(Way, inputs.ways)}


class GatewayDrainInputs(CheckInputs):
    """Whose preferred gateway is drained; flows have `deadline_s` seconds to end by themselves."""

    tenant: str
    deadline_s: Annotated[float, Field(ge=10)] = 60.0
    flows: Annotated[int, Field(ge=1, le=100)] = 4


class GatewayDrain(GatewayProbe):
    """A gateway is drained, stopped and taken back, and no client has lost an established connection.

    `gatewayctl drain` runs under live flows of each exposure of a tenant; then the clients leave, the gateway loses its
    power and comes back, and `gatewayctl undrain` lets it take traffic again.

    Pass: nothing established was cut before the deadline, nothing new landed on the draining gateway, undo works.
    Fail: a flow was cut, new flows went to the draining gateway or nowhere, or it gets no traffic afterwards.
    Error: no flow was established, or the lab is not as planned afterwards.
    Skipped: without --allow-disruptive; on a real site; where the lab has no server or gateway of the tenant.
    Example:
        gateway-drain:
          - {tenant: acme, deadline_s: 60}
    """

    Inputs = GatewayDrainInputs
    stands_on = ("gateway-failover",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case for each set of gateways that serve together: its first tenant."""
        yield from (GatewayDrainInputs(tenant=tenant) for tenant in tenants_to_break(plan))

    def probe(self, context: Context, lab: Running, inputs: GatewayDrainInputs) -> list[Result]:
        """Drain, stop, bring back, undo."""
        from validators.failover.drain_in_lab import run_drain
        from validators.failover.lanes import Rates

        rates = Rates(flows=inputs.flows, interval_s=_INTERVAL_S, new_per_s=_NEW_PER_S)
        return run_drain(context.plan, lab, tenant=inputs.tenant, deadline_s=inputs.deadline_s, rates=rates)

    def good(self, inputs: GatewayDrainInputs, results: list[Result]) -> str:
        """Say how much was seen to live on."""
        asked = [one for one in results if one.state is not State.SKIPPED]
        return f"nothing established was cut in {len(asked)} exposures, {inputs.flows} flows each"

    def drawing(self, inputs: GatewayDrainInputs, results: list[Result]) -> dict[str, Any]:
        """Draw the flows while the gateway drained."""
        del inputs
        drawn = timeline(results, "drain")
        said: list[str] = next((one.evidence["gatewayctl"] for one in results if "gatewayctl" in one.evidence), [])
        return ({"timeline": drawn} if drawn else {}) | {"gatewayctl": said}
