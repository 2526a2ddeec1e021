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

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan


@dataclass(frozen=True)
class PlannedSite:
    """A plan with what led to it: `changes` are the ledger lines this run would add or change."""

    plan: Plan
    inventory: Inventory
    ledger: Ledger
    ledger_path: Path
    changes: tuple[str, ...]
    problems: tuple[Problem, ...]

    def save_ledger(self) -> bool:
        """Write the ledger beside the inventory; False when nothing changed."""
        return self.ledger.save(self.ledger_path)

    def keep_ledger(self) -> str:
        """Write the ledger unless the site is a shipped example, which stays as it is; returns what was done."""
        if self.inventory.folder.resolve().is_relative_to(data_folder("inventories").resolve()):
            return "shipped example, no ledger kept"
        return f"{self.ledger_path} {'written' if self.save_ledger() else 'unchanged'}"


def plan_site(name: str | Path, *, forget_retired: bool = False) -> PlannedSite:
    """Load a site and plan it. Raises InputError with every problem when it cannot be planned."""
    inventory = load_inventory(name)
    path = inventory.folder / LEDGER_NAME
    before = Ledger.load(path)
    ledger = before.copy()
    plan, problems = build_plan(inventory, ledger)
    if forget_retired and ledger.forget_retired():
        ledger = Ledger(ledger.pools, ledger.pins)
        plan, problems = build_plan(inventory, ledger)
    return PlannedSite(plan, inventory, ledger, path, tuple(ledger.changes_since(before)), tuple(problems))


def build_plan(inventory: Inventory, ledger: Ledger) -> tuple[Plan, list[Problem]]:
    """Decide the site, taking and leaving numbers in `ledger`; returns the plan and its warnings.

    Raises InputError with every problem when there is an error among them.
    """
    builder = SiteBuilder(inventory, ledger)
    plan = builder.build()
    if plan is None or any(p.severity is Severity.ERROR for p in builder.problems):
        raise InputError(builder.problems)
    return plan, builder.problems


def load_plan(name: str | Path) -> Plan:
    """Return the plan of a site, by name or path. Raises InputError."""
    return plan_site(name).plan
