"""What is made for two tiers says so for three, instead of answering for half of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import SUPER_SPINE
from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from fabric.plan import Plan


def require_two_tiers(plan: Plan, what: str) -> None:
    """Raise CouldNotRunError when a fabric has super-spines: `what` is the work that covers leaves and spines only."""
    found = list(dict.fromkeys(s.fabric for s in plan.switches.values() if s.kind == SUPER_SPINE))
    if found:
        names = ", ".join(found)
        message = f"{what} covers leaves and spines, and {plan.site} has super-spines ({names}); "
        message += "three tiers can be planned, counted and cabled: use `plan`, `capacity`, `cables`, `kv restore`"
        raise CouldNotRunError(message)
