"""What is on its way to the agent: one lane a tool, served in turn, within the window of `labs.wire`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from labs import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Outbox:
    """Messages in lanes: each sends one and waits for its turn, so that a long input delays nobody else."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, deque[bytes]] = {}
        self._bytes: dict[Hashable, int] = {}
        self._current = b""
        self._underway = 0

    def put(self, lane: Hashable, message: wire.Message) -> None:
        """Queue a message."""
        line = wire.encode(message)
        self._lanes.setdefault(lane, deque()).append(line)
        self._bytes[lane] = self._bytes.get(lane, 0) + len(line)

    def waiting(self, lane: Hashable) -> int:
        """Bytes that wait in a lane."""
        return self._bytes.get(lane, 0)

    def may_send(self) -> bool:
        """Whether there is something to send and room in the window for it."""
        return self._underway < wire.WINDOW and bool(self._current or self._lanes)

    def send(self, write: Callable[[bytes], int]) -> None:
        """Send with a function that takes bytes and returns how many it took, until window or messages are used up."""
        while self.may_send():
            if not self._current:
                self._current = self._next()
            part = self._current[: wire.WINDOW - self._underway]
            sent = write(part)
            self._current = self._current[sent:]
            self._underway += sent
            if sent < len(part):
                return

    def taken(self, count: int) -> None:
        """The agent has read so many bytes more."""
        self._underway -= count

    def _next(self) -> bytes:
        lane = next(iter(self._lanes))
        lines = self._lanes.pop(lane)
        line = lines.popleft()
        self._bytes[lane] -= len(line)
        if lines:
            self._lanes[lane] = lines  # to the end of the round
        else:
            del self._bytes[lane]
        return line
