"""The probe in two halves: `collect` moves data and returns JSON-ready observations, `results` judges them, purely.

An acceptance keeps the observations and may judge them again later; `run` does both, for the command line.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from validators.rdma.endpoints import find, wanted
from validators.rdma.judge import Limits, judge
from validators.rdma.launch import Ask, Row, run_round
from validators.rdma.path import ports_of
from validators.rdma.path_judge import judge_counters, links_of_all_rounds
from validators.rdma.question import Question, check_groups, rounds_of
from validators.rdma.sets import Flow
from validators.rdma.watch import Sampler, counting, stations_of
from validators.rdma.watermarks import Watermarks, judge_watermarks
from validators.rdma.whole import judge_whole, passes

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan
    from validators.rdma.places import Places
    from validators.results import Result

_UNBROKEN = frozenset({"transfer", "access", "stale"})
"""Scenarios in which the path and the peer stay well."""
_VIRTUAL_SETTINGS = {"timeout": 15, "retry_cnt": 7}
"""Queue pairs where a busy processor, not the path, makes an answer late: Soft-RoCE tries again until the deadline."""
_VIRTUAL_PAIRS = 2
_VIRTUAL_PATIENCE = 4
"""How much longer everything may take in a lab, where all hosts share a few processors."""
_INTERVAL_S, _VIRTUAL_INTERVAL_S = 2.0, 10.0
"""Seconds between two samples of the counters while a round runs."""


def _quiet(_text: str) -> None:
    """Say nothing."""


def collect(
    plan: Plan,
    question: Question,
    ask: Ask,
    places: Places,
    say: Callable[[str], None] = _quiet,
    counters: bool = True,
    watermarks: bool = False,
) -> dict[str, Any]:
    """Run every round of a question; return what both ends of every flow said, and the counters on its way, JSON-ready.

    `watermarks` of switches are read before and after a set of flows, which takes up to a minute more.

    Raises InputError when the question cannot be asked of this plan; a host that fails is a row with an `error`.
    """
    check_groups(ask.groups)
    rounds = rounds_of(plan, question, ask.qps, places.reaches)
    if question.kind == "matrix" and not places.physical:
        # a matrix asks about each pair, not about all at once: few at a time where hosts share a few processors
        rounds = [part[n : n + _VIRTUAL_PAIRS] for part in rounds for n in range(0, len(part), _VIRTUAL_PAIRS)]
    if question.restore_bytes:
        ask = replace(ask, repeats=max(passes(question, ask, flow, rounds[0]) for flow in rounds[0]), duration_s=0.0)
    found: list[dict[str, Any]] = []
    classes = classes_of(plan, question, rounds[0][0].reader.fabric)
    why_not = _why_not_counted(plan, rounds, ask, counters)
    watched = [] if why_not else stations_of(plan, [flow for flows in rounds for flow in flows], places, ask.backend)
    # a pair of a matrix is measured by itself; in a lab a common start costs more than the transfer
    together = question.kind != "matrix" or places.physical
    # one flow alone has nobody to share a port with
    peaks = Watermarks(watched, places) if watermarks and not why_not and question.kind != "pair" else None
    with counting(watched, places, plan.fabrics[rounds[0][0].reader.fabric].qos) as problems:
        for name in classes:
            for number, flows in enumerate(rounds, start=1):
                say(f"round {number} of {len(rounds)}: {len(flows)} flows, class {name}, {ask.scenario} {ask.verb}")
                own = _own_ask(plan, flows, name, ask, places)
                rows, seen = _counted_round(plan, flows, own, places, why_not, problems, together)
                found.append({"class": name, "rows": [_stored(row) for row in rows], "counters": seen})
    seen = {"question": asdict(question), "ask": asdict(ask), "physical": places.physical, "rounds": found}
    return seen | {"watermarks": peaks.finish(question.kind, say)} if peaks else seen


def _own_ask(plan: Plan, flows: list[Flow], class_name: str, ask: Ask, places: Places) -> Ask:
    """Return what the flows of a round are asked: with the settings that the plan wants for the class."""
    want = wanted(plan, flows[0].reader.fabric, class_name)
    patient = {} if places.physical or ask.scenario not in _UNBROKEN else _VIRTUAL_SETTINGS
    settings = {"mtu": want.mtu, "traffic_class": want.traffic_class, **patient, **ask.settings}
    patience_s = ask.deadline_s * (1 if places.physical else _VIRTUAL_PATIENCE)
    return replace(ask, settings=settings, identity=_identity(ask), deadline_s=patience_s)


def _why_not_counted(plan: Plan, rounds: list[list[Flow]], ask: Ask, counters: bool) -> str:
    """Return why counters are not read, empty when they are."""
    if not counters:
        return "counters were not asked for"
    fabric = rounds[0][0].reader.fabric
    if plan.fabrics[fabric].qos is None:
        return f"fabric {fabric} has no RDMA class to count by"
    if ask.scenario != "transfer":
        return f"a scenario like {ask.scenario} breaks things"
    return ""


def _counted_round(
    plan: Plan,
    flows: list[Flow],
    ask: Ask,
    places: Places,
    why_not: str,
    problems: list[str],
    together: bool,
) -> tuple[list[Row], dict[str, Any]]:
    """Run a round between two samples of every counter on its way; scenarios that break things are not counted."""
    if why_not:
        return run_round(flows, ask, places, together), {"skipped": f"not read: {why_not}"}
    stations = stations_of(plan, flows, places, ask.backend)
    asked = {station.device for station in stations}
    left_out = dict.fromkeys(ports_of(plan, flows), "its counters are not read: not in reach, or a NIC of a TCP run")
    sampler = Sampler(stations, places, _INTERVAL_S if places.physical else _VIRTUAL_INTERVAL_S)
    sampler.start()
    try:
        rows = run_round(flows, ask, places, together)
    except BaseException:
        sampler.end()
        raise
    samples = sampler.stop()
    seen = {
        "stations": [asdict(station) for station in stations],
        "left_out": {device: why for device, why in left_out.items() if device not in asked},
        "problems": problems,
        "samples": samples,
    }
    return rows, seen


def results(plan: Plan, observations: dict[str, Any], limits: Limits) -> list[Result]:
    """Judge what `collect` returned: a result per flow, and one for the set when it has more than one flow."""
    question = Question(**_tuples(observations["question"]))
    ask = Ask(**_tuples(observations["ask"]))
    found: list[Result] = []
    rows: list[Row] = []
    hops: list[Result] = []
    test_id = ietf_id(question.kind, ask)
    for one in observations["rounds"]:
        mine = [_read(plan, row) for row in one["rows"]]
        rows += mine
        found += [judge(plan, row, wanted(plan, row.flow.reader.fabric, one["class"]), limits, test_id) for row in mine]
        hops += judge_counters(plan, question.kind, one["class"], mine, one["counters"])
    whole = [judge_whole(question, ask, rows, found, test_id, observations["physical"])] if len(rows) > 1 else []
    peaks = observations.get("watermarks")
    held = judge_watermarks(plan, peaks, rows[0].flow.reader.fabric) if peaks else []
    return [*found, *links_of_all_rounds(hops), *held, *whole]


def run(
    plan: Plan,
    question: Question,
    ask: Ask,
    places: Places,
    limits: Limits | None = None,
    say: Callable[[str], None] = _quiet,
    counters: bool = True,
    watermarks: bool = False,
) -> list[Result]:
    """Collect and judge."""
    return results(plan, collect(plan, question, ask, places, say, counters, watermarks), limits or Limits())


def run_pair(plan: Plan, places: Places, owner: str, reader: str, **changes: Any) -> list[Result]:
    """Move KV blocks between two servers (or `server:port`s) and judge; `changes` are fields of `Ask`."""
    return run(plan, Question("pair", owner, reader), Ask(**changes), places)


def classes_of(plan: Plan, question: Question, fabric: str) -> list[str]:
    """Return the lossless classes to run: the named one, every one for an incast, else the first."""
    qos = plan.fabrics[fabric].qos
    names = [c.name for c in qos.lossless] if qos else []
    if question.traffic_class or question.kind != "incast" or not names:
        return [wanted(plan, fabric, question.traffic_class).class_name]
    return names


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


def _stored(row: Row) -> dict[str, Any]:
    return {"owner": row.flow.owner.name, "reader": row.flow.reader.name, "drive": row.drive, "serve": row.serve}


def _read(plan: Plan, stored: dict[str, Any]) -> Row:
    owner, reader = (find(plan, stored[end])[0] for end in ("owner", "reader"))
    return Row(Flow(owner, reader), stored["drive"], stored["serve"])


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    """Return what JSON made of a dataclass's tuples as tuples again."""

    def deep(value: Any) -> Any:
        return tuple(deep(one) for one in value) if isinstance(value, list | tuple) else value

    return {name: deep(value) for name, value in data.items()}
