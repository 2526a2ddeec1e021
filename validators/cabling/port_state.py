"""Port state, speed and MTU from what devices print: `ip -j link`, SONiC's status tables, sysfs.

Speeds are line rates in Gb/s, 0 when the device does not say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fabric.strict_json import loads
from validators.devices.answers import UnreadableError


@dataclass(frozen=True, slots=True)
class PortState:
    """A port as its device sees it. `up` is None when unknown, `vrf` the kernel's master, `changes` carrier changes."""

    up: bool | None
    speed: int = 0
    mtu: int = 0
    vrf: str = ""
    fec: str = ""
    changes: int = -1


def parse_links(text: str) -> dict[str, PortState]:
    """Read `ip -j link show`. Raises UnreadableError."""
    try:
        items = loads(text)
    except ValueError as error:
        message = f"`ip -j link` did not print JSON ({error})"
        raise UnreadableError(message) from None
    if not isinstance(items, list):
        message = "`ip -j link` did not print a list"
        raise UnreadableError(message)
    return {str(item["ifname"]): _link(item) for item in items if isinstance(item, dict) and item.get("ifname")}


def _link(item: dict[str, Any]) -> PortState:
    flags = set(item.get("flags", ()))
    up = "UP" in flags and "LOWER_UP" in flags and item.get("operstate") != "DOWN"
    return PortState(up, 0, int(item.get("mtu", 0)), str(item.get("master", "")))


def parse_speeds(text: str) -> dict[str, PortState]:
    """Read `show interfaces status` of SONiC, `show interface status` of its sonic-cli, or sysfs lines.

    Those are `name speed state changes`. Raises UnreadableError.
    """
    lines = text.splitlines()
    if titles := next((line for line in lines if re.match(r"\s*Name\s+Description\s.*\bOper\b", line)), ""):
        return _cli_table(lines, titles)
    header = next((i for i, line in enumerate(lines) if re.match(r"\s*-+(\s+-+)+\s*$", line)), -1)
    if header > 0 and "Oper" in lines[header - 1]:
        return _status_table(lines, header)
    ports = {}
    for line in lines:
        match = re.match(
            r"(\S+) (-?\d*) ?(up|down|unknown|lowerlayerdown|dormant|notpresent|testing) (\d*)$", line.strip()
        )
        if match:
            megabits = int(match[2]) if match[2] not in {"", "-"} else 0
            up = None if match[3] == "unknown" else match[3] == "up"
            ports[match[1]] = PortState(up, max(megabits, 0) // 1000, changes=int(match[4] or -1))
    if not ports:
        message = f"neither `show interfaces status` nor sysfs lines: {text.strip()[:60]!r}"
        raise UnreadableError(message)
    return ports


def _cli_table(lines: list[str], titles: str) -> dict[str, PortState]:
    """Rows end in one word a column, and a description may be several: so columns are counted from the right.

    A port goes by both of its names. Speeds are in Mb/s, or `100GB`.
    """
    columns = titles.replace("Alternate Name", "Alternate").split()[2:]
    ports: dict[str, PortState] = {}
    for line in lines:
        cells = line.split()
        if len(cells) < len(columns) + 1 or line.strip() == titles.strip() or set(line.strip()) == {"-"}:
            continue
        row = dict(zip(columns, cells[-len(columns) :], strict=True))
        if row["Oper"] not in {"up", "down"}:
            continue
        speed = re.fullmatch(r"(\d+)(GB?)?", row.get("Speed", ""))
        gigabits = 0 if not speed else int(speed[1]) if speed[2] else int(speed[1]) // 1000
        mtu = row.get("MTU", "")
        state = PortState(row["Oper"] == "up", gigabits, int(mtu) if mtu.isdigit() else 0)
        ports |= dict.fromkeys({cells[0], row.get("Alternate", cells[0])}, state)
    if not ports:
        message = "`show interface status` has no rows"
        raise UnreadableError(message)
    return ports


def _status_table(lines: list[str], header: int) -> dict[str, PortState]:
    starts = [match.start() for match in re.finditer(r"-+", lines[header])]
    spans = list(zip(starts, [*starts[1:], 10_000], strict=True))
    titles = [lines[header - 1][a:b].strip() for a, b in spans]
    ports = {}
    for line in lines[header + 1 :]:
        # right-aligned columns may begin left of their dashes, so cells are split by two spaces
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) < len(titles) - 2:
            continue
        row = dict(zip(titles, cells, strict=False))
        speed = re.match(r"(\d+)([GM])", row.get("Speed", ""))
        gigabits = 0 if not speed else int(speed[1]) if speed[2] == "G" else int(speed[1]) // 1000
        mtu = row.get("MTU", "")
        ports[row.get("Interface", "")] = PortState(
            row.get("Oper") == "up", gigabits, int(mtu) if mtu.isdigit() else 0, "", row.get("FEC", "")
        )
    return ports
