"""Which of the map's cables belong to which fabric, and which fabrics the map is about at all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.interop.comparing.finding import NOTE, Finding, plural

if TYPE_CHECKING:
    from fabric.interop.cable_map import Cable
    from fabric.plan import Plan


@dataclass(frozen=True)
class Scope:
    """The cables to compare, the fabrics they are compared with, and what was left aside."""

    cables: list[Cable]
    covered: tuple[str, ...]
    left_aside: int
    not_covered: dict[str, int]

    def findings(self) -> list[Finding]:
        """Say what was not compared."""
        found = []
        if self.left_aside:
            text = f"{plural(self.left_aside, 'cable')} of other fabrics in the map, not looked at"
            found.append(Finding(NOTE, text, self.left_aside, (), False))
        for fabric, count in self.not_covered.items():
            text = (
                f"the map has nothing of fabric {fabric} ({plural(count, 'cable')} planned), so that was not compared"
            )
            found.append(Finding(NOTE, text, count, (), False))
        return found


def sort_out(plan: Plan, cables: list[Cable], fabrics: tuple[str, ...]) -> Scope:
    """Choose the cables and fabrics to compare; cables of no known fabric are always compared."""
    owners = _owners(plan, cables)
    if fabrics:
        wanted = tuple(fabric for fabric in plan.fabrics if fabric in fabrics)
        kept = [cable for cable, owner in zip(cables, owners, strict=True) if not owner or owner in wanted]
        return Scope(kept, wanted, len(cables) - len(kept), {})
    touched = set(owners)
    covered = tuple(fabric for fabric in plan.fabrics if fabric in touched)
    counts = Counter(link.fabric for link in plan.links.values())
    missing = {fabric: counts[fabric] for fabric in plan.fabrics if fabric not in touched and counts[fabric]}
    # a map that touches no fabric is not a partial map of this site, it is another site's
    return Scope(cables, covered, 0, missing) if covered else Scope(cables, tuple(plan.fabrics), 0, {})


def _owners(plan: Plan, cables: list[Cable]) -> list[str]:
    """The fabric of each cable: by a port or switch that the plan knows, else by what its switches also touch."""
    owners = [_owner(plan, cable) for cable in cables]
    votes: dict[str, Counter[str]] = {}
    for cable, owner in zip(cables, owners, strict=True):
        for end in (cable.a, cable.b):
            if owner and end.device not in plan.kind_of:
                votes.setdefault(end.device, Counter())[owner] += 1
    by_device = {device: counted.most_common(1)[0][0] for device, counted in votes.items()}
    return [
        owner or by_device.get(cable.a.device, "") or by_device.get(cable.b.device, "")
        for cable, owner in zip(cables, owners, strict=True)
    ]


def _owner(plan: Plan, cable: Cable) -> str:
    for end in (cable.b, cable.a):
        if end.device in plan.switches:
            return plan.switches[end.device].fabric
    for end in (cable.a, cable.b):
        link = plan.link_at.get(end.place)
        if link:
            return link.fabric
    return cable.network if cable.network in plan.fabrics else ""
