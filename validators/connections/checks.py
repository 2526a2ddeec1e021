"""The gateway probes as checks: what NAT really does to packets, how long it keeps silence, how fast it takes flows.

A probe judges as it measures (a search needs to know where to look next), so what is stored is its judgement with the
evidence for it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from fabric.problem import CouldNotRunError
from validators.check import Check, CheckInputs, Context, NotJudgedError, Observations, Stage
from validators.connections import lab_timers
from validators.connections.command import probe_idle, probe_ladder, probe_nat
from validators.connections.from_plan import targets
from validators.connections.lab_stand import take_backs
from validators.connections.on_site import hosts_of, testers_of
from validators.journal_records import result_from_dict, result_to_dict
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fabric.plan import Exposure, Plan
    from labs.client import Running
    from validators.connections.command import Testers
    from validators.connections.from_plan import Target
    from validators.connections.in_lab import Site
    from validators.devices.hosts import Host


_NAMED = 4


class ExposureInputs(CheckInputs):
    """An exposure of a tenant."""

    tenant: str
    exposure: str


class IdleInputs(ExposureInputs):
    """`scale` shortens the timers of the gateway for the measurement; 0: such that the longest is 12 s."""

    scale: Annotated[float, Field(ge=0, le=1)] = 0.0


class LadderInputs(ExposureInputs):
    """Steps of `connections` new connections, from `start` to `highest` a second; fails below `wanted` when given."""

    protocol: Literal["udp", "tcp", "icmp"] = "udp"
    connections: Annotated[int, Field(ge=1)] = 400
    start: Annotated[float, Field(gt=0)] = 400.0
    highest: Annotated[float, Field(gt=0)] = 1600.0
    wanted: Annotated[float, Field(gt=0)] | None = None


class _ProbeCheck(Check, abstract=True):
    stage = Stage.GATEWAYS
    passive = False
    # the tester takes addresses of servers and of the outside while it measures
    disruptive = True
    together = True
    # the check that reads of every exposure what this one measures of one in each kind
    compared: ClassVar[str]

    @classmethod
    @abstractmethod
    def kind(cls, exposure: Exposure) -> tuple[object, ...]:
        """Return what exposures have in common that are measured once."""

    @classmethod
    def subject(cls, inputs: Any) -> str:
        """The exposure."""
        return f"{inputs.tenant} {inputs.exposure}"

    @classmethod
    def touches(cls, plan: Plan, inputs: Any) -> tuple[str, ...]:
        """The gateways that serve the exposure."""
        return plan.groups[_exposure(plan, inputs).group].gateways

    def collect_all(self, context: Context, cases: Sequence[Any]) -> list[Observations | Exception]:
        """Probe one after another on a site, whose test hosts are one pair; in a lab at the same time."""
        hosts = hosts_of(context)
        if hosts is not None:
            return [self._on_site(context, hosts, inputs) for inputs in cases]
        lab = lab_of(context)
        found: dict[Any, Observations | Exception] = {}
        for inputs in cases:
            try:
                prepare(context, lab, inputs)
            except NotJudgedError as error:
                found[inputs] = error
        # what a check is asked beside the exposure (a scale, a rate) is the same for all of one pass
        groups: dict[Any, list[Any]] = {}
        for inputs in cases:
            if inputs not in found:
                groups.setdefault(inputs.model_copy(update={"tenant": "", "exposure": ""}), []).append(inputs)
        for group in groups.values():
            results = self.probe(context, lab, group)
            found |= {one: {"results": [result_to_dict(seen)]} for one, seen in zip(group, results, strict=True)}
        context.undo.settle()  # a probe that ends in order has taken its stand and its timers back
        return [found[inputs] for inputs in cases]

    def _on_site(self, context: Context, hosts: Mapping[str, Host], inputs: Any) -> Observations | Exception:
        target = targets(context.plan, tenant=inputs.tenant, exposure=inputs.exposure)[0]
        try:
            with testers_of(context.plan, hosts, target) as testers:
                return {"results": [result_to_dict(self.on_site(target, testers, inputs))]}
        except (NotJudgedError, CouldNotRunError) as error:
            return error

    @abstractmethod
    def probe(self, context: Context, lab: Running, group: Sequence[Any]) -> list[Result]:
        """Run the probe of exposures that differ in nothing else in a lab: a result each, in order."""

    @abstractmethod
    def on_site(self, target: Target, testers: Testers, inputs: Any) -> Result:
        """Run it between test hosts."""

    def judge(self, plan: Plan, inputs: Any, observations: Observations) -> Result:
        """Return the probe's judgement in the words of the catalog."""
        found = result_from_dict(observations["results"][0])
        tenant = plan.tenants[inputs.tenant]
        labels = {**found.labels, "tenant": tenant.name, "vrf": tenant.vrf}
        place = found.place
        if found.state is State.FAIL and not place:
            exposure = _exposure(plan, inputs)
            place = f"{plan.groups[exposure.group].gateways[0]}, exposure {exposure.name} of {tenant.name}"
        text = f"{found.text}{self._others(plan, inputs)}"
        return Result(
            self.name, self.subject(inputs), found.state, text, place, found.measurements, self.parts(found),
            labels, self.drawing(found), found.test_id,
        )  # fmt: skip

    def _others(self, plan: Plan, inputs: Any) -> str:
        """Name the exposures that nobody measures because this one is of their kind."""
        measured, mine = _first(plan, self.kind), _exposure(plan, inputs)
        if mine not in measured:
            return ""
        alike = [one for one in _exposures(plan) if self.kind(one) == self.kind(mine) and one is not mine]
        names = ", ".join(f"{one.tenant} {one.name}" for one in alike[:_NAMED])
        more = f" and {len(alike) - _NAMED} more" if len(alike) > _NAMED else ""
        return f"; not measured: {names}{more}, alike by {self.compared}" if names else ""

    def parts(self, found: Result) -> tuple[Result, ...]:
        """Return the promises among the rows; behaviour that nobody declared is shown in the evidence."""
        return tuple(part for part in found.parts if part.state is not State.UNKNOWN or found.state is State.UNKNOWN)

    def drawing(self, found: Result) -> dict[str, Any]:
        """Return the evidence, with the numbers of a plot where there is one."""
        shown = [part.text for part in found.parts if part.state is State.UNKNOWN]
        return {**found.evidence, **({"behaviour": shown} if shown else {})}


