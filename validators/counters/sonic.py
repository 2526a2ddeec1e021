"""Counters as SONiC prints them: sonic-utilities' pfcstat, pfcwd, queuestat and wredstat, and COUNTERS_DB's names.

JSON forms are taken where a command has them; `show pfc counters` and pfcwd have only tables.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

from validators.counters.readings import (
    BYTES,
    DROPS,
    ECN_MARKED,
    PACKETS,
    PAUSE,
    PAUSE_US,
    STORM_DROPS,
    STORMS,
    WRED_DROPS,
    Key,
    UnreadableError,
)

_PFC_HEAD = re.compile(r"^\s*Port\s+(Rx|Tx)\s+PFC0\b")
_QUEUE = re.compile(r"^(?:UC|MC|ALL)(\d+)$")
_SAI_PFC = re.compile(r"^SAI_PORT_STAT_PFC_([0-7])_(RX|TX)_PAUSE_DURATION_US$")


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


def watchdog_counters(text: str) -> dict[Key, int]:
    """Parse `show pfcwd stats` as counters: storms seen, and packets dropped while one lasted, per queue."""
    found: dict[Key, int] = {}
    for row in pfcwd_stats(text):
        found[Key(row.port, STORMS, "tx", row.queue)] = row.detected
        found[Key(row.port, STORM_DROPS, "tx", row.queue)] = row.tx_dropped
        found[Key(row.port, STORM_DROPS, "rx", row.queue)] = row.rx_dropped
    return found


def pfcwd_config(text: str) -> dict[str, tuple[str, int, int]]:
    """Parse `show pfcwd config`: port -> (action, detection ms, restoration ms)."""
    found: dict[str, tuple[str, int, int]] = {}
    for cells in _table(text, "PORT", 4):
        found[cells[0]] = (cells[1], _number(cells[2], cells[0]), _number(cells[3], cells[0]))
    return found


def queue_counters(text: str) -> dict[Key, int]:
    """Parse `queuestat -j` of one or all ports: packets, bytes and drops per unicast queue."""
    return _queues(text, {"totalpacket": PACKETS, "totalbytes": BYTES, "droppacket": DROPS})


def wred_counters(text: str) -> dict[Key, int]:
    """Parse `wredstat -j`: packets that WRED dropped and that were ECN marked, per queue."""
    return _queues(text, {"wreddrppacket": WRED_DROPS, "wreddroppacket": WRED_DROPS, "ecnmarkedpacket": ECN_MARKED})


def counters_db(text: str) -> dict[Key, int]:
    """Parse ports in COUNTERS_DB: a line `port NAME`, then the hash as `sonic-db-cli COUNTERS_DB HGETALL` prints it.

    That is a Python dictionary, or names and values on lines of their own, by release. Gives how long each priority was
    paused; the frames are taken from `show pfc counters`.
    """
    found: dict[Key, int] = {}
    for block in re.split(r"^port ", text, flags=re.MULTILINE)[1:]:
        port, _, body = block.partition("\n")
        for name, value in _hash(port.strip(), body.strip()).items():
            if match := _SAI_PFC.match(name):
                found[Key(port.strip(), PAUSE_US, match[2].lower(), int(match[1]))] = _number(value, name)
    if not found:
        raise UnreadableError(f"COUNTERS_DB: has no pause counters in {text[:80]!r}")
    return found


def _hash(port: str, body: str) -> dict[str, str]:
    if not body.startswith("{"):
        lines = body.splitlines()
        return dict(zip(lines[::2], lines[1::2], strict=False))
    try:
        return {str(name): str(value) for name, value in ast.literal_eval(body).items()}
    except (ValueError, SyntaxError) as error:
        raise UnreadableError(f"COUNTERS_DB of {port}: {body[:60]!r} is not a hash") from error


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
