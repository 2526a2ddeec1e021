"""What the checks that let the gateway probes break a gateway of a lab have in common: their undo, and one result."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, get_args

from fabric.problem import CouldNotRunError, InputError
from validators.check import Check, Context, NotJudgedError, Observations, Stage
from validators.connections.checks import lab_of
from validators.connections.from_plan import targets
from validators.connections.lab_stand import take_backs
from validators.devices.lab import MACHINE
from validators.failover.lanes import Layout, lay
from validators.journal_records import result_from_dict, result_to_dict
from validators.results import BAD, Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.plan import Plan
    from labs.client import Running

# a fault that has ended by itself is none any more; what is started again must not keep the pipes of this command
_HEAL = (
    'python3 -c "from labs.native import faults; '
    "[faults.heal(one['target']) for one in faults.listed() if one['target'] == '{gateway}']\" >/dev/null 2>&1"
)
# FRR needs a moment until it takes commands
_UNDRAIN = "for n in 1 2 3 4 5 6 7 8 9; do gatewayctl undrain && exit 0; sleep 1; done; exit 1"


class GatewayProbe(Check, abstract=True):
    """A probe that breaks a tenant's preferred gateway: its results are the parts of one."""

    stage = Stage.FAILOVER
    passive = False
    disruptive = True

    @classmethod
    def subject(cls, inputs: Any) -> str:
        """The tenant whose gateway it is."""
        return str(inputs.tenant)

    @classmethod
    def touches(cls, plan: Plan, inputs: Any) -> tuple[str, ...]:
        """The gateways of the tenant's group."""
        group = next((shown.group for shown in plan.tenants[inputs.tenant].exposures), "")
        return plan.groups[group].gateways if group else ()

    def collect(self, context: Context, inputs: Any) -> Observations:
        """Write down how everything is taken back, then let the probe run."""
        lab = lab_of(context)
        self.prepare(context, lab, inputs)
        return {"results": [result_to_dict(one) for one in self.probe(context, lab, inputs)]}

    def prepare(self, context: Context, lab: Running, inputs: Any) -> None:
        """Write the undo of the tester's stand, and of what happens to the gateway. Raises NotJudgedError (skipped)."""
        try:
            layout: Layout = lay(context.plan, lab, inputs.tenant)
        except (CouldNotRunError, InputError) as error:
            raise NotJudgedError(str(error), State.SKIPPED) from None
        for node, command in take_backs(layout.places, layout.blocks):
            context.undo.push(node, command, "remove the tester's stand")
        undo_gateway(context, layout.gateway)

    @abstractmethod
    def probe(self, context: Context, lab: Running, inputs: Any) -> list[Result]:
        """Run the probe."""

    @abstractmethod
    def good(self, inputs: Any, results: list[Result]) -> str:
        """Return what to say when everything was as it must be."""

    @abstractmethod
    def drawing(self, inputs: Any, results: list[Result]) -> dict[str, Any]:
        """Return the evidence, with the timeline."""

    def judge(self, plan: Plan, inputs: Any, observations: Observations) -> Result:
        """Put the probe's results together: each promise is a part, and the first that is not kept is the text."""
        results = [result_from_dict(one) for one in observations["results"]]
        state = combine(one.state for one in results)
        gateway = next((one.labels["gateway"] for one in results if "gateway" in one.labels), "")
        parts = tuple(part for one in results for part in (one.parts or (one,)))
        bad = next((one for one in results if one.state is state and state is not State.PASS), None)
        text = f"{bad.subject}: {bad.text}" if bad else self.good(inputs, results)
        place = f"{gateway or inputs.tenant}: its routes, and the gateways that take over" if state in BAD else ""
        tenant = plan.tenants[inputs.tenant]
        labels = {"tenant": tenant.name, "vrf": tenant.vrf} | ({"device": gateway} if gateway else {})
        return Result(
            self.name, self.subject(inputs), state, text, place, _figures(results), parts, labels,
            self.drawing(inputs, results),
        )  # fmt: skip


def undo_gateway(context: Context, gateway: str) -> None:
    """Write down how a gateway is healed, and afterwards takes traffic again."""
    context.undo.push(gateway, _UNDRAIN, "end a drain")
    context.undo.push(MACHINE, _HEAL.format(gateway=gateway), f"heal {gateway}")


def tenants_to_break(plan: Plan) -> Iterator[str]:
    """Yield the first tenant of every set of gateways that are one group's, where there is a gateway to take over."""
    if not any(tenant.exposures for tenant in plan.tenants.values()):
        return
    seen: set[frozenset[str]] = set()
    for target in targets(plan):
        gateways = frozenset(plan.groups[target.exposure.group].gateways)
        if len(gateways) > 1 and gateways not in seen:
            seen.add(gateways)
            yield target.exposure.tenant


def not_tried(choice: object, tried: Sequence[str]) -> list[str]:
    """Return the words of a `Literal` that were not tried."""
    return [word for word in get_args(choice) if word not in tried]


def _figures(results: list[Result]) -> tuple[Measurement, ...]:
    """Return the worst of each thing that was measured."""
    worst: dict[str, Measurement] = {}
    for one in results:
        for figure in one.measurements:
            if figure.name not in worst or figure.value > worst[figure.name].value:
                worst[figure.name] = figure
    return tuple(worst.values())
