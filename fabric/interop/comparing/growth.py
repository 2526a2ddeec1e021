"""What a changed inventory means on the floor: the ledger's cabling against the plan's, as `compare` does it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.allocation.cables import POOL
from fabric.allocation.renames import rename_devices
from fabric.interop.cable_map import Cable, CableEnd, of_plan
from fabric.interop.comparing import differences
from fabric.interop.comparing.finding import plural
from fabric.interop.names import split_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.allocation.ledger import Ledger
    from fabric.build import PlannedSite
    from fabric.plan import Plan

_NOT_CABLES = ("/shape", "/placement", "identity")
_MANY = {"leaf": "leaves", "border-leaf": "border leaves"}


@dataclass(frozen=True, slots=True)
class Growth:
    """What happens on the floor: `tiers` in words, the cables that move, and how many are new, gone or stay."""

    first: bool
    tiers: tuple[str, ...]
    moves: tuple[differences.Move, ...]
    new: int
    gone: int
    stay: int

    def text(self) -> str:
        """The summary, then each cable that moves."""
        if self.first:
            return f"nothing is remembered yet: {plural(self.new, 'cable')} and every number below are new"
        parts = [plural(len(self.moves), "cable") + (" moves" if len(self.moves) == 1 else " move"), f"{self.new} new"]
        parts += [f"{self.gone} gone"] if self.gone else []
        return "\n".join([*self.tiers, ", ".join([*parts, f"{self.stay} stay"]), *self._rows()])

    def _rows(self) -> Iterator[str]:
        return (f"cabling: {move.kept} {move.given} -> {move.planned}" for move in self.moves)

    def rows(self) -> list[dict[str, str | None]]:
        """The moves in the form of the other changes."""
        return [{"pool": "cabling", "key": str(m.kept), "old": str(m.given), "new": str(m.planned)} for m in self.moves]


def growth(planned: PlannedSite) -> Growth:
    """Compare the cabling that the ledger remembers with the plan's; devices renamed with `was` are the same ones."""
    before = planned.before.copy()
    rename_devices(planned.inventory.site, before)
    ours = of_plan(planned.plan).cables
    known = _remembered(before, ours)
    found = differences.find(planned.plan, ours, known)
    moves = (*found.moves, *(move for pair in found.swaps for move in pair))
    return Growth(
        first=not known,
        tiers=tuple(_tiers(planned.plan, {end.device for cable in known for end in (cable.a, cable.b)})),
        moves=moves,
        new=len(found.missing),
        gone=len(found.extra),
        stay=found.equal,
    )


def _remembered(ledger: Ledger, ours: tuple[Cable, ...]) -> list[Cable]:
    """The cables of a ledger. Those with a number and no pin (towards the edge) never move: they are as planned."""
    pins = {
        key: value
        for book, pairs in ledger.pins.items()
        if not book.endswith(_NOT_CABLES)
        for key, value in pairs.items()
    }
    numbered = ledger.pools.get(POOL, {})
    fixed = [cable for cable in ours if (key := ":".join(cable.a.place)) in numbered and key not in pins]
    return [*(Cable(_end(key), _end(value)) for key, value in pins.items()), *fixed]


def _end(place: str) -> CableEnd:
    device, _, port = place.partition(":")
    return CableEnd(device, port)


def _tiers(plan: Plan, known: set[str]) -> Iterator[str]:
    """The kinds of device of which there are more or fewer than before, in words."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for switch in plan.switches.values():
        groups.setdefault((switch.fabric, switch.kind, _MANY.get(switch.kind, f"{switch.kind}s")), []).append(
            switch.name
        )
    for server in plan.servers.values():
        groups.setdefault((server.server_class, "server", "servers"), []).append(server.name)
    for gateway in plan.gateways.values():
        groups.setdefault((gateway.gateway_class, "gateway", "gateways"), []).append(gateway.name)
    before = Counter(split_index(device)[0] for device in known)
    for (where, word, many), names in groups.items():
        had = sum(before[stem] for stem in dict.fromkeys(split_index(name)[0] for name in names))
        if had != len(names):
            yield f"{where}: {plural(len(names), word, many)} instead of {had}"
