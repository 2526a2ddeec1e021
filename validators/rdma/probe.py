"""`kvfabric probe rdma` put together: ends from the plan, workload from a model, rounds through agents, results."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fabric.kv.link import payload_gbps
from fabric.problem import InputError, Problem
from validators.rdma import sets
from validators.rdma.endpoints import endpoints, find, wanted
from validators.rdma.host.stats import jain, percentile
from validators.rdma.judge import Limits, judge
from validators.rdma.launch import Ask, run_round
from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.kv.size import PiecePlan
    from fabric.plan import Plan
    from validators.agents.agent import Agent
    from validators.rdma.endpoints import Endpoint
    from validators.rdma.launch import Row
    from validators.rdma.sets import Flow

SETS = ("pair", "matrix", "cover", "bisection", "incast", "restore")
_LEAD_S = 8.0
"""Seconds that flows of one round get to connect before they start together."""


@dataclass(frozen=True, slots=True)
class Question:
    """Which flows. `owner` and `reader` are `server` or `server:port`; `count` is for incast, `readers` for restore."""

    kind: str = "pair"
    owner: str = ""
    reader: str = ""
    count: int = 2
    readers: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    deadline_s: float = 0.0
    seed: int = 1


def groups_of(plan: PiecePlan, most_bytes: int) -> tuple[tuple[tuple[int, int], ...], str]:
    """Return the pieces of a rank as (size, count), cut to `most_bytes` in all, and what was cut."""
    whole = tuple((part.size, part.count) for part in plan.pieces)
    if plan.total <= most_bytes:
        return whole, f"all {plan.count} pieces of a rank"
    share = most_bytes / plan.total
    cut = tuple((size, max(1, int(count * share))) for size, count in whole)
    return (
        cut,
        f"{sum(count for _, count in cut)} of {plan.count} pieces of a rank (at most {most_bytes} bytes are held)",
    )


def check_groups(groups: Sequence[tuple[int, int]]) -> None:
    """Raise InputError for a piece that cannot carry its identity."""
    problems = [
        Problem(
            "probe.piece",
            f"piece of {size} bytes",
            "must be a multiple of 8 and at least 64 bytes, to carry its identity",
        )
        for size, count in groups
        if size % 8 or size < 64 or count < 1
    ]
    if problems:
        raise InputError(problems)


def rounds_of(plan: Plan, question: Question) -> list[list[Flow]]:
    """Return the rounds of a question: flows of a round run together."""
    ends = endpoints(plan)
    if question.kind == "pair":
        return [sets.pair(find(plan, question.owner), find(plan, question.reader))]
    if question.kind == "matrix":
        return sets.matrix(ends)
    if question.kind == "cover":
        return sets.cover(ends, _paths(plan, ends), question.seed)
    if question.kind == "bisection":
        return [sets.bisection(ends)]
    if question.kind == "incast":
        return [sets.incast(ends, find(plan, question.reader)[0], question.count)]
    if question.kind == "restore":
        pool = [end for name in question.pool for end in find(plan, name)]
        readers = [end for name in question.readers for end in find(plan, name)]
        return [sets.restore(pool, readers)]
    raise InputError([Problem("probe.set", question.kind, "is not a set of flows", f"one of {', '.join(SETS)}")])


def probe(
    plan: Plan,
    question: Question,
    ask: Ask,
    agent_of: Callable[[str], Agent],
    limits: Limits,
    say: Callable[[str], None] = lambda _text: None,
) -> list[Result]:
    """Run every round and return a result per flow, and one for the set when it has more than one flow."""
    check_groups(ask.groups)
    results: list[Result] = []
    rows: list[Row] = []
    rounds = rounds_of(plan, question)
    for number, flows in enumerate(rounds, start=1):
        say(f"round {number} of {len(rounds)}: {len(flows)} flows, {ask.scenario} {ask.verb}")
        want = wanted(plan, flows[0].reader.fabric)
        settings = {"mtu": want.mtu, "traffic_class": want.traffic_class, **ask.settings}
        own = replace(ask, settings=settings, lead_s=_LEAD_S if len(flows) > 1 else 0.0, identity=_identity(ask))
        done = run_round(flows, own, agent_of)
        rows += done
        results += [judge(row, want, limits, ietf_id(question.kind, ask)) for row in done]
    if len(rows) > 1:
        results.append(_whole(question, ask, rows, results))
    return results


def ietf_id(kind: str, ask: Ask) -> str:
    """Return the id of the matching test of the IETF inference draft, empty where there is none.

    Its categories 1 (KV transfer) and 4 (congestion); the tables of the draft are not used.
    """
    if ask.scenario != "transfer":
        return ""
    ids = {"matrix": "1.3", "bisection": "1.3", "cover": "1.3", "incast": "4.1", "restore": "1.4"}
    single = "1.2" if sum(count for _, count in ask.groups) == 1 else "1.1"
    return f"ietf:inference-{ids.get(kind, single)}"


def _identity(ask: Ask) -> dict[str, Any]:
    base = {"model": "none", "precision": "fp16", "kernel_config": "explicit", "content": "probe prefix"}
    # a generation that no earlier run used, so that memory left by one cannot pass
    return {**base, **ask.identity, "generation": int(time.time() * 1000)}


def _paths(plan: Plan, ends: Sequence[Endpoint]) -> int:
    """Equal paths between two leaves: the most links that a leaf of the ends has to switches above it."""
    leaves = {end.leaf for end in ends}
    ups = [
        sum(
            link.far(leaf).device in plan.switches
            for link in plan.links_of.get(leaf, ())
            if link.fabric == ends[0].fabric
        )
        for leaf in leaves
    ]
    return max(ups, default=1)


def _whole(question: Question, ask: Ask, rows: Sequence[Row], parts: Sequence[Result]) -> Result:
    """The set as one result: total rate, fairness, the latest finish, and for a restore its deadline."""
    measured = [row.drive for row in rows if "payload_gbps" in row.drive]
    rates = [drive["payload_gbps"] for drive in measured]
    first = [seconds for drive in measured for seconds in drive["completions"][:1]]
    if not measured:
        text = f"none of {len(rows)} flows was measured"
        return Result(f"rdma.{question.kind}", f"{question.kind} of {len(rows)} flows", State.ERROR, text)
    ceiling = min(payload_gbps(row.flow.reader.speed_gbps) for row in rows)
    values = [
        Measurement("sum of flows", sum(rates), "Gb/s payload, one way", len(rates)),
        Measurement("Jain fairness", jain(rates), "ratio", len(rates)),
        Measurement("ceiling of one reader", ceiling, "Gb/s payload, one way"),
        Measurement("p99 of first transfers", percentile(first, 99), "s", len(first)),
    ]
    late = max((drive["late_s"] for drive in measured), default=0.0)
    state = combine(part.state for part in parts)
    text = f"{len(measured)} of {len(rows)} flows measured, {sum(rates):.2f} Gb/s in all, Jain {jain(rates):.3f}"
    if late > 0.1:
        text += f"; the last to start was {late:.2f} s late: they did not run together"
        state = combine([state, State.ERROR])
    if question.deadline_s and first:
        missed = sum(seconds > question.deadline_s for seconds in first)
        text += f"; {missed} of {len(first)} missed the deadline of {question.deadline_s:g} s"
        state = combine([state, State.FAIL if missed else State.PASS])
    name = f"{question.kind} of {len(rows)} flows"
    return Result(
        f"rdma.{question.kind}", name, state, text, measurements=tuple(values), test_id=ietf_id(question.kind, ask)
    )
