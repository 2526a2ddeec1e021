"""What the verdict of a run says nothing about, in words: skipped cases, and what its catalog or selection left out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from validators.results import NEEDS_PERMISSION, NEEDS_PORTS, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from validators.journal_records import Record, RunInfo

# options of a run that name a part of its catalog
_SELECTED = ("tags", "devices", "tenants", "checks")
_NAMED = 3  # subjects of a check that are named; more are counted


def without(info: RunInfo, records: Sequence[Record]) -> tuple[str, ...]:
    """Return what a run that has ended does not cover, the most important first; nothing for one without an end."""
    if not info.finished:
        return ()  # what was skipped so far says nothing about the rest
    skipped = [record.result for record in records if record.result.state is State.SKIPPED]
    forbidden = Counter(result.check for result in skipped if result.text == NEEDS_PERMISSION)
    unreal = Counter(result.check for result in skipped if result.text.startswith(NEEDS_PORTS))
    others = Counter(result.check for result in skipped) - forbidden - unreal
    found = [f"disruptive checks skipped: {forbidden.total()} ({_counted(forbidden)})"] if forbidden else []
    found += [f"left out of the catalog: {_subjects(info.dropped)}"] if info.dropped else []
    found += [f"with other inputs than the plan's: {_subjects(info.edited)}"] if info.edited else []
    chosen = [f"{key} {_listed(value)}" for key in _SELECTED if (value := info.options.get(key))]
    found += [f"anything but {' and '.join(chosen)}"] if chosen else []
    found += [f"skipped: {others.total()} ({_counted(others)})"] if others else []
    found += [f"in need of real ports: {unreal.total()} ({_counted(unreal)})"] if unreal else []
    return tuple(found)


def _counted(checks: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" if count > 1 else name for name, count in checks.items())


def _subjects(lacking: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(
        f"{check} ({len(names)} cases)" if len(names) > _NAMED else f"{check} ({', '.join(names)})"
        for check, names in lacking.items()
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
