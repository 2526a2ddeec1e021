"""What a run remembers: its own facts and one record per finished case, as JSON and back without loss."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from validators.results import Measurement, Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator


_INFO_KINDS: dict[str, type] = {
    "seed": int, "versions": dict, "options": dict, "cases": dict, "dropped": dict, "edited": dict, "unproven": list,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run that every report repeats.

    `plan` and `catalog` are SHA-256 digests; times are UTC in ISO 8601; `versions` names our own and the tools' and
    devices' versions; `options` are the limits and choices (seed, trials, duration, what was selected); `cases` is how
    many cases each stage has; `ports` are `virtual` (of a lab) or `real`. `dropped` are cases of the plan that an
    edited catalog does not have, `edited` those that it asks with other inputs: subjects by check. `unproven` are
    devices asked through a shell that we know from documents only. `finished` is empty until the run has ended in
    order: one that was killed never has it.
    """

    name: str
    site: str
    profile: str
    plan: str
    catalog: str
    engine: str
    started: str
    finished: str = ""
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)
    ports: str = ""
    dropped: dict[str, list[str]] = field(default_factory=dict)
    edited: dict[str, list[str]] = field(default_factory=dict)
    unproven: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> RunInfo:
        """Read what `to_dict` wrote; unknown keys of a later version are ignored."""
        info = RunInfo(**{name: data[name] for name in RunInfo.__slots__ if name in data})
        for name in RunInfo.__slots__:
            wanted = _INFO_KINDS.get(name, str)
            if not isinstance(getattr(info, name), wanted):
                message = f"{name} is no {wanted.__name__}"
                raise TypeError(message)
        _require(info.versions, dict.fromkeys(info.versions, str), "versions")
        _require(info.cases, dict.fromkeys(info.cases, int), "cases")
        for name in ("dropped", "edited"):
            _require(getattr(info, name), dict.fromkeys(getattr(info, name), list), name)
        return info


@dataclass(frozen=True, slots=True)
class Record:
    """A finished case: its id in the catalog, its stage, what came out, and when (UTC, ISO 8601)."""

    case: str
    stage: str
    result: Result
    at: str = ""
    tags: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {
            "case": self.case,
            "stage": self.stage,
            "at": self.at,
            "tags": list(self.tags),
            "result": result_to_dict(self.result),
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Record:
        """Read what `to_dict` wrote. Raises KeyError, TypeError or ValueError, in words, for what it cannot have."""
        _require(data, {"case": str, "stage": str, "result": dict, "at": str, "tags": list}, "case")
        tags = data.get("tags", [])
        if not all(isinstance(tag, str) for tag in tags):
            message = "tags of the case are not all text"
            raise TypeError(message)
        return Record(data["case"], data["stage"], result_from_dict(data["result"]), data.get("at", ""), tuple(tags))


_PLAIN = ("place", "labels", "evidence", "test_id", "duration_s")


def result_to_dict(result: Result) -> dict[str, Any]:
    """Return a result as JSON-ready data; empty fields are left out, so that a large run stays small."""
    data: dict[str, Any] = {
        "check": result.check,
        "subject": result.subject,
        "state": result.state.value,
        "text": result.text,
    }
    data.update({name: value for name in _PLAIN if (value := getattr(result, name))})
    if result.measurements:
        data["measurements"] = [
            {name: getattr(one, name) for name in Measurement.__slots__} for one in result.measurements
        ]
    if result.parts:
        data["parts"] = [result_to_dict(part) for part in result.parts]
    return data


_NUMBER = (int, float)
_RESULT_KINDS: dict[str, Any] = {
    "check": str, "subject": str, "state": str, "text": str, "place": str, "test_id": str, "duration_s": _NUMBER,
    "labels": dict, "evidence": dict, "measurements": list, "parts": list,
}  # fmt: skip
_MEASUREMENT_KINDS: dict[str, Any] = {
    "name": str, "value": _NUMBER, "unit": str, "trials": int, "spread": (*_NUMBER, type(None)), "spread_kind": str,
    "limit": str, "tool": str, "origin": str,
}  # fmt: skip


def result_from_dict(data: dict[str, Any]) -> Result:
    """Read what `result_to_dict` wrote. Raises KeyError, TypeError or ValueError, in words, for what it cannot have."""
    _require(data, _RESULT_KINDS, "result")
    _require(data.get("labels", {}), dict.fromkeys(data.get("labels", {}), str), "labels")
    for one in data.get("measurements", ()):
        _require(one, _MEASUREMENT_KINDS, "measurement")
    return Result(
        data["check"],
        data["subject"],
        State(data["state"]),
        data["text"],
        measurements=tuple(Measurement(**one) for one in data.get("measurements", ())),
        parts=tuple(result_from_dict(part) for part in data.get("parts", ())),
        **{name: data[name] for name in _PLAIN if name in data},
    )


def _require(data: Any, kinds: dict[str, Any], what: str) -> None:
    """Raise TypeError when a value that is there is of another kind; what is missing is for who reads it."""
    if not isinstance(data, dict):
        message = f"{what} is no object"
        raise TypeError(message)
    for name, kind in kinds.items():
        if name in data and (not isinstance(data[name], kind) or isinstance(data[name], bool)):
            words = {str: "text", dict: "object", list: "list"}.get(kind, "number")
            message = f"{name} of the {what} is no {words}"
            raise TypeError(message)
        if kind is not int and isinstance(data.get(name), int) and abs(data[name]) > sys.float_info.max:
            message = f"{name} of the {what} is larger than any number that can be drawn"
            raise ValueError(message)


def not_finite(result: Result) -> list[str]:
    """Return the numbers of a result that are NaN or infinite, in words: JSON has no such numbers, and nobody can sign
    one."""
    found = [f"{m.name} is {m.value:g} {m.unit}" for m in result.measurements if not math.isfinite(m.value)]
    found += [f"spread of {m.name} is {m.spread:g}" for m in result.measurements if not math.isfinite(m.spread or 0.0)]
    found += [f"evidence has {value:g}" for value in _numbers(result.evidence) if not math.isfinite(value)]
    return found + [text for part in result.parts for text in not_finite(part)]


def _numbers(data: Any) -> Iterator[float]:
    if isinstance(data, float):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _numbers(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _numbers(value)
