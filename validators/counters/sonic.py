"""Counters as SONiC prints them: sonic-utilities' pfcstat, pfcwd, queuestat and wredstat, and COUNTERS_DB's names.

JSON forms are taken where a command has them; `show pfc counters` and pfcwd have only tables.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from fabric.strict_json import loads
from validators.counters.readings import (
    BYTES,
    DROPS,
    ECN_MARKED,
    PACKETS,
    PAUSE,
    PAUSE_ENDS,
    PAUSE_US,
    STORM_DROPS,
    STORMS,
    WRED_DROPS,
    Key,
)
from validators.devices.answers import UnreadableError

_PFC_HEAD = re.compile(r"^\s*Port\s+(Rx|Tx)\s+PFC0\b|^\s*Flow Control frames (received|transmitted)")
_CLI_TITLES = re.compile(r"^\s*(?:Port|Interface)\s+PFC0\b")
_WAYS = {"received": "rx", "transmitted": "tx"}
_QUEUE = re.compile(r"^(?:UC|MC|ALL)(\d+)$")
_SAI_PFC = re.compile(r"^SAI_PORT_STAT_PFC_([0-7])_(?:(RX|TX)_PAUSE_DURATION_US|ON2OFF_(RX)_PKTS)$")
_SAI_PORT = "SAI_PORT_STAT_"
_UNWATCHED = "N/A"
ENDLESS = -1
"""Time of a watchdog that has none set: pfcwd prints `infinite` or `N/A`."""


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
    """Parse `show pfc counters`, or the statistics of sonic-cli: two tables, Rx and Tx.

    Cells that are N/A give no counter.
    """
    found: dict[Key, int] = {}
    direction = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _PFC_HEAD.match(line):
            direction = _WAYS[head[2]] if head[2] else head[1].lower()
            continue
        if line.startswith("Priority-based Flow Control"):  # sonic-cli: of the watchdog, by queue
            break
        cells = line.split()
        if _CLI_TITLES.match(line):
            continue
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
    """Parse `pfcwd show stats -e`; without -e, queues that never saw a storm are left out of the table."""
    rows = []
    for cells in _table(text, "QUEUE", 7):
        port, _, queue = cells[0].rpartition(":")
        detected, restored = _pair(cells[2])
        rows.append(Watchdog(port, int(queue), cells[1], detected, restored, _pair(cells[3])[1], _pair(cells[4])[1]))
    return rows


def watchdog_counters(text: str) -> dict[Key, int]:
    """Parse `pfcwd show stats -e` as counters: storms seen, and packets dropped while one lasted, per queue.

    The table has zeros for queues that nobody watches, with no status: they give no counter.
    """
    found: dict[Key, int] = {}
    for row in pfcwd_stats(text):
        if row.status == _UNWATCHED and not any((row.detected, row.restored, row.tx_dropped, row.rx_dropped)):
            continue
        found[Key(row.port, STORMS, "tx", row.queue)] = row.detected
        found[Key(row.port, STORM_DROPS, "tx", row.queue)] = row.tx_dropped
        found[Key(row.port, STORM_DROPS, "rx", row.queue)] = row.rx_dropped
    return found


def pfcwd_config(text: str) -> dict[str, tuple[str, int, int]]:
    """Parse `show pfcwd config`: port -> (action, detection ms, restoration ms); ENDLESS where no time is set."""
    found: dict[str, tuple[str, int, int]] = {}
    for cells in _table(text, "PORT", 4):
        detection, restoration = (
            ENDLESS if cell in {"infinite", "N/A"} else _number(cell, cells[0]) for cell in cells[2:4]
        )
        found[cells[0]] = (cells[1], detection, restoration)
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
    paused, or how often a pause ended: an ASIC counts one of the two (orchagent asks Mellanox for the time, Broadcom
    for the changes, Cisco for neither). The frames are taken from `show pfc counters`.
    """
    found: dict[Key, int] = {}
    blocks = [block.partition("\n") for block in re.split(r"^port ", text, flags=re.MULTILINE)[1:]]
    for name, _, body in blocks:
        port = name.strip()
        counters = _hash(port, body.strip())
        if not any(counter.startswith(_SAI_PORT) for counter in counters):
            raise UnreadableError(f"COUNTERS_DB of {port}: no counter of a port in {body.strip()[:60]!r}")
        for counter, value in counters.items():
            if match := _SAI_PFC.match(counter):
                what, way = (PAUSE_US, match[2]) if match[2] else (PAUSE_ENDS, match[3])
                found[Key(port, what, way.lower(), int(match[1]))] = _number(value, counter)
    if not blocks:
        raise UnreadableError(f"COUNTERS_DB: no port in {text[:80]!r}")
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
        data: Any = loads(text)
    except ValueError as error:
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