class NatBehaviour(_ProbeCheck):
    """An exposure lets through what it promises, from its own addresses, and nothing else.

    Packets with a token each are sent from both sides and found again on the other: reach and no reach, public address
    and port, checksums, hairpin, resets and ICMP errors (RFC 4787, 5382, 5508).

    Pass: every promise of the exposure's mode is kept.
    Fail: a promise is broken, such as a source address that is not of the pool.
    Error: a tester could not run, or nothing arrived where something should be measured.
    Skipped: without --allow-disruptive; where the lab has no server or gateway of the exposure; on a real site whose
        hosts file names no test hosts for it.
    Example:
        nat-behaviour:
          - {tenant: acme, exposure: masquerade}
    """

    Inputs = ExposureInputs
    stands_on = ("gateway-serving", "nat-rules")
    compared = "nat-rules"

    @classmethod
    def kind(cls, exposure: Exposure) -> tuple[object, ...]:
        """A mode does the same for all exposures of a tenant."""
        return exposure.tenant, exposure.mode

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per tenant and mode: `nat-rules` reads all exposures."""
        for exposure in _first(plan, cls.kind):
            yield ExposureInputs(tenant=exposure.tenant, exposure=exposure.name)

    def probe(self, context: Context, lab: Running, group: Sequence[ExposureInputs]) -> list[Result]:
        """Ask all NAT cases."""
        from validators.connections.in_lab import run_nat

        return run_nat(context.plan, lab, only=_names(group))

    def on_site(self, target: Target, testers: Testers, inputs: ExposureInputs) -> Result:
        """Ask all NAT cases."""
        del inputs
        return probe_nat(target, testers)


class IdleTimeouts(_ProbeCheck):
    """A gateway forgets a silent flow when the exposure says so: by protocol and by state of the flow.

    Flows of every kind and age are opened in one pass, left alone, and answered once. In a lab timers may be
    shortened for the measurement; the result says so.

    Pass: each measured timer is the declared one, to half a second or better.
    Fail: a timer is shorter or longer.
    Error: no flow came as far as silence.
    Skipped: without --allow-disruptive; on a real site whose hosts file names no test hosts for it.
    Example:
        idle-timeouts:
          - {tenant: acme, exposure: masquerade, scale: 0.05}
    """

    Inputs = IdleInputs
    stands_on = ("nat-timeouts", "nat-behaviour")
    compared = "nat-timeouts"

    @classmethod
    def kind(cls, exposure: Exposure) -> tuple[object, ...]:
        """Equal timers of one mode are one row of the truth table."""
        return exposure.mode, exposure.idle_timeout_s

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per mode and timeout that keeps state: `nat-timeouts` reads the timers of every exposure."""
        for exposure in _first(plan, cls.kind):
            if exposure.mode != "static":
                yield IdleInputs(tenant=exposure.tenant, exposure=exposure.name)

    def probe(self, context: Context, lab: Running, group: Sequence[IdleInputs]) -> list[Result]:
        """Measure the truth tables in one pass."""
        from validators.connections.in_lab import run_idle

        for gateway in dict.fromkeys(name for inputs in group for name in self.touches(context.plan, inputs)):
            context.undo.push(gateway, lab_timers.PLANNED, "load the plan's own timers")
        return run_idle(context.plan, lab, only=_names(group), scale=group[0].scale)

    def on_site(self, target: Target, testers: Testers, inputs: IdleInputs) -> Result:
        """Measure the truth table with the gateway's own timers, for as long as the longest takes."""
        return probe_idle(target, testers, scale=inputs.scale or 1.0)

    def drawing(self, found: Result) -> dict[str, Any]:
        """Add the table: what the plan says, what the gateway was given for the measurement, and what was measured."""
        rows = []
        for part in found.parts:
            protocol, _, state = part.labels.get("kind", "").partition("-")
            seen = part.evidence
            rows.append(
                {"protocol": protocol, "state": state or "query", "plan_s": seen.get("declared_s"),
                 "declared_s": seen.get("rendered_s"),
                 "measured_s": part.measurements[0].value if part.measurements else None, "verdict": part.state.value}
            )  # fmt: skip
        return {**super().drawing(found), "idle": {"rows": rows}}


