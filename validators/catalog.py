"""The catalog: every case that a plan asks for, selectable and editable before anything runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from validators.check import Stage, depth

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fabric.plan import Plan
    from validators.check import Check, CheckInputs


@dataclass(frozen=True, slots=True)
class Case:
    """One check with its inputs. `id` is stable and unique: check, subject and a short hash of the inputs."""

    check: type[Check]
    inputs: CheckInputs
    tags: tuple[str, ...]
    devices: tuple[str, ...]
    tenants: tuple[str, ...]

    @property
    def subject(self) -> str:
        """What the case is about, in the plan's words."""
        return self.check.subject(self.inputs)

    @property
    def id(self) -> str:
        """The case's id: equal inputs give an equal id in every run."""
        text = json.dumps(self.inputs.model_dump(mode="json"), sort_keys=True)
        return f"{self.check.name}:{self.subject}#{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def make_case(plan: Plan, check: type[Check], inputs: CheckInputs, extra: Iterable[str] = ()) -> Case:
    """Complete a case with what it can be selected by: its stage, the fabrics and kinds of its devices, and more."""
    devices = check.touches(plan, inputs)
    tags = {check.stage.value, *extra}
    for device in devices if len(devices) <= 8 else ():
        tags.add(plan.kind_of.get(device, "unknown"))
        if device in plan.switches:
            tags.add(plan.switches[device].fabric)
    fabric = getattr(inputs, "fabric", "")
    tags |= {fabric} if fabric else set()
    tags |= {"disruptive"} if check.disruptive else set()
    return Case(check, inputs, tuple(sorted(tags)), devices, check.tenants(plan, inputs))


def generate(plan: Plan, checks: Iterable[type[Check]]) -> list[Case]:
    """Return all cases of a plan in the order they run. Cost is linear in links and tenants."""
    return [make_case(plan, check, inputs) for check in sorted(checks, key=rank) for inputs in check.cases(plan)]


def rank(check: type[Check]) -> tuple[int, int, str]:
    """Sort key of checks: by stage, then what others stand on first, then by name."""
    return list(Stage).index(check.stage), depth(check.name), check.name


def digest(cases: Iterable[Case]) -> str:
    """Return the SHA-256 of a catalog: two runs with the same digest asked the same."""
    return hashlib.sha256("\n".join(case.id for case in cases).encode()).hexdigest()


def lacking(planned: Iterable[Case], chosen: Iterable[Case]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return what a plan asks and a catalog does not: cases that are gone, and cases with other inputs.

    Both are subjects by check. A case is the plan's own when check, subject and inputs are.
    """
    known = {case.id for case in chosen}
    about = {(case.check.name, case.subject) for case in chosen}
    dropped: dict[str, list[str]] = {}
    edited: dict[str, list[str]] = {}
    for case in planned:
        if case.id not in known:
            found = edited if (case.check.name, case.subject) in about else dropped
            found.setdefault(case.check.name, []).append(case.subject)
    return dropped, edited


@dataclass(frozen=True, slots=True)
class Selection:
    """What to run of a catalog; an empty field selects everything. Patterns are shell-style (`be-leaf-*`)."""

    tags: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    def keeps(self, case: Case) -> bool:
        """Whether a case is selected: every field that says something must match."""
        return (
            _any(self.tags, case.tags)
            and _any(self.devices, case.devices)
            and _any(self.tenants, case.tenants)
            and _any(self.checks, (case.check.name,))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data, without empty fields."""
        return {name: list(value) for name in self.__slots__ if (value := getattr(self, name))}


def _any(patterns: Sequence[str], values: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(value, pattern) for pattern in patterns for value in values)
