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
from validators.session.wire import Line

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


class Service:
    """The streaming service: one store and several workers that share the private end of the VIP."""

    def __init__(
        self,
        host: Host,
        address: str,
        port: int,
        *,
        workers: int = 2,
        store_port: int = 9400,
    ) -> None:
        """Start store and workers on a host at `address`, which must be one of its kernel's."""
        self.workers: list[Part] = []
        self.store = Part(host, "session.store", [address, str(store_port)])
        try:
            self.store.first()
            for _ in range(workers):
                worker = Part(host, "session.worker", [address, str(port), address, str(store_port)])
                self.workers.append(worker)
                worker.first()
        except CouldNotRunError:
            self.close()
            raise

    def close(self) -> None:
        """Stop everything."""
        for part in (*self.workers, self.store):
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
    event: Callable[[], None],
    facts: Callable[[str, str], dict[str, Any]],
    after_s: float = 0.5,
    must_break: bool = True,
    may_break: bool = True,
    within_ms: float = 0.0,
) -> CaseSeen:
    """Run all requests at once from `client`, let `event` happen `after_s` after they began, collect what was seen.

    `facts(session, token)` asks the store; it runs where the store can be reached.
    """
    parts = [Part(client, "session.client", [json.dumps(asdict(request))]) for request in requests]
    try:
        time.sleep(after_s)
        event()
        sessions = [SessionSeen(**json.loads(part.first())) for part in parts]
    finally:
        for part in parts:
            part.close()
    store = {session.token: facts(session.session, session.token) for session in sessions}
    return CaseSeen(name, sessions, store, must_break, may_break, within_ms)


def ask_store(host: str, port: int, session: str, token: str) -> dict[str, Any]:
    """Return what the store knows of a token; raises OSError when it cannot be reached from here."""
    line = Line.to(host, port, 5.0)
    try:
        line.send({"op": "facts", "session": session, "token": token})
        return line.receive()
    finally:
        line.close()
