"""The RDMA probe as checks: KV-shaped transfers of each tenant, and what must not work.

Bandwidth over Soft-RoCE says something about the CPU of the lab only: there it is never compared with a line rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from fabric.kv.link import payload_gbps
from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, Context, NotJudgedError, Observations, Stage
from validators.rdma.endpoints import endpoints
from validators.rdma.judge import Limits
from validators.rdma.launch import Ask
from validators.rdma.places import places_of
from validators.rdma.probe import collect, results
from validators.rdma.question import Question
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.plan import Plan
    from validators.rdma.endpoints import Endpoint

# from so many NICs on, every pair of them is too much, and random flows that touch each path are taken
_MOST_IN_A_MATRIX = 12


class TransferInputs(CheckInputs):
    """What moves between the servers of a tenant: `pieces` of `piece` bytes over `qps` queue pairs, `repeats` times.

    `flows` is every pair of NICs (`matrix`) or as many random ones as touch every path (`cover`). On real ports a flow
    runs for `seconds` at least, and `least_share` of the MTU's ceiling and `most_p99_ms` are judged when given.
    """

    tenant: str
    flows: Literal["matrix", "cover"] = "matrix"
    piece: Annotated[int, Field(ge=64, multiple_of=8)] = 65_536
    pieces: Annotated[int, Field(ge=1)] = 8
    qps: Annotated[int, Field(ge=1, le=1024)] = 2
    repeats: Annotated[int, Field(ge=1)] = 3
    seconds: Annotated[float, Field(ge=0)] = 2.0
    least_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    most_p99_ms: Annotated[float, Field(gt=0)] | None = None


class ScenarioInputs(CheckInputs):
    """Two NICs of a tenant, and what is tried between them."""

    tenant: str
    owner: str
    reader: str
    scenario: Literal["access", "stale", "wrong-gid", "peer-dies", "overrun"]


class _RdmaCheck(Check, abstract=True):
    stage = Stage.ROCE
    passive = False

    def run(self, context: Context, question: Question, ask: Ask) -> Observations:
        """Move data through the engine that is open."""
        places = places_of(context.plan, context.devices)
        if places is None:
            message = f"engine {context.devices.name} has no place where an RDMA probe could run"
            raise NotJudgedError(message, State.SKIPPED)
        return collect(context.plan, question, ask, places)

    @classmethod
    def touches(cls, plan: Plan, inputs: Any) -> tuple[str, ...]:
        """The servers of the tenant that have RDMA ports."""
        return tuple(dict.fromkeys(end.server for end in ends_by_tenant(plan).get(inputs.tenant, ())))


class RdmaTransfer(_RdmaCheck):
    """KV-cache-shaped data moves between a tenant's servers, and every block arrives as it was stamped.

    READ pulls pieces as decode does. Queue pair settings (MTU, traffic class) are read back and compared with the plan.

    Pass: every flow ran, every block is the one that was asked for, settings are as planned, limits hold.
    Fail: a flow broke, a block is damaged, stale or foreign, a setting or a limit is missed.
    Error: a server cannot be reached or has no RDMA tools, or flows that belong together did not run together.
    Skipped: never; a tenant without two servers with RDMA ports has no case.
    Example:
        rdma-transfer:
          - {tenant: acme, flows: matrix, piece: 65536, pieces: 8}
    """

    Inputs = TransferInputs

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per tenant with RDMA ports on two servers of one fabric."""
        for tenant, ends in ends_by_tenant(plan).items():
            if apart(ends):
                flows: Literal["matrix", "cover"] = "matrix" if len(ends) <= _MOST_IN_A_MATRIX else "cover"
                yield TransferInputs(tenant=tenant, flows=flows)

    @classmethod
    def subject(cls, inputs: TransferInputs) -> str:
        """The tenant."""
        return inputs.tenant

    def collect(self, context: Context, inputs: TransferInputs) -> Observations:
        """Run all flows, those without a NIC in common together."""
        question = Question(inputs.flows, tenant=inputs.tenant, seed=int(context.options.get("seed", 1)))
        seconds = inputs.seconds if context.devices.physical else 0.0
        groups = ((inputs.piece, inputs.pieces),)
        ask = Ask(groups=groups, qps=inputs.qps, repeats=inputs.repeats, duration_s=seconds)
        return self.run(context, question, ask)

    def judge(self, plan: Plan, inputs: TransferInputs, observations: Observations) -> Result:
        """Judge flow by flow; the set as a whole is the text."""
        physical = bool(observations["physical"])
        limits = Limits(inputs.least_share, inputs.most_p99_ms) if physical else Limits()
        found = results(plan, observations, limits)
        matrix = _matrix([row for one in observations["rounds"] for row in one["rows"]], plan, physical)
        summary = found[-1] if len(found) > 1 else None
        result = whole(self.name, inputs.tenant, found, "")
        text = summary.text if result.state is State.PASS and summary else found[0].text if not summary else result.text
        return Result(
            self.name, inputs.tenant, result.state, text, result.place, summary.measurements if summary else (),
            tuple(found), {"tenant": inputs.tenant, "vrf": plan.tenants[inputs.tenant].vrf}, {"matrix": matrix},
            found[0].test_id,
        )  # fmt: skip


