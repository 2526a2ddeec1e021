"""Labels for both ends of every cable: an HTML page to print on sheets, and a CSV for label printers.

A label wraps around the cable: the text stands twice, so that it can be read from either side. Each end says where it
is plugged in first and where the other end goes second, at most `WIDTH` characters a line. A switch port has its NOS's
name beside ours (`E1/7/2 Eth7/5`) where both fit: that is the one that `show interfaces` prints.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.interop.cable_map import of_plan
from fabric.interop.formats._csv_text import csv_text

if TYPE_CHECKING:
    from fabric.interop.cable_map import Cable, CableEnd
    from fabric.plan import Plan

    Aliases = dict[tuple[str, str], str]

NAME = "labels"
SUMMARY = "labels for both ends of each cable: CSV for a printer, HTML for sheets"
WIDTH = 24
LINES = 5
HEADER = ("cable", "end", *(f"line{n}" for n in range(1, LINES + 1)))


@dataclass(frozen=True, slots=True)
class Label:
    """One label: the cable's number, which end (`A` or `B`) and its lines of text."""

    cable: str
    end: str
    lines: tuple[str, ...]


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `labels.csv` and `labels.html`."""
    made = labels(plan, fabrics)
    rows = ([label.cable, label.end, *label.lines, *[""] * (LINES - len(label.lines))] for label in made)
    return {"labels.csv": csv_text(HEADER, rows), "labels.html": _html(plan, made)}


def labels(plan: Plan, fabrics: tuple[str, ...]) -> list[Label]:
    """Return two labels a cable, A end then B end, in cable map order."""
    made = []
    aliases = {(s.name, p.name): p.alias for s in plan.switches.values() for p in s.ports if p.link}
    for cable in of_plan(plan, fabrics).cables:
        made.append(Label(cable.id, "A", _lines(plan, aliases, cable, cable.a, cable.b)))
        made.append(Label(cable.id, "B", _lines(plan, aliases, cable, cable.b, cable.a)))
    return made


def _lines(plan: Plan, aliases: Aliases, cable: Cable, here: CableEnd, there: CableEnd) -> tuple[str, ...]:
    length = f" {cable.length_m}m" if cable.length_m else ""
    wrapped = [*_wrapped(plan, aliases, here, ""), *_wrapped(plan, aliases, there, "> ")]
    return (*wrapped, f"#{cable.id} {cable.network} {cable.speed}G{length}"[:WIDTH])


def _wrapped(plan: Plan, aliases: Aliases, end: CableEnd, mark: str) -> list[str]:
    place = f"{mark}{_place(plan, end)}"
    lines = textwrap.wrap(f"{place} {aliases.get((end.device, end.port), '')}".rstrip(), WIDTH)
    return lines if len(lines) <= 2 else textwrap.wrap(place, WIDTH, max_lines=2, placeholder="...")


def _place(plan: Plan, end: CableEnd) -> str:
    rack = _rack(plan, end.device)
    return f"{rack}: {end.device} {end.port}" if rack else f"{end.device} {end.port}"


def _rack(plan: Plan, device: str) -> str:
    for devices in (plan.switches, plan.servers, plan.gateways):
        if device in devices:
            return str(devices[device].rack)
    return ""


def _html(plan: Plan, made: list[Label]) -> str:
    from fabric.interop.templates import environment

    return environment().get_template("interop/labels.html.j2").render(site=plan.site, labels=made)
