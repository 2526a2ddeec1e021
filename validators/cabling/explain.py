"""Words for what the solver found: crossed pairs, rings, shifted panels, rotated breakouts, ends out of place."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from validators.cabling.names import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from validators.cabling.moves import Move, Tangle
    from validators.cabling.names import PortNames, Socket

CROSSED, CYCLE, SHIFT, ROTATED, MISPLUGGED, EXTRA = (
    "crossed",
    "cycle",
    "shift",
    "rotated-breakout",
    "misplugged",
    "extra",
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One thing that went wrong and what to do: its kind, the cables' numbers, the moves, a sentence, racks to walk."""

    kind: str
    cables: tuple[int, ...]
    moves: tuple[Move, ...]
    text: str
    racks: tuple[str, ...]
    ports: tuple[Socket, ...]


def explain(names: PortNames, tangles: Iterable[Tangle], cable_at: Mapping[Socket, int]) -> list[Explanation]:
    """Return explanations in rack order; tangles of one shifted panel become one explanation."""
    singles: list[Explanation] = []
    shifted: dict[tuple[str, int], list[Tangle]] = defaultdict(list)
    for tangle in tangles:
        shift = _shift(names, tangle)
        if shift:
            shifted[shift].append(tangle)
        elif tangle.moves:
            singles.append(_single(names, tangle, cable_at))
        singles += [_extra(names, port) for port in tangle.extra]
    for (device, offset), members in shifted.items():
        moves = tuple(move for tangle in members for move in tangle.moves)
        if len(moves) >= 3:
            singles.append(_panel(names, device, offset, moves, cable_at))
        else:
            singles += [_single(names, tangle, cable_at) for tangle in members]
    return sorted(singles, key=lambda e: (e.racks, natural(str(e.ports[0]))))


def _shift(names: PortNames, tangle: Tangle) -> tuple[str, int] | None:
    """Return (device, places) when almost all ends of a tangle sit the same number of places off on one device."""
    devices = {socket.device for move in tangle.moves for socket in (move.source, move.target)}
    if len(devices) != 1 or (tangle.closed and len(tangle.moves) == 2) or _in_one_cage(names, tangle.moves):
        return None
    offsets = Counter(names.position(move.source) - names.position(move.target) for move in tangle.moves)
    offset, count = offsets.most_common(1)[0]
    # a panel that is rotated has one end (per place of the shift) that wraps around
    allowed = abs(offset) if tangle.closed else 0
    return (devices.pop(), offset) if count >= len(tangle.moves) - allowed and count * 2 > len(tangle.moves) else None


def _in_one_cage(names: PortNames, moves: Iterable[Move]) -> bool:
    cages = {names.cage(socket) for move in moves for socket in (move.source, move.target)}
    return len(cages) == 1


def _panel(
    names: PortNames, device: str, offset: int, moves: tuple[Move, ...], cable_at: Mapping[Socket, int]
) -> Explanation:
    ordered = tuple(sorted(moves, key=lambda move: names.position(move.source)))
    ports = [move.source.port for move in ordered]
    places = f"{abs(offset)} place{'s' if abs(offset) != 1 else ''}"
    direction = "up" if offset > 0 else "down"
    back = "down" if offset > 0 else "up"
    text = (
        f"{len(moves)} cables on {_at(names, device)} are shifted {direction} by {places}, "
        f"from {ports[0]} to {ports[-1]}: move this row of plugs {back} by {places}"
    )
    return _made(names, SHIFT, ordered, text, cable_at)


def _single(names: PortNames, tangle: Tangle, cable_at: Mapping[Socket, int]) -> Explanation:
    moves = tangle.moves
    numbers = _numbers(moves, cable_at)
    if len(moves) == 1:
        move = moves[0]
        text = f"cable {numbers[0]} from {move.kept} is in {_port(names, move.source)}: move this end to {move.target}"
        return _made(names, MISPLUGGED, moves, text, cable_at)
    kept = {names.cage(move.kept) for move in moves}
    if _in_one_cage(names, moves) or len(kept) == 1:
        device, _ = names.cage(moves[0].source if _in_one_cage(names, moves) else moves[0].kept)
        cage = moves[0].source if _in_one_cage(names, moves) else moves[0].kept
        parent = cage.port.rsplit("/", 1)[0] if cage.port.count("/") > 1 else cage.port
        legs = ", ".join(f"{move.source} to {move.target}" for move in moves)
        text = (
            f"the legs of breakout {parent} on {_at(names, device)} are rotated (cables {_list(numbers)}): move {legs}"
        )
        return _made(names, ROTATED, moves, text, cable_at)
    where = " and ".join(dict.fromkeys(_port(names, move.source) for move in moves))
    if tangle.closed and len(moves) == 2:
        alternative = (
            f"; or the other two, {tangle.other[0].source} and {tangle.other[1].source}"
            if len(tangle.other) == 2
            else ""
        )
        text = f"cables {numbers[0]} and {numbers[1]} are crossed at {where}: exchange these two ends{alternative}"
        return _made(names, CROSSED, moves, text, cable_at)
    steps = "; ".join(f"{move.source} to {move.target}" for move in moves)
    word = "in a ring" if tangle.closed else "one after the other"
    text = f"{len(moves)} cables ({_list(numbers)}) are exchanged {word}: move {steps}"
    return _made(names, CYCLE, moves, text, cable_at)


def _extra(names: PortNames, port: Socket) -> Explanation:
    text = f"the cable in {_port(names, port)} is in no plan: take it out"
    return Explanation(EXTRA, (), (), text, (names.rack(port.device),), (port,))


def _made(
    names: PortNames, kind: str, moves: tuple[Move, ...], text: str, cable_at: Mapping[Socket, int]
) -> Explanation:
    racks = tuple(dict.fromkeys(names.rack(move.source.device) for move in moves))
    ports = tuple(dict.fromkeys(socket for move in moves for socket in (move.source, move.target, move.kept)))
    return Explanation(kind, _numbers(moves, cable_at), moves, text, racks, ports)


def _numbers(moves: Iterable[Move], cable_at: Mapping[Socket, int]) -> tuple[int, ...]:
    """The numbers that the plan gives the cables which end in the kept ports."""
    return tuple(sorted(cable_at[move.kept] for move in moves))


def _at(names: PortNames, device: str) -> str:
    rack = names.rack(device)
    return f"{device} (rack {rack})" if rack else device


def _port(names: PortNames, socket: Socket) -> str:
    rack = names.rack(socket.device)
    return f"{socket} (rack {rack})" if rack else str(socket)


def _list(numbers: Iterable[int]) -> str:
    words = [str(number) for number in numbers]
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "")
