"""Watermarks as SONiC prints them: the most bytes that a buffer held since somebody cleared its watermark.

Source: sonic-utilities' watermarkstat and counterpoll. Tables are asked for, since every release has them; the JSON
that newer ones print with `--json` is read too. A cell that is N/A was never filled in and is None: it is not 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fabric.strict_json import loads
from validators.devices.answers import UnreadableError

NOT_COUNTED = "N/A"
GROUP, QUEUE = "PG", "UC"
GROUP_POLL, POOL_POLL = "PG_WATERMARK_STAT", "BUFFER_POOL_WATERMARK_STAT"
# the default, and the longest that counterpoll takes
LONGEST_MS = 60_000
_HEADING = re.compile(r"\s*(?:Ingress|Egress|Shared|Headroom) .*:")


@dataclass(frozen=True, slots=True)
class Polling:
    """How often the watermarks of a kind are fetched from the ASIC, in ms, and whether they are at all."""

    interval_ms: int = LONGEST_MS
    enabled: bool = False


def by_port(text: str, prefix: str) -> dict[tuple[str, int], int | None]:
    """Parse watermarks of priority groups (`PG`) or unicast queues (`UC`): (interface, number) -> bytes.

    A switch with several ASICs prints one table for each. A priority group that does not exist on a port is printed as
    0, as if it had never held a byte. Raises UnreadableError for what is not such a table.
    """
    title = re.compile(rf"{prefix}(\d+)")
    found: dict[tuple[str, int], int | None] = {}
    for head, *rows in _tables(text, "Port"):
        numbers = [title.fullmatch(name) for name in head[1:]]
        if not numbers or not all(numbers):
            raise UnreadableError(f"a table of {' '.join(head)}, where columns {prefix}0, {prefix}1 ... belong")
        for row in rows:
            for number, cell in zip(numbers, row[1:], strict=True):
                assert number is not None
                found[row[0], int(number[1])] = _bytes(cell, f"{row[0]} {number[0]}")
    return found


def by_pool(text: str) -> dict[str, int | None]:
    """Parse watermarks of buffer pools or of their headroom: pool -> bytes, of several ASICs the highest.

    Raises UnreadableError for what is not such a table.
    """
    found: dict[str, int | None] = {}
    for head, *rows in _tables(text, "Pool"):
        if head != ["Pool", "Bytes"]:
            raise UnreadableError(f"a table of {' '.join(head)}, where Pool and Bytes belong")
        for pool, cell in rows:
            value, known = _bytes(cell, pool), found.get(pool, 0)
            found[pool] = None if value is None or known is None else max(value, known)
    return found


def polling(text: str) -> dict[str, Polling]:
    """Parse `counterpoll show`: type -> how it is polled. A type that is not in it is not polled.

    Raises UnreadableError for what is not its table.
    """
    found: dict[str, Polling] = {}
    rows = [line.split() for line in text.splitlines()]
    start = next((n for n, row in enumerate(rows) if row[:2] == ["Type", "Interval"]), None)
    if start is None:
        raise UnreadableError(f"counterpoll show: no table headed Type and Interval in {text.strip()[:80]!r}")
    for row in rows[start + 1 :]:
        if len(row) < 2 or set(row[0]) == {"-"}:
            continue
        number = re.search(r"\d+", " ".join(row[1:-1]))
        found[row[0]] = Polling(int(number[0]) if number else LONGEST_MS, row[-1] == "enable")
    return found


def _tables(text: str, first: str) -> list[list[list[str]]]:
    """Cut what was printed into tables, each its titles and then its rows, all as wide as the titles."""
    found = _from_json(text, first) if text.lstrip().startswith("[") else _from_text(text, first)
    for head, *rows in found:
        if head[:1] != [first]:
            raise UnreadableError(f"a table that begins with {head[:1]}, where {first} belongs")
        if bad := next((row for row in rows if len(row) != len(head)), None):
            raise UnreadableError(f"{' '.join(bad)!r} has {len(bad)} cells under {len(head)} titles")
    if not any(len(table) > 1 for table in found):
        raise UnreadableError(f"no table headed {first} with rows in {text.strip()[:80]!r}")
    return found


def _from_text(text: str, first: str) -> list[list[list[str]]]:
    found: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        cells = line.split()
        if cells[:1] == [first]:
            found.append([cells])
            inside = True
        elif not cells or _HEADING.match(line):
            inside = False
        elif inside and not set(line.strip()) <= {"-", " "}:
            found[-1].append(cells)
    return found


def _from_json(text: str, first: str) -> list[list[list[str]]]:
    try:
        rows: Any = loads(text)
        if first == "Pool":
            return [[["Pool", "Bytes"], *([name, str(value)] for row in rows for name, value in row.items())]]
        return [[[*row], [str(cell) for cell in row.values()]] for row in rows]
    except (ValueError, AttributeError, TypeError) as error:
        raise UnreadableError(f"watermarks as JSON: {error} in {text.strip()[:80]!r}") from None


def _bytes(cell: str, where: str) -> int | None:
    if cell == NOT_COUNTED:
        return None
    if not cell.isdecimal():
        raise UnreadableError(f"watermark of {where}: {cell!r} is not a number of bytes")
    return int(cell)
