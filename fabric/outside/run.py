"""Asks every outside validator about every rendered device."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from fabric.problem import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Plan


class Validator(Protocol):
    """What a validator module looks like. `FILES` are the rendered files that it reads."""

    NAME: str
    FILES: tuple[str, ...]

    def available(self) -> str | None:
        """Return why the validator cannot be asked here, or None."""

    def validate(self, folder: Path, device: str) -> list[Problem]:
        """Return what it says about a device's files in `folder`; nothing when it is content."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the validators said. `asked` counts files by validator, `skipped` gives the reason by validator."""

    problems: tuple[Problem, ...]
    asked: dict[str, int]
    skipped: dict[str, str]


@cache
def validators() -> dict[str, Validator]:
    """Every validator by name: the modules of this package that have a `NAME`."""
    found: dict[str, Validator] = {}
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if info.name in {"run", "places"} or "_" in info.name:
            continue
        module = importlib.import_module(f"fabric.outside.{info.name}")
        if hasattr(module, "NAME"):
            found[module.NAME] = cast("Validator", module)
    return found


def ask(rendered: Path, devices: Iterable[str], names: Iterable[str] | None = None) -> Report:
    """Ask the validators (all, or those named) about `rendered/<device>/` of each device."""
    wanted = set(names) if names is not None else None
    problems: list[Problem] = []
    asked: dict[str, int] = {}
    skipped: dict[str, str] = {}
    known = list(devices)
    for name, validator in validators().items():
        if wanted is not None and name not in wanted:
            continue
        reason = validator.available()
        if reason:
            skipped[name] = reason
            continue
        asked[name] = 0
        for device in known:
            folder = rendered / device
            count = sum(1 for file in validator.FILES if any(folder.glob(file)))
            if count:
                asked[name] += count
                problems += validator.validate(folder, device)
    return Report(tuple(problems), asked, skipped)


def run_all(plan: Plan, rendered_dir: Path) -> list[Problem]:
    """Ask every validator about every device of the plan that has a folder in `rendered_dir`.

    Returns their complaints; a validator that could not be asked, or had no file to read, is an `info` problem of rule
    `outside.<name>.skipped`, so that nobody takes it for a pass.
    """
    devices = [device for device in plan.kind_of if (rendered_dir / device).is_dir()]
    report = ask(rendered_dir, devices)
    problems = list(report.problems)
    for name, reason in report.skipped.items():
        problems.append(_skipped(name, reason))
    for name, count in report.asked.items():
        if not count:
            problems.append(_skipped(name, "no rendered file for it"))
    return problems


def _skipped(name: str, reason: str) -> Problem:
    return Problem(f"outside.{name}.skipped", f"validator {name}", f"not asked: {reason}", severity=Severity.INFO)
