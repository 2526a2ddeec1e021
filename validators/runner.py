"""Runs a catalog stage by stage: collect, judge, write down. A stage that fails stops what stands on it.

Nothing is lost: observations are on disk before the result, the result is in the journal before anybody hears of it,
and an undo is on disk before the deed that it takes back.
"""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fabric.files import replace_file
from fabric.problem import CouldNotRunError
from fabric.strict_json import loads
from validators.check import STANDS_ON, Context, NotJudgedError, Stage, depth, judged
from validators.devices.answers import Answer, Ask
from validators.devices.lab import MACHINE
from validators.journal_records import Record, not_finite, result_from_dict, result_to_dict
from validators.report.coverage import skipped_inside
from validators.results import BAD, NEEDS_PERMISSION, NEEDS_PORTS, NOT_RUN, Result, State, combine, places_of
from validators.runner_passes import Passes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fabric.plan import Plan
    from validators.catalog import Case
    from validators.check import Check
    from validators.devices.answers import Devices
    from validators.journal import Journal
    from validators.journal_undo import UndoLog
    from validators.runner_events import Processor

CASES = "cases"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run. `keep_going` runs stages whose ground failed too; `settle_s` is how long failing questions are asked
    again before the answer counts, in seconds; `stored` is a folder of observations to judge instead of asking, and
    `same_plan` whether they were made by this plan; `clean` takes secrets out of what is written."""

    allow_disruptive: bool = False
    keep_going: bool = False
    settle_s: float = 0.0
    settle_step_s: float = 3.0
    stored: Path | None = None
    same_plan: bool = True
    extra: dict[str, Any] = field(default_factory=dict)
    clean: Callable[[Any], Any] = lambda data: data


class Runner:
    """One run of a catalog on an engine, into one folder."""

    def __init__(
        self,
        plan: Plan,
        devices: Devices,
        journal: Journal,
        undo: UndoLog,
        folder: Path,
        options: RunOptions,
        processors: Sequence[Processor] = (),
    ) -> None:
        self.plan, self.devices, self.journal, self.undo = plan, devices, journal, undo
        self.folder, self.options, self.processors = folder, options, processors
        self.begun: dict[Ask, Answer] = {}
        self.begun_at = 0.0
        self.ran: list[tuple[str, float, float]] = []
        self.passes = Passes()

    def run(self, cases: Sequence[Case]) -> list[Record]:
        """Run all cases and return their records in order. Ctrl-C and errors take every deed back before they go on."""
        records: list[Record] = []
        states: dict[Stage, State] = {}
        try:
            self._begin(cases)
            for stage in Stage:
                mine = sorted((case for case in cases if case.check.stage is stage), key=lambda c: depth(c.check.name))
                blocked = "" if self.options.keep_going else self._blocked(stage, states)
                found = self._stage(stage, mine, blocked)
                records += found
                if blocked:
                    states[stage] = State.SKIPPED
                elif found:
                    states[stage] = combine(record.result.state for record in found)
        finally:
            self._take_back()
        return records

    def _begin(self, cases: Sequence[Case]) -> None:
        """Ask what is compared with the end of the run. Of stored answers both looks are there already."""
        asks: dict[Ask, None] = {}
        for case in cases if self.options.stored is None else ():
            if case.id not in self.journal.finished and not self._reason_to_skip(case):
                asks.update(dict.fromkeys(case.check().asks_at_start(self.plan, case.inputs)))
        if asks and not self.devices.physical:
            asks[Ask(MACHINE, "pauses")] = None  # a lab that is not let run loses what it should not
        self.begun_at = time.monotonic()
        self.begun = self.devices.gather(asks) if asks else {}

    def _blocked(self, stage: Stage, states: dict[Stage, State]) -> str:
        for ground in _grounds(stage):
            if states.get(ground) in BAD:
                verb = "failed" if states[ground] is State.FAIL else "could not be judged"
                return f"{NOT_RUN}stage {ground.value} {verb}"
        return ""

    def _stage(self, stage: Stage, cases: Sequence[Case], blocked: str) -> list[Record]:
        if not cases:
            return []
        self._tell("stage_started", stage, len(cases))
        context = Context(
            self.plan, self.devices, self.undo, options=self.options.extra, begun=self.begun, begun_at=self.begun_at,
            ran=self.ran,
        )  # fmt: skip
        waiting = [case for case in cases if case.id not in self.journal.finished]
        self.passes.expect([case for case in waiting if not self._reason_to_skip(case)])
        if not blocked:
            self._ask_ahead(context, waiting)
        records: list[Record] = []
        fallen: set[str] = set()
        for case in cases:
            ground = "" if self.options.keep_going else next((n for n in case.check.stands_on if n in fallen), "")
            reason = f"{NOT_RUN}{ground} did not pass" if ground else ""
            records.append(self._case(context, case, blocked or reason))
            if reason or records[-1].result.state in BAD:
                fallen.add(case.check.name)
        counts = Counter(record.result.state.value for record in records)
        counts["skipped as parts"] = len(skipped_inside(records))
        self._tell("stage_finished", stage, dict(counts), blocked)
        return records

    def _ask_ahead(self, context: Context, cases: Sequence[Case]) -> None:
        """Ask all questions of a stage at once: one session per device, devices in parallel."""
        asks: dict[Ask, None] = {}
        for case in cases:
            if not self._reason_to_skip(case):
                asks.update(dict.fromkeys(case.check().asks(self.plan, case.inputs)))
        if asks:
            context.gather(asks)

    def _case(self, context: Context, case: Case, blocked: str) -> Record:
        finished = self.journal.finished.get(case.id)
        if finished:
            self._tell("case_finished", finished, repeated=True)
            return finished
        self._tell("case_started", case)
        started = time.monotonic()
        reason = blocked or self._reason_to_skip(case)
        result = Result(case.check.name, case.subject, State.SKIPPED, reason) if reason else self._judge(context, case)
        if result.state in BAD and not result.place:
            place = places_of(result.parts) or (case.devices[0] if len(case.devices) == 1 else "")
            result = replace(result, place=place)
        labels = {**_labels(case), **result.labels}
        seconds = result.duration_s or round(time.monotonic() - started + self.passes.owed(case), 4)
        test_id = result.test_id or case.check.test_id
        result = replace(result, labels=labels, duration_s=seconds, test_id=test_id)
        record = Record(case.id, case.check.stage.value, self._to_keep(result), now(), case.tags)
        if result.state is not State.SKIPPED:
            self.ran.append((f"{case.check.name} {case.subject}", started, time.monotonic()))
        self.journal.finish(record)
        self._tell("case_finished", record, repeated=False)
        return record

    def _to_keep(self, result: Result) -> Result:
        """Return the result without secrets; one that the journal cannot hold (a number that is none) is an ERROR."""
        try:
            if not (broken := not_finite(result)):
                return result_from_dict(self.options.clean(result_to_dict(result)))
            reason = f"{'; '.join(broken[:3])}: nothing that can be signed"
        except (TypeError, ValueError) as error:
            reason = str(error)
        text = f"the check itself broke: {reason} (it said: {result.state.value}, {result.text})"
        kept = replace(result, state=State.ERROR, text=self.options.clean(text), measurements=(), parts=(), evidence={})
        return replace(kept, labels=self.options.clean(result.labels))

    def _reason_to_skip(self, case: Case) -> str:
        if case.check.physical and not self.devices.physical:
            return f"{NEEDS_PORTS}, and those of engine {self.devices.name} are virtual"
        if case.check.disruptive and not self.options.allow_disruptive and self.options.stored is None:
            return NEEDS_PERMISSION
        stored = self.options.stored
        if stored is not None and not case.check.passive and _stored_case(stored, case) is None:
            return "acts on the network, and the stored answers have no run of it: it must run live"
        if stored is not None and not case.check.passive and not self.options.same_plan:
            return "acts on the network, and the stored run of it was by another plan: it must run live"
        return ""

    def _judge(self, context: Context, case: Case) -> Result:
        check = case.check()
        deadline = time.monotonic() + self.options.settle_s
        while True:
            result = self._once(context, case, check)
            if result.state not in BAD or self.options.stored is not None or not self.options.settle_s:
                return result
            if not check.settles and result.state is not State.UNKNOWN:
                return result
            if not (check.passive and check.settles):
                return self._second(context, case, check, result)
            if time.monotonic() >= deadline:
                return result
            time.sleep(self.options.settle_step_s)
            for ask in check.asks(self.plan, case.inputs):
                context.asked.pop(ask, None)

    def _second(self, context: Context, case: Case, check: Check, first: Result) -> Result:
        """Act once more after a pause; the text says that it is the second attempt, and what the first one said."""
        time.sleep(self.options.settle_step_s)
        result = self._once(context, case, check)
        return replace(result, text=f"{result.text} (second attempt; the first one: {first.text})")

    def _once(self, context: Context, case: Case, check: Check) -> Result:
        try:
            observations = self._observe(context, case, check)
            write_json(self.folder / "raw" / CASES / file_name(case.id), self.options.clean(observations))
            result = judged(check, self.plan, case.inputs, observations)
        except NotJudgedError as error:
            result = error.result(check.name, case.subject)
        except CouldNotRunError as error:
            result = Result(check.name, case.subject, State.ERROR, str(error))
        except Exception as error:  # noqa: BLE001  a bug in one check must not take the others with it
            text = f"the check itself broke: {type(error).__name__}: {error}"
            result = Result(check.name, case.subject, State.ERROR, text, evidence={"traceback": traceback.format_exc()})
        failed = self._take_back() if check.disruptive else []
        if failed:
            text = f"{result.text}; and what it did could not be taken back: {'; '.join(failed)}"
            result = replace(result, state=combine((result.state, State.ERROR)), text=text)
        return result

    def _observe(self, context: Context, case: Case, check: Check) -> dict[str, Any]:
        stored = self.options.stored
        if stored is None and check.together:
            return self.passes.observe(context, case)
        if stored is None or check.passive:
            return check.collect(context, case.inputs)
        path = _stored_case(stored, case)
        try:
            data: dict[str, Any] = loads(path.read_bytes()) if path else {}
        except (OSError, ValueError):
            message = "the stored observations of this case are damaged"
            raise CouldNotRunError(message) from None
        return data

    def _take_back(self) -> list[str]:
        failed = self.undo.revert_all() if self.undo.pending else []
        for text in failed:
            self._tell("note", text)
        return failed

    def _tell(self, hook: str, *args: Any, **kwargs: Any) -> None:
        for processor in self.processors:
            getattr(processor, hook)(*args, **kwargs)


def _stored_case(stored: Path, case: Case) -> Path | None:
    """Where an earlier run left its observations of a case, if it did."""
    name = file_name(case.id)
    return next((path for path in (stored / CASES / name, stored / "raw" / CASES / name) if path.is_file()), None)


def _grounds(stage: Stage) -> list[Stage]:
    """Everything a stage stands on, nearest first."""
    found: list[Stage] = []
    for ground in STANDS_ON[stage]:
        found += [ground, *_grounds(ground)]
    return list(dict.fromkeys(found))


def _labels(case: Case) -> dict[str, str]:
    labels = {"device": case.devices[0]} if len(case.devices) == 1 else {}
    return labels | ({"tenant": case.tenants[0]} if len(case.tenants) == 1 else {})


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def file_name(case: str) -> str:
    """Return a case's file name: its id with everything but plain characters replaced, which its hash keeps unique."""
    plain = "".join(char if char.isalnum() or char in "-.#" else "_" for char in case)
    return f"{plain[-120:]}.json"


def write_json(path: Path, data: Any) -> None:
    """Write a file so that it is either there complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(data, indent=1, default=_plain, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Answer):
        return value.to_dict()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    message = f"{type(value).__name__} is not JSON"
    raise TypeError(message)
