"""A run as the report writers see it: facts, records, totals per stage, and the drawn topology if there is one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from validators.check import Stage
from validators.journal_records import Record
from validators.report.coverage import skipped_inside, without
from validators.results import BAD, NOT_RUN, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from validators.journal_records import RunInfo


OF_A_LAB = "of a lab: its ports are virtual, and figures of bandwidth and time say something about its CPU only"

OF_DOCUMENTS = (
    "in part of answers of the shell sonic-cli (platform dell_sonic), whose commands and outputs are taken from "
    "documents and were never seen on a device: look twice at the results of such devices"
)
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Leaf:
    """An atomic result: a part of a case, or a case without parts. `id` is unique in the run by construction."""

    id: str
    record: Record
    result: Result
    is_part: bool


@dataclass(frozen=True)
class Run:
    """Everything a report needs."""

    info: RunInfo
    records: tuple[Record, ...]
    topology: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def state(self) -> State:
        """The run's own state: the worst of its cases; UNKNOWN when nothing ran."""
        return combine(record.result.state for record in self.records)

    @cached_property
    def verdict(self) -> str:
        """What a person signs: accepted only when the run has ended, something was measured and nothing is bad."""
        if not self.info.finished:
            return "interrupted"
        states = {record.result.state for record in self.records}
        if State.FAIL in states:
            return "not accepted"
        if states & BAD or State.PASS not in states:
            return "not decided"
        blocked = [r for r in self.records if r.result.state is State.SKIPPED and r.result.text.startswith(NOT_RUN)]
        return "not decided" if blocked else "accepted"

    @cached_property
    def without(self) -> tuple[str, ...]:
        """What the verdict says nothing about, in words."""
        return without(self.info, self.records)

    @property
    def note(self) -> str:
        """What every reader must know of a run: that it is of a lab, or whose answers are read as nobody has seen them
        yet. Empty where there is nothing of the kind."""
        if self.info.ports == "virtual":
            return OF_A_LAB
        names = self.info.unproven
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return f"{OF_DOCUMENTS} ({', '.join(names[:_NAMED])}{more})" if names else ""

    @property
    def headline(self) -> str:
        """The verdict and what it goes without, as a title says it."""
        return f"{self.verdict}, without: {'; '.join(self.without)}" if self.without else self.verdict

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many cases ended in each state."""
        found = Counter(record.result.state.value for record in self.records)
        return {state.value: found[state.value] for state in State}

    @cached_property
    def problems(self) -> list[Record]:
        """The cases that keep the run from being accepted, in the order of the run."""
        return [record for record in self.records if record.result.state in BAD]

    @cached_property
    def stages(self) -> list[tuple[str, list[Record], dict[str, int], State]]:
        """Stage name, records, counts and state, in the order of the acceptance."""
        by_stage: dict[str, list[Record]] = {}
        for record in self.records:
            by_stage.setdefault(record.stage, []).append(record)
        order = [stage.value for stage in Stage]
        found = []
        for name in sorted(by_stage, key=lambda s: order.index(s) if s in order else len(order)):
            records = by_stage[name]
            counts = Counter(record.result.state.value for record in records)
            found.append((name, records, dict(counts), combine(r.result.state for r in records)))
        return found

    def leaves(self) -> Iterator[Leaf]:
        """Yield atomic results. A case with parts is itself one only when it says something that its parts do not."""
        for record in self.records:
            result = record.result
            if not result.parts or combine(part.state for part in result.parts) is not result.state:
                yield Leaf(record.case, record, result, is_part=False)
            for number, part in enumerate(result.parts, 1):
                yield Leaf(f"{record.case}/{number}:{part.subject}", record, part, is_part=True)

    @cached_property
    def wall_s(self) -> float | None:
        """Seconds from the run's start to its end; None without an end, or when a clock was set back."""
        try:
            began, ended = (datetime.fromisoformat(text) for text in (self.info.started, self.info.finished))
            seconds = (ended - began).total_seconds()
        except (ValueError, TypeError):  # no time, or one without its zone
            return None
        return seconds if seconds >= 0 else None

    @cached_property
    def sums(self) -> str:
        """How cases and results are counted, in words: one format has a line per case, another per result."""
        states = [leaf.result.state for leaf in self.leaves()]
        text = f"{len(self.records)} cases with {len(states)} results (a case with parts has one result per part)"
        if not (skipped := states.count(State.SKIPPED)):
            return text
        inside = len(skipped_inside(self.records))
        more = f" ({inside} as parts of cases that were judged)" if inside else ""
        return f"{text}; skipped: {self.counts[State.SKIPPED.value]} of the cases, {skipped} of the results{more}"

    def link_states(self) -> dict[str, tuple[State, str]]:
        """Return link id -> worst state and its text, for every result that is about a link."""
        return _worst(self.leaves(), "link")

    def device_states(self) -> dict[str, tuple[State, str]]:
        """Return device -> worst state and its text."""
        return _worst(self.leaves(), "device")


def interruption(info: RunInfo, records: list[Record]) -> Record:
    """Return what a run without an end says of itself: how far it came, which stages lack cases, and how to go on."""
    left = _left(info, records)
    text = f"the run has no end: it was interrupted, or still runs. {len(records)}"
    text += f" of {sum(info.cases.values())} cases ended" if info.cases else " cases ended"
    text += f"; not run: {left}" if left else ""
    text += f". Go on with the same `kvfabric accept`, --resume and --name {info.name}"
    return Record("run", "run", Result("run", info.name, State.ERROR, text))


def loss(info: RunInfo, records: list[Record]) -> Record | None:
    """Return what a run that has ended says of cases that its journal lacks; None when it has them all."""
    if not (left := _left(info, records)):
        return None
    text = f"the journal lacks cases of a run that has ended: {left}. Lines were taken out of it: run again"
    return Record("run", "run", Result("run", info.name, State.ERROR, text))


def _left(info: RunInfo, records: list[Record]) -> str:
    """How many cases of which stages have no record, in words."""
    done = Counter(record.stage for record in records)
    return ", ".join(f"{count - done[stage]} of {stage}" for stage, count in info.cases.items() if count > done[stage])


def seconds_of(record: Record) -> float:
    """Return the seconds of a case: its own, which hold those of its parts unless only they were timed."""
    seconds = max(record.result.duration_s, sum(part.duration_s for part in record.result.parts))
    return min(seconds, 1e9)  # a journal may hold any number, and sums of it must stay finite


def _worst(leaves: Iterator[Leaf], label: str) -> dict[str, tuple[State, str]]:
    found: dict[str, tuple[State, str]] = {}
    for leaf in leaves:
        name = leaf.result.labels.get(label) or leaf.record.result.labels.get(label)
        if not name:
            continue
        before = found.get(name)
        if before is None or combine((before[0], leaf.result.state)) is not before[0]:
            found[name] = (leaf.result.state, f"{leaf.result.check}: {leaf.result.text}")
    return found
