"""Counters as SONiC prints them: sonic-utilities' pfcstat, pfcwd, queuestat and wredstat, and COUNTERS_DB's names.

JSON forms are taken where a command has them; `show pfc counters` and pfcwd have only tables.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from validators.counters.readings import DROPS, ECN_MARKED, PACKETS, PAUSE, PAUSE_US, WRED_DROPS, Key, UnreadableError

_PFC_HEAD = re.compile(r"^\s*Port\s+(Rx|Tx)\s+PFC0\b")
_QUEUE = re.compile(r"^(?:UC|MC|ALL)(\d+)$")
_SAI_PFC = re.compile(r"^SAI_PORT_STAT_PFC_([0-7])_(RX|TX)_(PKTS|PAUSE_DURATION_US)$")


@dataclass(frozen=True, slots=True)
class Watchdog:
    """State of the PFC watchdog on one queue: storms seen and ended, packets let through and dropped meanwhile."""

    port: str
    queue: int
    status: str
    detected: int
    restored: int
    tx_dropped: int
    rx_dropped: int


def pfc_counters(text: str) -> dict[Key, int]:
    """Parse `show pfc counters`: two tables, Rx and Tx. Cells that are N/A give no counter."""
    found: dict[Key, int] = {}
    direction = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _PFC_HEAD.match(line):
            direction = head[1].lower()
            continue
        cells = line.split()
        if not cells or set(line.strip()) <= {"-", " "} or line.startswith("Last cached"):
            continue
        if not direction or len(cells) != 9:
            raise UnreadableError(f"show pfc counters, line {number}: {line.strip()!r}")
        for priority, cell in enumerate(cells[1:]):
            if cell != "N/A":
                found[Key(cells[0], PAUSE, direction, priority)] = _number(cell, f"line {number}")
    if not found:
        raise UnreadableError("show pfc counters: has no table")
    return found


def pfcwd_stats(text: str) -> list[Watchdog]:
    """Parse `show pfcwd stats`. An empty table means that no queue is watched."""
    rows = []
    for cells in _table(text, "QUEUE", 7):
        port, _, queue = cells[0].rpartition(":")
        detected, restored = _pair(cells[2])
        rows.append(Watchdog(port, int(queue), cells[1], detected, restored, _pair(cells[3])[1], _pair(cells[4])[1]))
    return rows


def pfcwd_config(text: str) -> dict[str, tuple[str, int, int]]:
    """Parse `show pfcwd config`: port -> (action, detection ms, restoration ms)."""
    found: dict[str, tuple[str, int, int]] = {}
    for cells in _table(text, "PORT", 4):
        found[cells[0]] = (cells[1], _number(cells[2], cells[0]), _number(cells[3], cells[0]))
    return found


def queue_counters(text: str) -> dict[Key, int]:
    """Parse `queuestat -j` of one or all ports: packets and drops per unicast queue."""
    return _queues(text, {"totalpacket": PACKETS, "droppacket": DROPS})


def wred_counters(text: str) -> dict[Key, int]:
    """Parse `wredstat -j`: packets that WRED dropped and that were ECN marked, per queue."""
    return _queues(text, {"wreddrppacket": WRED_DROPS, "wreddroppacket": WRED_DROPS, "ecnmarkedpacket": ECN_MARKED})


def counters_db(port: str, fields: dict[str, str]) -> dict[Key, int]:
    """Read the hash of one port in COUNTERS_DB (`HGETALL COUNTERS:oid`): pause frames and durations per priority."""
    found: dict[Key, int] = {}
    for name, value in fields.items():
        if match := _SAI_PFC.match(name):
            what = PAUSE if match[3] == "PKTS" else PAUSE_US
            found[Key(port, what, match[2].lower(), int(match[1]))] = _number(value, name)
    return found


def queue_db(port: str, queue: int, fields: dict[str, str]) -> dict[Key, int]:
    """Read the hash of one queue in COUNTERS_DB: packets, drops, ECN marked, WRED drops."""
    names = {
        "SAI_QUEUE_STAT_PACKETS": PACKETS,
        "SAI_QUEUE_STAT_DROPPED_PACKETS": DROPS,
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": ECN_MARKED,
        "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS": WRED_DROPS,
    }
    return {Key(port, names[n], "tx", queue): _number(v, n) for n, v in fields.items() if n in names}


def _queues(text: str, names: dict[str, str]) -> dict[Key, int]:
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise UnreadableError("not an object of ports")
    found: dict[Key, int] = {}
    for port, queues in data.items():
        for queue, counters in queues.items() if isinstance(queues, dict) else ():
            match = _QUEUE.match(queue)
            if not match or queue.startswith("MC") or not isinstance(counters, dict):
                continue
            for name, value in counters.items():
                what = names.get(name.lower().replace("_", "").replace("packets", "packet"))
                if what and value != "N/A":
                    found[Key(port, what, "tx", int(match[1]))] = _number(str(value), f"{port} {queue} {name}")
    return found


def _table(text: str, head: str, least: int) -> list[list[str]]:
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.split()[:1] == [head]), None)
    if start is None:
        raise UnreadableError(f"no table headed {head}")
    rows = [line.split() for line in lines[start + 1 :] if line.strip() and not set(line.strip()) <= {"-", " "}]
    if bad := next((row for row in rows if len(row) < least), None):
        raise UnreadableError(f"table {head}: {' '.join(bad)!r} has fewer than {least} cells")
    return rows


def _pair(cell: str) -> tuple[int, int]:
    first, _, second = cell.partition("/")
    return _number(first, cell), _number(second, cell)


def _number(cell: str, where: str) -> int:
    try:
        return int(cell.replace(",", ""))
    except ValueError:
        raise UnreadableError(f"{where}: {cell!r} is not a number") from None
