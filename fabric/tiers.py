"""What is made for two tiers says so for three, instead of answering for half of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import SUPER_SPINE
from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.inventory.load import Inventory
    from fabric.plan import Plan


def require_two_tiers(plan: Plan, what: str) -> None:
    """Raise CouldNotRunError when a fabric has super-spines: `what` is the work that covers leaves and spines only."""
    _require_none(plan.site, (s.fabric for s in plan.switches.values() if s.kind == SUPER_SPINE), what)


def require_two_tiers_written(inventory: Inventory, what: str) -> None:
    """Raise as `require_two_tiers`, from the inventory: planning a site of three tiers takes a minute for nothing."""
    site = inventory.site
    _require_none(site.site, (name for name, fabric in site.fabrics.items() if fabric.super_spine), what)


def _require_none(site: str, fabrics: Iterable[str], what: str) -> None:
    names = ", ".join(dict.fromkeys(fabrics))
    if names:
        message = f"{what} covers leaves and spines, and {site} has super-spines ({names}); "
        message += "three tiers can be planned, counted and cabled: use `plan`, `capacity`, `cables`, `kv restore`"
        raise CouldNotRunError(message)
