"""A run as the report writers see it: facts, records, totals per stage, and the drawn topology if there is one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from validators.check import Stage
from validators.results import BAD, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from validators.journal_records import Record, RunInfo


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
        """What a person signs: accepted only when something was measured and nothing is bad."""
        states = {record.result.state for record in self.records}
        if State.FAIL in states:
            return "not accepted"
        if states & BAD or State.PASS not in states:
            return "not decided"
        blocked = [r for r in self.records if r.result.state is State.SKIPPED and r.result.text.startswith("not run")]
        return "not decided" if blocked else "accepted"

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many cases ended in each state."""
        found = Counter(record.result.state.value for record in self.records)
        return {state.value: found[state.value] for state in State}

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

    def link_states(self) -> dict[str, tuple[State, str]]:
        """Return link id -> worst state and its text, for every result that is about a link."""
        return _worst(self.leaves(), "link")

    def device_states(self) -> dict[str, tuple[State, str]]:
        """Return device -> worst state and its text."""
        return _worst(self.leaves(), "device")


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
