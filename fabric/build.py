"""From inventory and ledger to the plan: the one place where the site is decided.

`plan_site` is what commands call; `load_plan` is for callers that only want the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.allocation.ledger import Ledger
from fabric.inventory.load import LEDGER_NAME, Inventory, load_inventory
from fabric.problem import InputError, Problem, Severity
from fabric.resources import data_folder
from fabric.site import SiteBuilder
from fabric.tiers import require_two_tiers_written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fabric.allocation.ledger import Change, Lost
    from fabric.allocation.numbers import Numbers
    from fabric.plan import Plan


@dataclass(frozen=True)
class PlannedSite:
    """A plan with what led to it: `changes` are the numbers this run would newly give or change.

    `meaning` turns a position in a pool into what it stands for: an AS number, an address, a VLAN. `before` is the
    ledger as it was read.
    """

    plan: Plan
    inventory: Inventory
    ledger: Ledger
    ledger_path: Path
    changes: tuple[Change, ...]
    meaning: Callable[[str, int], str]
    problems: tuple[Problem, ...]
    before: Ledger

    def save_ledger(self) -> bool:
        """Write the ledger beside the inventory; False when nothing changed."""
        return self.ledger.save(self.ledger_path)

    def keep_ledger(self) -> str:
        """Write the ledger unless the site is a shipped example, which stays as it is; returns what was done."""
        if self.inventory.folder.resolve().is_relative_to(data_folder("inventories").resolve()):
            return "shipped example, no ledger kept"
        return f"{self.ledger_path} {'written' if self.save_ledger() else 'unchanged'}"


@dataclass(frozen=True)
class _Built:
    plan: Plan
    numbers: Numbers
    problems: list[Problem]


def plan_site(name: str | Path, *, forget_retired: bool = False, two_tiers_for: str = "") -> PlannedSite:
    """Load a site and plan it. Raises InputError with every problem when it cannot be planned.

    `two_tiers_for` is work that covers leaves and spines only: a site of three tiers is then refused before planning
    (CouldNotRunError).
    """
    inventory = load_inventory(name)
    if two_tiers_for:
        require_two_tiers_written(inventory, two_tiers_for)
    path = inventory.folder / LEDGER_NAME
    before = Ledger.load(path)
    ledger = before.copy()
    builder = _build(inventory, ledger)
    lost = _lost(path, ledger.lost)
    if forget_retired and ledger.forget_retired():
        ledger = Ledger(ledger.pools, ledger.pins)
        builder = _build(inventory, ledger)
    changes = tuple(ledger.changes_since(before))
    meaning = builder.numbers.meaning
    return PlannedSite(builder.plan, inventory, ledger, path, changes, meaning, (*builder.problems, *lost), before)


def build_plan(inventory: Inventory, ledger: Ledger) -> tuple[Plan, list[Problem]]:
    """Decide the site, taking and leaving numbers in `ledger`; returns the plan and its warnings.

    Raises InputError with every problem when there is an error among them.
    """
    builder = _build(inventory, ledger)
    return builder.plan, builder.problems


def _build(inventory: Inventory, ledger: Ledger) -> _Built:
    builder = SiteBuilder(inventory, ledger)
    plan = builder.build()
    if plan is None or any(p.severity is Severity.ERROR for p in builder.problems):
        raise InputError(builder.problems)
    return _Built(plan, builder.numbers, builder.problems)


def _lost(path: Path, lost: list[Lost]) -> list[Problem]:
    fix = "restore the ledger if nobody meant this; else cables and configurations change, see `plan --changes`"
    lines = path.read_text(encoding="utf-8").splitlines() if lost and path.exists() else []
    return [
        Problem("ledger.lost", path.name, f"{one.text}: given anew", fix, str(path), one.line_in(lines),
                severity=Severity.WARNING)
        for one in lost
    ]  # fmt: skip


def load_plan(name: str | Path, *, two_tiers_for: str = "") -> Plan:
    """Return the plan of a site, by name or path. Raises as `plan_site`."""
    return plan_site(name, two_tiers_for=two_tiers_for).plan
