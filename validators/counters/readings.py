"""One reading of one counter, a set of them, and the difference of two sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAUSE, PAUSE_US, DROPS, ERRORS, ECN_MARKED, WRED_DROPS, PACKETS, BYTES = (
    "pause frames", "pause microseconds", "drops", "errors", "ECN marked", "WRED drops", "packets", "bytes",
)  # fmt: skip
PAUSE_ENDS = "pauses ended"
"""Changes from paused to not paused, which some ASICs count where others count the time."""
NAKS, RETRANSMISSIONS, CNPS = "NAKs", "retransmissions", "CNPs"
STORMS, STORM_DROPS = "watchdog storms", "watchdog drops"


class MissingCounterError(Exception):
    """A counter that should exist was not in the output."""


@dataclass(frozen=True, slots=True)
class Key:
    """What is counted where: `port` is the interface, `direction` `rx` or `tx`, `priority` -1 when it has none."""

    port: str
    what: str
    direction: str = ""
    priority: int = -1

    def __str__(self) -> str:
        priority = f" priority {self.priority}" if self.priority >= 0 else ""
        return f"{self.port} {self.direction + ' ' if self.direction else ''}{self.what}{priority}"


@dataclass(frozen=True, slots=True)
class Readings:
    """Counters of one device at one moment. A counter printed as N/A is not in it."""

    device: str
    values: dict[Key, int] = field(default_factory=dict)

    def rows(self) -> list[list[Any]]:
        """Return JSON-ready rows: port, what, direction, priority, value."""
        return [[key.port, key.what, key.direction, key.priority, value] for key, value in self.values.items()]

    @staticmethod
    def from_rows(device: str, rows: Iterable[Sequence[Any]]) -> Readings:
        """Read what `rows` wrote."""
        return Readings(device, {Key(*row[:4]): int(row[4]) for row in rows})

    def delta(self, after: Readings, keys: Iterable[Key]) -> dict[Key, int]:
        """Return how much each of `keys` grew.

        Raises MissingCounterError naming every key that either reading lacks, and those that ran backwards (the
        device or its counters were restarted in between, so nothing can be said).
        """
        found: dict[Key, int] = {}
        wrong: list[str] = []
        for key in keys:
            if key not in self.values or key not in after.values:
                wrong.append(f"{self.device}: no counter {key}")
            elif after.values[key] < self.values[key]:
                wrong.append(f"{self.device}: {key} went from {self.values[key]} to {after.values[key]}")
            else:
                found[key] = after.values[key] - self.values[key]
        if wrong:
            raise MissingCounterError("; ".join(wrong))
        return found


def merged(device: str, parts: Iterable[dict[Key, int]]) -> Readings:
    """Return one set from several commands' counters."""
    values: dict[Key, int] = {}
    for part in parts:
        values |= part
    return Readings(device, values)
