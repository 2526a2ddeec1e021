"""What a device has open, kept once for all back-ends: nothing left open means nothing left registered."""

from __future__ import annotations

from typing import Protocol


class _Closable(Protocol):
    def close(self) -> None:
        """Free it; safe to call twice."""


class TrackedDevice:
    """Base of a device: remembers its regions and connections until they are closed."""

    def __init__(self) -> None:
        self.regions_open: set[_Closable] = set()
        self.connections_open: set[_Closable] = set()

    def open_objects(self) -> int:
        """Regions and connections still open."""
        return len(self.regions_open) + len(self.connections_open)

    def close(self) -> None:
        """Close connections before regions: a queue pair may still use memory."""
        for thing in (*self.connections_open, *self.regions_open):
            thing.close()
