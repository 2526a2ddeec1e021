"""Leaf to spine cabling: each leaf's uplinks are divided evenly over the spines, spine ports are taken leaf by leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.allocation.ledger import Lost
from fabric.topology.switches import DOWN, UP, ClassPorts, Draft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.allocation.ledger import Ledger
    from fabric.plan import Port


@dataclass(frozen=True, slots=True)
class Uplink:
    """One leaf port cabled to one spine port."""

    leaf: Draft
    leaf_port: Port
    spine: Draft
    spine_port: Port


class UnevenUplinksError(Exception):
    """The uplinks of a leaf class cannot be divided evenly over the spines."""

    def __init__(self, leaf: str, uplinks: int, spines: int) -> None:
        self.leaf, self.uplinks, self.spines = leaf, uplinks, spines
        super().__init__(f"{uplinks} uplinks of {leaf} over {spines} spines")


class SpinePortsError(Exception):
    """The spines have fewer ports than the leaves have uplinks."""

    def __init__(self, wanted: int, had: int, speed: int) -> None:
        self.wanted, self.had, self.speed = wanted, had, speed
        super().__init__(f"{wanted} uplinks, {had} spine ports of {speed}G")


def spine_count(leaves: Sequence[Draft], ports: ClassPorts, wanted: int | None) -> int:
    """How many spines: as asked, else the fewest that have ports for all uplinks and divide each leaf's evenly.

    Raises SpinePortsError or UnevenUplinksError.
    """
    speed = _speed(leaves)
    per_leaf = [len(_up(leaf)) for leaf in leaves]
    total, capacity = sum(per_leaf), ports.capacity(DOWN, speed)
    if not capacity:
        raise SpinePortsError(total, 0, speed)
    if wanted is not None:
        if wanted * capacity < total:
            raise SpinePortsError(total, wanted * capacity, speed)
        for leaf, count in zip(leaves, per_leaf, strict=True):
            if count % wanted:
                raise UnevenUplinksError(leaf.name, count, wanted)
        return wanted
    fewest = -(-total // capacity)
    for count in range(fewest, max(per_leaf) + 1):
        if all(uplinks % count == 0 for uplinks in per_leaf):
            return count
    worst = next((leaf for leaf, n in zip(leaves, per_leaf, strict=True) if n % max(fewest, 1)), leaves[0])
    raise UnevenUplinksError(worst.name, len(_up(worst)), fewest)


def connect(leaves: Sequence[Draft], spines: Sequence[Draft], ledger: Ledger, book: str) -> list[Uplink]:
    """Cable every uplink; positions already in the ledger stay as long as the number of spines does."""
    pins = ledger.pins.setdefault(book, {})
    shape = ledger.pins.setdefault(f"{book}/shape", {})
    if shape.get("spines") != str(len(spines)):
        pins.clear()
        shape["spines"] = str(len(spines))
    by_name = {spine.name: spine for spine in spines}
    links: dict[str, Uplink] = {}
    for leaf in leaves:
        for port in _up(leaf):
            key = f"{leaf.name}:{port.name}"
            name, _, spine_port_name = pins.get(key, "").partition(":")
            spine = by_name.get(name)
            spine_port = spine.has(DOWN, port.speed, spine_port_name) if spine else None
            if spine and spine_port:
                links[key] = _take(leaf, port, spine, spine_port)
            elif key in pins:
                text = f"{key} was on {pins[key]}, which is no free {port.speed}G port for it any more"
                ledger.lost.append(Lost(key, pins[key], text))
    for leaf in leaves:
        _connect_rest(leaf, spines, links)
    live = {f"{leaf.name}:{port.name}": None for leaf in leaves for port in _up(leaf)}
    pins.clear()
    pins.update({key: f"{links[key].spine.name}:{links[key].spine_port.name}" for key in live})
    return [links[key] for key in live]


def _connect_rest(leaf: Draft, spines: Sequence[Draft], links: dict[str, Uplink]) -> None:
    uplinks = _up(leaf)
    share = len(uplinks) // len(spines)
    for i, port in enumerate(uplinks):
        key = f"{leaf.name}:{port.name}"
        if key in links:
            continue
        spine = spines[min(i // share, len(spines) - 1)]
        spine_port = spine.peek(DOWN, port.speed)
        if spine_port is None:
            raise SpinePortsError(len(uplinks), i, port.speed)
        links[key] = _take(leaf, port, spine, spine_port)


def _take(leaf: Draft, port: Port, spine: Draft, spine_port: Port) -> Uplink:
    link = f"{leaf.name}:{port.name}--{spine.name}:{spine_port.name}"
    leaf.used[port.name] = link
    spine.used[spine_port.name] = link
    return Uplink(leaf, port, spine, spine_port)


def _up(leaf: Draft) -> tuple[Port, ...]:
    return tuple(port for (zone, _), ports in leaf.ports.zones.items() if zone == UP for port in ports)


def _speed(leaves: Sequence[Draft]) -> int:
    return max((port.speed for leaf in leaves for port in _up(leaf)), default=0)
