"""Run a session case: store and workers on the inside, clients on the outside, an event in the middle."""

from __future__ import annotations

import json
import queue
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.session.client import Request, SessionSeen
from validators.session.judge import CaseSeen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from validators.connections.programs import Host


class Part:
    """A store, worker or client process somewhere; `first` is its first line of output."""

    def __init__(self, host: Host, module: str, arguments: list[str]) -> None:
        """Start it; raises CouldNotRunError when it does not start."""
        self.name = module
        self._lines: queue.Queue[bytes] = queue.Queue()
        try:
            self._pipe = host.start(module, arguments, self._lines.put)
        except OSError as error:
            raise CouldNotRunError(f"{module}: {error}") from error

    def first(self, timeout_s: float = 60.0) -> str:
        """Wait for the first line of output; raises CouldNotRunError when there is none, or none in time."""
        try:
            line = self._lines.get(timeout=timeout_s).decode().strip()
        except queue.Empty:
            raise CouldNotRunError(f"{self.name}: said nothing within {timeout_s:g} s") from None
        if not line:
            raise CouldNotRunError(f"{self.name}: {self._pipe.last_words()}")
        return line

    def kill(self) -> None:
        """End it without warning, as a crash does."""
        self._pipe.kill()

    def close(self) -> None:
        """End it."""
        self._pipe.kill()


Seat = tuple["Host", str, int]


class Service:
    """The streaming service: one store, and several workers at each private end of the VIP."""

    def __init__(self, seats: Sequence[Seat], *, workers: int = 2, store_port: int = 9400) -> None:
        """Start the store at the first seat and `workers` at each: host, an address of its kernel, port."""
        host, address, _ = seats[0]
        self.workers: list[tuple[Seat, Part]] = []
        self._host, self._store = host, [address, str(store_port)]
        self.store = Part(host, "session.store", self._store)
        try:
            self.store.first()
            for seat in seats:
                for _ in range(workers):
                    self.hire(seat)
        except BaseException:
            self.close()
            raise

    def hire(self, seat: Seat) -> None:
        """Start one more worker at a seat."""
        host, address, port = seat
        worker = Part(host, "session.worker", [address, str(port), *self._store])
        self.workers.append((seat, worker))
        worker.first()

    def all_workers_fail(self, pause_s: float = 0.5) -> None:
        """Kill every worker of now, one after another, each when another one has taken its place."""
        for seat, worker in list(self.workers):
            self.hire(seat)
            worker.kill()
            self.workers.remove((seat, worker))
            time.sleep(pause_s)

    def facts(self, sessions: Sequence[SessionSeen]) -> dict[str, Any]:
        """Return what the store knows of each session's work, by token; raises CouldNotRunError."""
        names = [text for session in sessions for text in (session.session, session.token)]
        asked = Part(self._host, "session.facts", [*self._store, *names])
        try:
            found: dict[str, Any] = json.loads(asked.first())
        finally:
            asked.close()
        return found

    def close(self) -> None:
        """Stop everything."""
        for part in (*(worker for _, worker in self.workers), self.store):
            part.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_case(
    name: str,
    requests: Sequence[Request],
    *,
    client: Host,
    service: Service,
    event: Callable[[], None],
    after_s: float = 0.5,
    must_break: bool = True,
    may_break: bool = True,
    within_ms: float = 0.0,
) -> CaseSeen:
    """Run all requests at once from `client`; `event` happens `after_s` after all of them are being answered.

    Raises CouldNotRunError when a client or the store does not answer.
    """
    parts = [Part(client, "session.client", [json.dumps(asdict(request))]) for request in requests]
    try:
        lines = [part.first() for part in parts]
        time.sleep(after_s)
        event()
        # a client that was never answered has given up already, with what it saw as its only line
        lines = [line if line.startswith("{") else part.first() for part, line in zip(parts, lines, strict=True)]
    finally:
        for part in parts:
            part.close()
    sessions = [SessionSeen(**json.loads(line)) for line in lines]
    return CaseSeen(name, sessions, service.facts(sessions), must_break, may_break, within_ms)