class RdmaScenario(_RdmaCheck):
    """What must not work over RDMA does not: foreign keys, old blocks, dead peers, unknown addresses.

    Pass: every attempt is refused or noticed, within the stated time, and nothing stays registered.
    Fail: a key opens what it should not, an old block passes as a new one, or a failure goes unnoticed.
    Error: a server cannot be reached or has no RDMA tools.
    Skipped: a scenario that the device cannot be brought into.
    Example:
        rdma-scenario:
          - {tenant: acme, owner: "compute-001:be0-port0", reader: "compute-003:be0-port0", scenario: access}
    """

    Inputs = ScenarioInputs
    stands_on = ("rdma-transfer",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One pair of NICs per tenant, under different leaves where there are any, in every scenario."""
        for tenant, ends in ends_by_tenant(plan).items():
            for owner, reader in apart(ends)[:1]:
                for scenario in ("access", "stale", "peer-dies"):
                    yield ScenarioInputs(
                        tenant=tenant, owner=owner.name, reader=reader.name, scenario=scenario
                    )  # fmt: skip

    @classmethod
    def subject(cls, inputs: ScenarioInputs) -> str:
        """The scenario and its two ends."""
        return f"{inputs.scenario} {inputs.owner} -> {inputs.reader}"

    def collect(self, context: Context, inputs: ScenarioInputs) -> Observations:
        """Run the scenario."""
        ask = Ask(scenario=inputs.scenario, groups=((4096, 64),), qps=2, repeats=3)
        return self.run(context, Question("pair", inputs.owner, inputs.reader), ask)

    def judge(self, plan: Plan, inputs: ScenarioInputs, observations: Observations) -> Result:
        """Take the probe's own judgement."""
        found = results(plan, observations, Limits())
        if not found:
            message = "no flow ran"
            raise NotJudgedError(message)
        one = found[0]
        labels = {**one.labels, "tenant": inputs.tenant, "vrf": plan.tenants[inputs.tenant].vrf}
        return Result(self.name, self.subject(inputs), one.state, one.text, one.place, parts=one.parts, labels=labels)


def ends_by_tenant(plan: Plan) -> dict[str, list[Endpoint]]:
    """Return tenant -> its RDMA ports in fabrics with an RDMA class."""
    found: dict[str, list[Endpoint]] = {}
    for end in endpoints(plan):
        if end.tenant and plan.fabrics[end.fabric].qos:
            found.setdefault(end.tenant, []).append(end)
    return found


def apart(ends: Sequence[Endpoint]) -> list[tuple[Endpoint, Endpoint]]:
    """Pairs of ports of two servers that can talk: the first port with the first ones of others, other leaves first."""
    first = ends[0]
    far = [end for end in ends if end.server != first.server and end.fabric == first.fabric]
    return [(first, end) for end in sorted(far, key=lambda end: (end.leaf == first.leaf, end.rail != first.rail))]


def _matrix(rows: Sequence[dict[str, Any]], plan: Plan, physical: bool) -> dict[str, Any]:
    """Rates as a heat map, Gb/s of payload: where blocks lay by where they arrived, the best of each flow."""
    names = list(dict.fromkeys(row[end] for row in rows for end in ("owner", "reader")))
    place = {name: number for number, name in enumerate(names)}
    values: list[list[float | None]] = [[None] * len(names) for _ in names]
    for row in rows:
        if "payload_gbps" in row["drive"]:
            i, j = place[row["owner"]], place[row["reader"]]
            values[i][j] = max(values[i][j] or 0.0, round(row["drive"]["payload_gbps"], 2))
    speeds = [end.speed_gbps for end in endpoints(plan) if end.name in place]
    promised = round(payload_gbps(min(speeds)), 1) if physical and speeds else None
    return {"rows": names, "columns": names, "values": values, "unit": "Gb/s payload, one way", "promised": promised}
