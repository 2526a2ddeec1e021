"""Which server NIC port goes to which leaf port.

Three ways to place a NIC group, all sequential over the servers of a fabric:

- single-homed: all NICs of a server on one leaf; a leaf is filled before the next is begun. With 8 NICs and 64 leaf
  ports this puts 8 servers, 64 accelerators, behind one leaf: their traffic never needs a spine.
- rail-optimised: leaves form groups; NIC r of every server in the group goes to the leaf that serves rail r. A group
  has as many leaves as the site needs, at most one a rail, and the rails are divided evenly over them.
- alternating: the ports of a server alternate over a pair of leaves, servers with one port alternate among themselves;
  the pair is filled before the next is begun.

Positions are pinned in the ledger: what was cabled once stays, whatever is added or reordered later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.allocation.ledger import Lost
from fabric.topology.switches import DOWN, ClassPorts, Draft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fabric.allocation.ledger import Ledger
    from fabric.plan import Port

SINGLE_HOMED, RAIL_OPTIMISED, ALTERNATING = "single-homed", "rail-optimised", "alternating"


@dataclass(frozen=True, slots=True)
class Want:
    """One NIC port that needs a leaf port. `position` is its place among the `width` ports of its group."""

    server: str
    port: str
    group: str
    speed: int
    placement: str
    position: int
    width: int
    total: int
    attach: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A NIC port and the leaf port it got."""

    want: Want
    leaf: Draft
    port: Port


class NoRoomError(Exception):
    """The leaves of a class cannot take all ports; `missing` are the ports left over."""

    def __init__(self, attach: str, speed: int, count: int, limit: int) -> None:
        self.attach, self.speed, self.count, self.limit = attach, speed, count, limit
        super().__init__(f"{count} ports of {speed}G left over with {limit} switches")


class LeafRow:
    """The leaves of one class, in order; grows up to `limit` switches as ports are asked for."""

    def __init__(self, attach: str, prefix: str, ports: ClassPorts, count: int | None, limit: int) -> None:
        self.attach, self.prefix, self.ports = attach, prefix, ports
        self.limit = count if count is not None else limit
        self.leaves: list[Draft] = []
        if count:
            self.at(count - 1, 0)

    def at(self, index: int, speed: int) -> Draft:
        """The leaf with that index, made if need be. Raises NoRoomError past the limit."""
        if index >= self.limit:
            raise NoRoomError(self.attach, speed, 1, self.limit)
        while len(self.leaves) <= index:
            number = len(self.leaves)
            self.leaves.append(Draft(f"{self.prefix}-{number + 1:02d}", self.attach, number, self.ports))
        return self.leaves[index]

    def named(self, name: str, speed: int) -> Draft | None:
        """The leaf of that name, made if need be; None when the row has no such leaf."""
        prefix, _, number = name.rpartition("-")
        if prefix != self.prefix or not number.isdigit() or not 0 < int(number) <= self.limit:
            return None
        return self.at(int(number) - 1, speed)


def place(wants: Iterable[Want], rows: dict[str, LeafRow], ledger: Ledger, book: str) -> list[Placed]:
    """Give every wanted NIC port a leaf port, pinned ones first. Raises NoRoomError when a leaf row is too short."""
    ordered = list(wants)
    pins = ledger.pins.setdefault(book, {})
    stale = _stale(ordered, pins, ledger, book)
    placed: dict[int, Placed] = {}
    for i, want in enumerate(ordered):
        key = f"{want.server}:{want.port}"
        pin = None if want.group in stale else pins.get(key)
        stranger = bool(pin) and not ledger.knows(str(pin).partition(":")[0])
        found = _pinned(rows[want.attach], want, pin) if pin and not stranger else None
        if found:
            placed[i] = _take(want, *found)
        elif stranger:
            # a row would grow up to it: nobody means leaf 2000
            ledger.lost.append(Lost(key, str(pin), f"{key} was on {pin}, a switch that this ledger gives no number"))
        elif pin:
            text = f"{key} was on {pin}, which is no free {want.speed}G port for it any more"
            ledger.lost.append(Lost(key, pin, text))
    cursors: dict[tuple[str, str, int], int] = {}
    for i, want in enumerate(ordered):
        if i not in placed:
            leaf = _CHOOSERS[want.placement](want, rows[want.attach], cursors)
            port = leaf.peek(DOWN, want.speed)
            assert port is not None
            placed[i] = _take(want, leaf, port)
    result = [placed[i] for i in range(len(ordered))]
    for item in result:
        pins[f"{item.want.server}:{item.want.port}"] = f"{item.leaf.name}:{item.port.name}"
    return result


