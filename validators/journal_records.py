"""What a run remembers: its own facts and one record per finished case, as JSON and back without loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from validators.results import Measurement, Result, State


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run that every report repeats.

    `plan` and `catalog` are SHA-256 digests; times are UTC in ISO 8601; `versions` names our own and the tools' and
    devices' versions; `options` are the limits and choices (seed, trials, duration, what was selected).
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

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {name: getattr(self, name) for name in self.__slots__}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> RunInfo:
        """Read what `to_dict` wrote; unknown keys of a later version are ignored."""
        info = RunInfo(**{name: data[name] for name in RunInfo.__slots__ if name in data})
        for name in RunInfo.__slots__:
            wanted = {"seed": int, "versions": dict, "options": dict}.get(name, str)
            if not isinstance(getattr(info, name), wanted):
                message = f"{name} is no {wanted.__name__}"
                raise TypeError(message)
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
        """Read what `to_dict` wrote."""
        return Record(
            data["case"],
            data["stage"],
            result_from_dict(data["result"]),
            str(data.get("at", "")),
            tuple(data.get("tags", ())),
        )


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


def result_from_dict(data: dict[str, Any]) -> Result:
    """Read what `result_to_dict` wrote."""
    return Result(
        data["check"],
        data["subject"],
        State(data["state"]),
        data["text"],
        measurements=tuple(Measurement(**one) for one in data.get("measurements", ())),
        parts=tuple(result_from_dict(part) for part in data.get("parts", ())),
        **{name: data[name] for name in _PLAIN if name in data},
    )
