"""What the verdict of a run says nothing about, in words: what was skipped, and what its catalog or selection left out.

Numbers count results as junit.xml does: a skipped part of a case that passed is as untested as a skipped case.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from validators.results import NEEDS_PERMISSION, NEEDS_PORTS, NOT_RUN, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from validators.journal_records import Record, RunInfo
    from validators.results import Result

# options of a run that name a part of its catalog
_SELECTED = ("tags", "devices", "tenants", "checks")
_NAMED = 3  # subjects of a check that are named; more are counted


def without(info: RunInfo, records: Sequence[Record]) -> tuple[str, ...]:
    """Return what a run that has ended does not cover, the most important first; nothing for one without an end."""
    if not info.finished:
        return ()  # what was skipped so far says nothing about the rest
    skipped = [result for record in records for result in _skipped(record)]
    forbidden = Counter(result.check for result in skipped if result.text == NEEDS_PERMISSION)
    unreal = Counter(result.check for result in skipped if result.text.startswith(NEEDS_PORTS))
    waiting = Counter(result.text.removeprefix(NOT_RUN) for result in skipped if result.text.startswith(NOT_RUN))
    asked = Counter(result.check for result in skipped if not result.text.startswith(NOT_RUN))
    others = asked - forbidden - unreal
    found = [f"not run: {waiting.total()} ({_counted(waiting)})"] if waiting else []
    found += [f"disruptive checks skipped: {forbidden.total()} ({_counted(forbidden)})"] if forbidden else []
    found += [f"left out of the catalog: {_subjects(info.dropped)}"] if info.dropped else []
    found += [f"with other inputs than the plan's: {_subjects(info.edited)}"] if info.edited else []
    chosen = [f"{key} {_listed(value)}" for key in _SELECTED if (value := info.options.get(key))]
    found += [f"anything but {' and '.join(chosen)}"] if chosen else []
    inside: dict[str, list[str]] = {}
    for part in skipped_inside(records):
        inside.setdefault(part.check, []).append(part.subject)
    count = sum(map(len, inside.values()))
    found += [f"parts skipped of cases that were judged: {count} ({_subjects(inside, 'parts')})"] if inside else []
    found += [f"skipped: {others.total()} ({_counted(others)})"] if others else []
    found += [f"in need of real ports: {unreal.total()} ({_counted(unreal)})"] if unreal else []
    return tuple(found)


def skipped_inside(records: Sequence[Record]) -> list[Result]:
    """Return the parts that were skipped of cases that were judged: the state of such a case does not show them."""
    judged = [record.result for record in records if record.result.state is not State.SKIPPED]
    return [part for result in judged for part in result.parts if part.state is State.SKIPPED]


def _skipped(record: Record) -> Sequence[Result]:
    """The skipped results of a case that is skipped as a whole: its parts, or itself where they do not say it."""
    if record.result.state is not State.SKIPPED:
        return ()
    parts = [part for part in record.result.parts if part.state is State.SKIPPED]
    return parts if parts and len(parts) == len(record.result.parts) else [record.result, *parts]


def _counted(checks: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" if count > 1 else name for name, count in checks.items())


def _subjects(lacking: Mapping[str, Sequence[str]], what: str = "cases") -> str:
    return ", ".join(
        f"{check} ({len(names)} {what})" if len(names) > _NAMED else f"{check} ({', '.join(names)})"
        for check, names in lacking.items()
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
