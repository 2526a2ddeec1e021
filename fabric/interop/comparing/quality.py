"""Faults of the map in itself: a port with two cables, a row twice, a cable from a device to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.comparing.finding import QUALITY, Finding, plural

if TYPE_CHECKING:
    from fabric.interop.cable_map import Cable


def find(cables: list[Cable]) -> list[Finding]:
    """Return the faults found."""
    at: dict[tuple[str, str], list[Cable]] = {}
    for cable in cables:
        for place in cable.places:
            at.setdefault(place, []).append(cable)
    twice, shared = {}, []
    for place, there in at.items():
        if len({cable.places for cable in there}) < len(there):
            first = there[0]
            twice[first.places] = f"{first}: lines {_lines(there)}"
        elif len(there) > 1:
            shared.append(f"{' '.join(place)}: lines {_lines(there)}")
    loops = [f"line {cable.line}: {cable}" for cable in cables if cable.a.device == cable.b.device]
    found = []
    if twice:
        found.append(Finding(QUALITY, f"{plural(len(twice), 'cable')} listed more than once", len(twice), _rows(twice)))
    if shared:
        text = f"{plural(len(shared), 'port')} of the map hold more than one cable"
        found.append(Finding(QUALITY, text, len(shared), tuple(sorted(shared))))
    if loops:
        text = f"{plural(len(loops), 'cable')} from a device to itself"
        found.append(Finding(QUALITY, text, len(loops), tuple(loops)))
    return found


def _rows(twice: dict[frozenset[tuple[str, str]], str]) -> tuple[str, ...]:
    return tuple(twice.values())


def _lines(cables: list[Cable]) -> str:
    return ", ".join(str(cable.line) for cable in cables)