def _take(want: Want, leaf: Draft, port: Port) -> Placed:
    leaf.used[port.name] = f"{want.server}:{want.port}--{leaf.name}:{port.name}"
    return Placed(want, leaf, port)


def _stale(wants: list[Want], pins: dict[str, str], ledger: Ledger, book: str) -> set[str]:
    """The groups whose pins no longer count, as their placement was changed; drops pins of gone names."""
    rules = ledger.pins.setdefault(f"{book}/placement", {})
    now = {want.group: f"{want.placement} {want.attach} {want.width}x{want.speed}G" for want in wants}
    stale = {group for group, rule in now.items() if rules.get(group, rule) != rule}
    rules.update(now)
    live = {f"{want.server}:{want.port}" for want in wants}
    for key in [key for key in pins if key not in live]:
        del pins[key]
    return stale


def _pinned(row: LeafRow, want: Want, pin: str) -> tuple[Draft, Port] | None:
    name, _, port_name = pin.partition(":")
    leaf = row.named(name, want.speed)
    port = leaf.has(DOWN, want.speed, port_name) if leaf else None
    return (leaf, port) if leaf and port else None


def _single_homed(want: Want, row: LeafRow, cursors: dict[tuple[str, str, int], int]) -> Draft:
    key = (want.attach, want.server, want.speed)
    if key in cursors:
        leaf = row.at(cursors[key], want.speed)
        if leaf.peek(DOWN, want.speed):
            return leaf
    shared = (want.attach, SINGLE_HOMED, want.speed)
    if want.width > row.ports.capacity(DOWN, want.speed):
        raise NoRoomError(want.attach, want.speed, want.width, row.limit)
    index = cursors.get(shared, 0)
    while row.at(index, want.speed).free(DOWN, want.speed) < want.width - want.position:
        index += 1
    cursors[shared] = cursors[key] = index
    return row.at(index, want.speed)


def _rail_optimised(want: Want, row: LeafRow, cursors: dict[tuple[str, str, int], int]) -> Draft:
    capacity = row.ports.capacity(DOWN, want.speed)
    if not capacity:
        raise NoRoomError(want.attach, want.speed, want.total, row.limit)
    needed = -(-want.total // capacity)
    size = max(d for d in range(1, want.width + 1) if want.width % d == 0 and d <= max(1, needed))
    within = want.position // (want.width // size)
    key = (want.attach, f"{RAIL_OPTIMISED}/{within}", want.speed)
    group = cursors.get(key, 0)
    while not row.at(group * size + within, want.speed).peek(DOWN, want.speed):
        group += 1
    cursors[key] = group
    return row.at(group * size + within, want.speed)


def _alternating(want: Want, row: LeafRow, cursors: dict[tuple[str, str, int], int]) -> Draft:
    width = min(2, row.limit)
    within = want.position % width
    if want.width == 1:  # a server with one port alternates with the server before it
        turn = (want.attach, f"{ALTERNATING}/turn/{want.group}", want.speed)
        within = cursors.get(turn, 0) % width
        cursors[turn] = cursors.get(turn, 0) + 1
    key = (want.attach, f"{ALTERNATING}/{within}", want.speed)
    pair = cursors.get(key, 0)
    if not row.ports.capacity(DOWN, want.speed):
        raise NoRoomError(want.attach, want.speed, want.total, row.limit)
    while not row.at(pair * width + within, want.speed).peek(DOWN, want.speed):
        pair += 1
    cursors[key] = pair
    return row.at(pair * width + within, want.speed)


_CHOOSERS: dict[str, Callable[[Want, LeafRow, dict[tuple[str, str, int], int]], Draft]] = {
    SINGLE_HOMED: _single_homed,
    RAIL_OPTIMISED: _rail_optimised,
    ALTERNATING: _alternating,
}