class ConnectionLadder(_ProbeCheck):
    """A gateway takes new connections at a rate, and every one of them works (RFC 9693).

    Pass: a rate was found at which every connection validates, at least the wanted one where one is declared.
    Fail: the gateway ended below the wanted rate, or gave addresses that are not of the pool.
    Error: no step could run.
    Skipped: without --allow-disruptive; on a real site whose hosts file names no test hosts for it.
    Example:
        connection-ladder:
          - {tenant: acme, exposure: masquerade, protocol: udp, start: 100, highest: 1600}
    """

    Inputs = LadderInputs
    stands_on = ("nat-behaviour",)
    compared = "nat-rules"

    @classmethod
    def kind(cls, exposure: Exposure) -> tuple[object, ...]:
        """A group of gateways is as fast for all that it serves."""
        return exposure.group, exposure.mode

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per gateway group: its first exposure that lets something out."""
        for exposure in _first(plan, cls.kind):
            if exposure.mode == "masquerade":
                yield LadderInputs(tenant=exposure.tenant, exposure=exposure.name)

    def probe(self, context: Context, lab: Running, group: Sequence[LadderInputs]) -> list[Result]:
        """Climb, one after another."""
        from validators.connections.in_lab import run_ladder

        inputs = group[0]
        return run_ladder(
            context.plan, lab, only=_names(group), protocols=(inputs.protocol,),
            connections=inputs.connections, start=inputs.start, highest=inputs.highest, wanted=inputs.wanted,
        )  # fmt: skip

    def on_site(self, target: Target, testers: Testers, inputs: LadderInputs) -> Result:
        """Climb."""
        return probe_ladder(
            target, testers, protocol=inputs.protocol, connections=inputs.connections, start=inputs.start,
            highest=inputs.highest, wanted=inputs.wanted,
        )  # fmt: skip

    def parts(self, found: Result) -> tuple[Result, ...]:
        """Return none: a step that fails above the knee is how a knee is found, not a failure."""
        del found
        return ()

    def drawing(self, found: Result) -> dict[str, Any]:
        """Add the curve: offered against validated, connections a second."""
        points = [
            {"x": step.evidence["asked_per_s"], "y": step.evidence["real_per_s"] * _share(step.evidence),
             "ok": step.state is State.PASS}
            for step in found.parts
        ]  # fmt: skip
        points.sort(key=lambda point: point["x"])
        knee = found.measurements[0] if found.measurements else None
        return {
            "ladder": {
                "points": points, "x": "asked, connections/s", "y": "validated, connections/s", "ideal": True,
                "knee": knee.value if knee else None, "limit": knee.limit if knee else "",
            }
        }  # fmt: skip


def _names(group: Sequence[ExposureInputs]) -> list[tuple[str, str]]:
    return [(inputs.tenant, inputs.exposure) for inputs in group]


def _share(step: dict[str, Any]) -> float:
    return float(step["validated"]) / float(step["connections"]) if step.get("connections") else 0.0


def _exposures(plan: Plan) -> list[Exposure]:
    if not any(tenant.exposures for tenant in plan.tenants.values()):
        return []
    return [target.exposure for target in targets(plan)]


def _first(plan: Plan, alike: Callable[[Exposure], tuple[object, ...]]) -> list[Exposure]:
    """Return the first exposure of each kind."""
    found: dict[tuple[object, ...], Exposure] = {}
    for exposure in _exposures(plan):
        found.setdefault(alike(exposure), exposure)
    return list(found.values())


def _exposure(plan: Plan, inputs: Any) -> Exposure:
    return next(e for e in plan.tenants[inputs.tenant].exposures if e.name == inputs.exposure)


def lab_of(context: Context) -> Running:
    """Return the lab behind an engine. Raises NotJudgedError (skipped) where there is none."""
    from validators.devices.lab import LabDevices

    inner = getattr(context.devices, "inner", context.devices)
    if isinstance(inner, LabDevices):
        return inner.running
    message = "this probe builds its testers in a lab; on a real site use `kvfabric probe` with hosts for its agents"
    raise NotJudgedError(message, State.SKIPPED)


def prepare(context: Context, lab: Running, inputs: Any) -> None:
    """Write down how to take the tester's stand back, should this process be killed.

    Raises NotJudgedError (skipped) for an exposure that this lab cannot show.
    """
    from validators.connections.in_lab import site_of

    target = targets(context.plan, tenant=inputs.tenant, exposure=inputs.exposure)[0]
    try:
        site: Site = site_of(context.plan, lab, target)
    except CouldNotRunError as error:
        raise NotJudgedError(str(error), State.SKIPPED) from None
    pending = {(undo.device, undo.command) for undo in context.undo.pending}
    for node, command in take_backs(site.places(), [site.block] if site.block else []):
        if (node, command) not in pending:  # cases of one pass share a stand
            context.undo.push(node, command, "remove the tester's stand")
