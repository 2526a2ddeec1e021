"""The swap solver: the smallest set of moves of cable ends that turns the observed cabling into the planned one.

Planned and observed cabling are two matchings of the same ports. Where they differ they form alternating paths and
cycles; in each, every wrong cable needs at least one of its ends moved, and one move each is enough: keep one end of
every cable and take the other to where the plan wants it. A path or cycle can be walked in two directions, which are
the two choices of ends to move. The solver takes the direction with the fewest moves, then the one that moves whole
plugs together, then the one that keeps a person at the fewest racks and devices. Cost is linear in the cables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from validators.cabling.names import PortNames, Socket


@dataclass(frozen=True, slots=True)
class Move:
    """Take the end of a cable that is in `source` and plug it into `target`; its other end stays in `kept`."""

    source: Socket
    target: Socket
    kept: Socket


@dataclass(frozen=True, slots=True)
class Tangle:
    """One path or cycle of differing cables, solved.

    `moves` put it right; `other` are the moves on the opposite ends, when these are as few. `closed` is true for a
    cycle. `extra` are cables (by one end) that no plan wants, `missing` planned cables (by one end) that nobody sees.
    """

    moves: tuple[Move, ...]
    other: tuple[Move, ...]
    closed: bool
    extra: tuple[Socket, ...]
    missing: tuple[Socket, ...]


@dataclass(frozen=True, slots=True)
class _Walk:
    """One direction through a tangle."""

    moves: tuple[Move, ...]
    extra: tuple[Socket, ...]
    missing: tuple[Socket, ...]

    @property
    def cost(self) -> int:
        return len(self.moves) + 2 * len(self.extra) + len(self.missing)


def solve(names: PortNames, planned: Mapping[Socket, Socket], observed: Mapping[Socket, Socket]) -> list[Tangle]:
    """Return every tangle, in the order a person walks the racks. Both mappings hold each cable both ways."""
    walks = [(*_directions(chain, closed, planned), closed) for chain, closed in _chains(planned, observed)]
    plugs = _whole_plugs(names, [walk for first, second, _ in walks for walk in (first, second)])
    tangles = []
    for first, second, closed in walks:
        ranked = sorted((first, second), key=lambda walk: _rank(names, walk, plugs))
        best, other = ranked
        spare = other.moves if other.cost == best.cost else ()
        tangles.append(Tangle(_ordered(names, best.moves), _ordered(names, spare), closed, best.extra, best.missing))
    return sorted(tangles, key=lambda t: _walk_key(names, t.moves[0].source) if t.moves else ("", (), -1))


def _chains(planned: Mapping[Socket, Socket], observed: Mapping[Socket, Socket]) -> Iterator[tuple[list[Socket], bool]]:
    """Yield the alternating chains of wrong cables and the plan's: ports in order, and whether the chain is closed."""
    wrong = {port: far for port, far in observed.items() if planned.get(port) != far}
    wanted: dict[Socket, Socket] = {}
    for port in wrong:
        if (far := planned.get(port)) is not None:
            wanted[port], wanted[far] = far, port
    visited: set[Socket] = set()

    def walk(start: Socket) -> list[Socket]:
        chain, by_cable = [start], start in wrong
        visited.add(start)
        while (following := (wrong if by_cable else wanted).get(chain[-1])) is not None and following not in visited:
            chain.append(following)
            visited.add(following)
            by_cable = not by_cable
        return chain

    open_ends = sorted(wrong.keys() ^ wanted.keys())
    for port in (*open_ends, *sorted(wrong)):
        if port not in visited:
            yield walk(port), port in wrong and port in wanted


def _directions(chain: list[Socket], closed: bool, planned: Mapping[Socket, Socket]) -> tuple[_Walk, _Walk]:
    """Return the two ways to solve a chain, keeping the later or the earlier end of each wrong cable."""
    pairs = _cables(chain, closed, planned)
    wanted = {frozenset((port, far)) for port in chain if (far := planned.get(port)) is not None}
    walks = []
    for keep_later in (True, False):
        moves, extra, served = [], [], set()
        for earlier, later in pairs:
            kept, moved = (later, earlier) if keep_later else (earlier, later)
            target = planned.get(kept)
            if target is None:
                extra.append(kept)
            else:
                moves.append(Move(moved, target, kept))
                served.add(frozenset((kept, target)))
        missing = tuple(min(pair) for pair in sorted(wanted - served, key=min))
        walks.append(_Walk(tuple(moves), tuple(extra), missing))
    return walks[0], walks[1]


def _cables(chain: list[Socket], closed: bool, planned: Mapping[Socket, Socket]) -> list[tuple[Socket, Socket]]:
    """The wrong cables of a chain in its order; a chain that starts with the plan's edge skips its first port."""
    first = 0 if closed or len(chain) < 2 or planned.get(chain[0]) != chain[1] else 1
    return [(chain[i], chain[i + 1]) for i in range(first, len(chain) - 1, 2)]


def _whole_plugs(names: PortNames, walks: Iterable[_Walk]) -> set[tuple[tuple[str, int], tuple[str, int]]]:
    """Find pairs of cages between which several legs would move side by side: that is one plug in one hand."""
    legs: dict[tuple[tuple[str, int], tuple[str, int]], Counter[int]] = defaultdict(Counter)
    for walk in walks:
        for move in walk.moves:
            source, target = names.cage(move.source), names.cage(move.target)
            if source != target and source[0] == target[0]:
                legs[source, target][names.position(move.target) - names.position(move.source)] += 1
    return {pair for pair, shifts in legs.items() if max(shifts.values()) > 1}


def _rank(
    names: PortNames, walk: _Walk, plugs: set[tuple[tuple[str, int], tuple[str, int]]]
) -> tuple[int, int, int, int, int, tuple[Socket, ...]]:
    together = sum((names.cage(m.source), names.cage(m.target)) in plugs for m in walk.moves)
    sources = [move.source for move in walk.moves]
    devices = {socket.device for move in walk.moves for socket in (move.source, move.target)}
    racks = {names.rack(device) for device in devices}
    return (walk.cost, len(walk.extra), -together, len(racks), len(devices), tuple(sorted(sources)))


def _walk_key(names: PortNames, socket: Socket) -> tuple[str, tuple[tuple[int, str], ...], int]:
    from validators.cabling.names import natural

    return (names.rack(socket.device), natural(socket.device), names.position(socket))


def _ordered(names: PortNames, moves: Iterable[Move]) -> tuple[Move, ...]:
    return tuple(sorted(moves, key=lambda move: _walk_key(names, move.source)))


def apply(observed: Mapping[Socket, Socket], tangles: Iterable[Tangle]) -> dict[Socket, Socket]:
    """Return the cabling after all moves were made and unwanted cables were taken out."""
    after = dict(observed)
    moves = [move for tangle in tangles for move in tangle.moves]
    for tangle in tangles:
        for port in tangle.extra:
            far = after.pop(port, None)
            if far is not None:
                after.pop(far, None)
    for move in moves:
        after.pop(move.source, None)
        after.pop(move.kept, None)
    for move in moves:
        after[move.kept], after[move.target] = move.target, move.kept
    return after
