"""Runs the rules over a site: rendered in memory, or an existing folder of rendered files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.analysis.facts import Facts
from fabric.analysis.rendered import Rendered
from fabric.analysis.rule import Rule, all_rules
from fabric.problem import InputError, Problem, Severity
from fabric.tiers import require_two_tiers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Plan

_RANK = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found and what was looked at. `skipped` gives the reason by outside validator."""

    problems: tuple[Problem, ...]
    rules: tuple[str, ...]
    devices: int
    files: int
    asked: dict[str, int]
    skipped: dict[str, str]

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(p.severity is Severity.ERROR for p in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready data."""
        return {
            "rules": list(self.rules),
            "devices": self.devices,
            "files": self.files,
            "outside": self.asked,
            "skipped": self.skipped,
            "problems": [problem.to_dict() for problem in self.problems],
        }


def rendered_site(plan: Plan) -> Rendered:
    """Render a plan in memory."""
    from fabric.render.registry import render_site

    return Rendered(dict(render_site(plan)))


def choose_rules(ids: Iterable[str]) -> dict[str, type[Rule]]:
    """Return the rules named by id or by subject (`qos`), all when none is named. InputError for an unknown one."""
    known = all_rules()
    wanted = list(ids)
    chosen = {i: r for i, r in known.items() if not wanted or any(i == w or i.startswith(f"{w}.") for w in wanted)}
    unknown = [w for w in wanted if not any(i == w or i.startswith(f"{w}.") for i in known)]
    if unknown:
        fix = "see `kvfabric check --list`"
        raise InputError(
            [Problem("check.unknown-rule", f"rule {name}", "there is no such rule", fix) for name in unknown]
        )
    return chosen


def run_rules(plan: Plan, rendered: Rendered, ids: Iterable[str] = ()) -> list[Problem]:
    """Run the rules (all, or those named) and return what they found, errors first, then by rule and subject."""
    facts = Facts(plan, rendered)
    found = [problem for rule in choose_rules(ids).values() for problem in rule(facts).check()]
    unique = dict.fromkeys([*rendered.problems, *found])
    return sorted(unique, key=lambda p: (_RANK[p.severity], p.rule, p.subject, p.text))


def check_site(
    plan: Plan,
    *,
    ids: Iterable[str] = (),
    folder: Path | None = None,
    external: bool = False,
    problems: Iterable[Problem] = (),
) -> CheckReport:
    """Check a plan's rendered files; `problems` are those that planning already found.

    A folder that holds no device of the plan gives a report of 0 devices. Raises CouldNotRunError for three tiers.
    """
    require_two_tiers(plan, "checking")
    wanted = list(ids)
    if folder and not any(path.is_dir() for path in folder.iterdir()):
        return CheckReport(tuple(problems), (), 0, 0, {}, {})
    rendered = Rendered.from_folder(folder) if folder else rendered_site(plan)
    devices = [name for name in plan.kind_of if name in rendered.files]
    if folder and not devices:
        return CheckReport(tuple(problems), (), 0, 0, {}, {})
    found = run_rules(plan, rendered, wanted)
    asked: dict[str, int] = {}
    skipped: dict[str, str] = {}
    if external:
        more, asked, skipped = _ask_outside(rendered, folder, devices)
        found += more
    files = sum(len(rendered.files[name]) for name in devices)
    return CheckReport((*problems, *found), tuple(choose_rules(wanted)), len(devices), files, asked, skipped)


def _ask_outside(
    rendered: Rendered, folder: Path | None, devices: list[str]
) -> tuple[list[Problem], dict[str, int], dict[str, str]]:
    from tempfile import TemporaryDirectory

    from fabric import outside

    if folder:
        report = outside.ask(folder, devices)
    else:
        from fabric.render.writer import write_tree

        with TemporaryDirectory(prefix="kvfabric-check-") as name:
            write_tree(Path(name), [(d, dict(rendered.files[d])) for d in devices])
            report = outside.ask(Path(name), devices)
    return list(report.problems), report.asked, report.skipped
