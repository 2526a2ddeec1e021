"""A set of flows as one result: rates together, fairness, whether they ran together, and a restore's deadline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fabric.kv.link import payload_gbps
from validators.rdma.host.stats import jain, percentile
from validators.results import COMPUTED, Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.rdma.launch import Ask, Row
    from validators.rdma.question import Question
    from validators.rdma.sets import Flow

_MOST_LATE_S, _MOST_LATE_SHARE = 0.1, 0.1
"""A flow may start this late, in s or as a share of the shortest flow's time, whichever is more."""


def judge_whole(
    question: Question, ask: Ask, rows: Sequence[Row], parts: Sequence[Result], test_id: str, physical: bool = True
) -> Result:
    """Judge the set: the worst of its flows, and ERROR when flows that should run together did not.

    Hosts of a lab share a few processors and cannot start together to the tenth of a second: there it is only said.
    """
    name = f"{question.kind} of {len(rows)} flows"
    measured = [row for row in rows if "payload_gbps" in row.drive]
    state = combine(part.state for part in parts)
    if not measured:
        # a scenario that only provokes failures has no rate: its flows say it all
        text = "; ".join(dict.fromkeys(part.text for part in parts if part.state is state))
        return Result(f"rdma.{question.kind}", name, state, text or f"none of {len(rows)} flows was measured")
    rates = [row.drive["payload_gbps"] for row in measured]
    late = max(row.drive["late_s"] for row in measured)
    text = f"{len(measured)} of {len(rows)} flows measured, {sum(rates):.2f} Gb/s in all"
    fairness = jain(rates)
    text += f", Jain {fairness:.3f}" if math.isfinite(fairness) else ""
    shortest = min(row.drive["ended"] - row.drive["began"] for row in measured)
    if late > max(_MOST_LATE_S, _MOST_LATE_SHARE * shortest):
        text += f"; the last to start was {late:.2f} s late: they did not run together"
        state = combine([state, State.ERROR]) if physical else state
    times = finish_times(question, ask, measured)
    if question.deadline_s:
        missed = sum(seconds > question.deadline_s for seconds in times)
        text += f"; {missed} of {len(times)} missed the deadline of {question.deadline_s:g} s"
        state = combine([state, State.FAIL if missed or len(measured) < len(rows) else State.PASS])
    ceiling = min(payload_gbps(row.flow.reader.speed_gbps) for row in rows)
    values = (
        Measurement("sum of flows", sum(rates), "Gb/s payload, one way", len(rates)),
        *((Measurement("Jain fairness", fairness, "ratio", len(rates)),) if math.isfinite(fairness) else ()),
        Measurement("ceiling of one reader", ceiling, "Gb/s payload, one way", origin=COMPUTED),
        Measurement("p99 of finish times", percentile(times, 99), "s", len(times)),
        Measurement("latest finish", max(times), "s", len(times)),
    )
    labels = {"transport": ", ".join(sorted({str(row.drive["transport"]) for row in measured}))}
    return Result(f"rdma.{question.kind}", name, state, text, measurements=values, labels=labels, test_id=test_id)


def finish_times(question: Question, ask: Ask, measured: Sequence[Row]) -> list[float]:
    """Return when each flow had its bytes, in s from its start: after one transfer, or after its share of a restore.

    A restore of more bytes than a flow holds goes over the same memory again.
    """
    flows = [row.flow for row in measured]
    return [sum(row.drive["completions"][: passes(question, ask, row.flow, flows)]) for row in measured]


def passes(question: Question, ask: Ask, flow: Flow, flows: Sequence[Flow]) -> int:
    """Return how many transfers make up what the flow's reading server has to get through this flow.

    `restore_bytes` are for a server; its flows, one per NIC, share them.
    """
    if not question.restore_bytes:
        return 1
    held = sum(size * count for size, count in ask.groups)
    same = sum(other.reader.server == flow.reader.server for other in flows)
    return max(1, -(-question.restore_bytes // (held * same)))
