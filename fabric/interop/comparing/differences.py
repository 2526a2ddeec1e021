"""Cable by cable: the same, missing, extra, moved at one end, or two swapped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.hardware.ranges import natural_key
from fabric.interop.comparing.finding import EXTRA, MISSING, MOVED, SPEED, SWAPPED, Finding, names, plural
from fabric.plan import LEAF_KINDS, SPINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.interop.cable_map import Cable, CableEnd
    from fabric.plan import Plan

_SWITCHES = LEAF_KINDS | {SPINE}


@dataclass(frozen=True, slots=True)
class Move:
    """A cable with one end where it was planned (`kept`) and the other elsewhere."""

    kept: CableEnd
    planned: CableEnd
    given: CableEnd
    line: int

    def __str__(self) -> str:
        at = f" (line {self.line})" if self.line else ""
        return f"{self.kept} goes to {self.given}, planned {self.planned}{at}"


@dataclass
class Differences:
    """The sorted-out cables."""

    plan: Plan
    equal: int = 0
    missing: list[Cable] = field(default_factory=list)
    extra: list[Cable] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    swaps: list[tuple[Move, Move]] = field(default_factory=list)
    speeds: list[str] = field(default_factory=list)

    def findings(self) -> list[Finding]:
        """Say each kind once, with its cables under it."""
        found = []
        if self.swaps:
            rows = tuple(
                f"{one.kept} and {two.kept} are swapped: {one.given} and {two.given}" for one, two in self.swaps
            )
            text = f"{plural(len(self.swaps), 'pair')} of cables swapped"
            found.append(Finding(SWAPPED, text, 2 * len(self.swaps), rows))
        found += self._moved()
        found += self._by_device(MISSING, self.missing, "missing from the map", "not in the map at all")
        found += self._by_device(EXTRA, self.extra, "in the map but not planned", "not in the plan at all")
        if self.speeds:
            text = f"{plural(len(self.speeds), 'cable')} of another speed"
            found.append(Finding(SPEED, text, len(self.speeds), tuple(self.speeds)))
        return found

    def _moved(self) -> list[Finding]:
        """Moves to another device and moves to another port of the same device are different mistakes."""
        groups: dict[str, list[Move]] = {"device": [], "port": []}
        for move in self.moves:
            groups["port" if move.planned.device == move.given.device else "device"].append(move)
        texts = {
            "device": "plugged into another device than planned",
            "port": "in another port of the planned device",
        }
        return [
            Finding(MOVED, f"{plural(len(moves), 'cable')} {texts[what]}", len(moves), tuple(map(str, moves)))
            for what, moves in groups.items()
            if moves
        ]

    def _by_device(self, kind: str, cables: list[Cable], some: str, whole: str) -> list[Finding]:
        """Devices that one side lacks altogether are said once, not cable by cable."""
        if not cables:
            return []
        absent = self._absent(kind, cables)
        found = []
        of_absent = [cable for cable in cables if cable.a.device in absent or cable.b.device in absent]
        rest = [cable for cable in cables if cable.a.device not in absent and cable.b.device not in absent]
        if absent:
            text = f"{plural(len(absent), 'device')} {whole}: {names(absent)} ({plural(len(of_absent), 'cable')})"
            found.append(Finding(kind, text, len(of_absent), tuple(map(_row, of_absent))))
        if rest:
            found.append(Finding(kind, f"{plural(len(rest), 'cable')} {some}", len(rest), tuple(map(_row, rest))))
        return found

    def _absent(self, kind: str, cables: list[Cable]) -> list[str]:
        devices = {end.device for cable in cables for end in (cable.a, cable.b)}
        other = self.present_given if kind == MISSING else self.present_planned
        return sorted(devices - other, key=natural_key)

    present_given: frozenset[str] = frozenset()
    present_planned: frozenset[str] = frozenset()


def _row(cable: Cable) -> str:
    return f"{cable} (line {cable.line})" if cable.line else str(cable)


def find(plan: Plan, planned: Iterable[Cable], given: Iterable[Cable]) -> Differences:
    """Sort the cables of both sides out."""
    ours = {cable.places: cable for cable in planned}
    theirs = {cable.places: cable for cable in given}
    both = ours.keys() & theirs.keys()
    result = Differences(plan, equal=len(both))
    result.present_planned = frozenset(plan.kind_of)
    result.present_given = _devices(theirs.values())
    result.speeds = [
        f"{ours[key]}: {theirs[key].speed}G in the map, {ours[key].speed}G planned"
        for key in ours
        if key in both and theirs[key].speed and theirs[key].speed != ours[key].speed
    ]
    missing = {key: cable for key, cable in ours.items() if key not in both}
    extra = {key: cable for key, cable in theirs.items() if key not in both}
    result.moves = _moves(missing, extra)
    result.missing, result.extra = list(missing.values()), list(extra.values())
    result.moves, result.swaps = _swaps(result.moves)
    return result


def _devices(cables: Iterable[Cable]) -> frozenset[str]:
    return frozenset(end.device for cable in cables for end in (cable.a, cable.b))


Unmatched = dict[frozenset[tuple[str, str]], "Cable"]


def _moves(missing: Unmatched, extra: Unmatched) -> list[Move]:
    """Pair missing and extra cables that share an end, lower ends first; both leave their lists."""
    moves = []
    for side in ("a", "b"):
        at = {place: key for key in extra for place in key}
        for key, cable in list(missing.items()):
            kept: CableEnd = getattr(cable, side)
            match = at.get(kept.place)
            if match is None or match not in extra:
                continue
            other = extra.pop(match)
            del missing[key]
            planned = cable.b if side == "a" else cable.a
            given = other.b if other.a.place == kept.place else other.a
            moves.append(Move(kept, planned, given, other.line))
    return moves


def _swaps(moves: list[Move]) -> tuple[list[Move], list[tuple[Move, Move]]]:
    """Two moves that went to each other's planned place are one swap."""
    by_planned = {move.planned.place: move for move in moves}
    swaps, done = [], set()
    for move in moves:
        other = by_planned.get(move.given.place)
        if other and other is not move and other.given.place == move.planned.place and id(other) not in done:
            swaps.append((move, other))
            done |= {id(move), id(other)}
    return [move for move in moves if id(move) not in done], swaps
