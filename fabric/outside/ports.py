"""SONiC's own port tables of the DS5000: what its port-configuration code made of each breakout mode.

Every PORT row of a rendered config_db.json must be the row of the mode that BREAKOUT_CFG gives its cage. MTU,
description and admin status are not that code's to decide.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from fabric.outside.places import external_data, missing
from fabric.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

NAME = "ports"
FILES = ("config_db.json",)

_HWSKU = "DS5000"
_MODES = ("1x800G", "2x400G", "4x200G", "8x100G")
_FIELDS = ("alias", "lanes", "speed", "index", "subport", "fec", "autoneg")
_CAGE_WIDTH = 8


def available() -> str | None:
    """Why the tables cannot be used, or None."""
    return missing("ds5000/oracle_PORT_1x800G.json")


@cache
def _oracle(mode: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(external_data(f"ds5000/oracle_PORT_{mode}.json").read_text())
    return found


@cache
def _platform_modes() -> dict[str, tuple[str, ...]]:
    data = json.loads(external_data("ds5000/platform.json").read_text())
    return {name: tuple(row["breakout_modes"]) for name, row in data["interfaces"].items()}


def validate(folder: Path, device: str) -> list[Problem]:
    """Return each port of a DS5000 that is not as SONiC's own code would make it."""
    path = folder / FILES[0]
    if not path.is_file():
        return []
    config = json.loads(path.read_text())
    if config.get("DEVICE_METADATA", {}).get("localhost", {}).get("hwsku") != _HWSKU:
        return []
    return [Problem("outside.ports", f"{device} {port}", text, file=str(path)) for port, text in differences(config)]


def differences(config: dict[str, Any]) -> list[tuple[str, str]]:
    """Compare PORT and BREAKOUT_CFG with the platform's; pairs of port and what is wrong."""
    found: list[tuple[str, str]] = []
    expected: dict[str, dict[str, str]] = {}
    known = _platform_modes()
    for parent, row in config.get("BREAKOUT_CFG", {}).items():
        mode = row.get("brkout_mode", "")
        if mode not in known.get(parent, ()):
            found.append((parent, f"the platform has no breakout mode '{mode}' there"))
        else:
            expected |= _ports_of(parent, mode)
    actual = config.get("PORT", {})
    for name in sorted({*expected, *actual}):
        want, got = expected.get(name), actual.get(name)
        if want is None or got is None:
            found.append((name, "is not a port of these breakout modes" if want is None else "is missing from PORT"))
            continue
        found += [
            (name, f"{field} is {got.get(field, 'not said')}, SONiC makes it {want.get(field, 'not said')}")
            for field in _FIELDS
            if want.get(field) != got.get(field)
        ]
    return found


def _ports_of(parent: str, mode: str) -> dict[str, dict[str, str]]:
    """The rows of a cage in a mode; the two small cages are the same in every table."""
    table = _oracle(mode if mode in _MODES else _MODES[0])
    first = int(parent.removeprefix("Ethernet"))
    if first >= 64 * _CAGE_WIDTH:
        return {parent: table[parent]}
    names = [f"Ethernet{first + offset}" for offset in range(_CAGE_WIDTH)]
    return {name: table[name] for name in names if name in table}
