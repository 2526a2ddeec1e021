"""Run a session case: store and workers on the inside, clients on the outside, an event in the middle."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.connections.controller import boot, bundle
from validators.session.client import Request, SessionSeen
from validators.session.judge import CaseSeen
from validators.session.wire import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType


class Part:
    """A store, worker or client process somewhere; `first` is its first line of output."""

    def __init__(self, prefix: Sequence[str], python: str, module: str, arguments: list[str]) -> None:
        """Start it; raises CouldNotRunError when it does not start."""
        command = boot(prefix, python, module, arguments)
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert self.process.stdin is not None
            self.process.stdin.write(bundle())
            self.process.stdin.flush()
        except OSError as error:
            raise CouldNotRunError(f"{module}: {error}") from error
        self.name = module

    def first(self) -> str:
        """Wait for the first line of output; raises CouldNotRunError when the process ends without one."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode().strip()
        if not line:
            assert self.process.stderr is not None
            words = self.process.stderr.read().decode(errors="replace").strip().splitlines()
            raise CouldNotRunError(f"{self.name}: {words[-1] if words else 'ended without a word'}")
        return line

    def kill(self) -> None:
        """End it without warning, as a crash does."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it and let go of its pipes."""
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Service:
    """The streaming service: one store and several workers that share the private end of the VIP."""

    def __init__(
        self,
        prefix: Sequence[str],
        host: str,
        port: int,
        *,
        workers: int = 2,
        store_port: int = 9400,
        python: str = "python3",
    ) -> None:
        """Start store and workers at `host`, which must be an address of the kernel there."""
        self.workers: list[Part] = []
        self.store = Part(prefix, python, "session.store", [host, str(store_port)])
        try:
            self.store.first()
            for _ in range(workers):
                worker = Part(prefix, python, "session.worker", [host, str(port), host, str(store_port)])
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
    client: Sequence[str],
    event: Callable[[], None],
    facts: Callable[[str, str], dict[str, Any]],
    after_s: float = 0.5,
    must_break: bool = True,
    may_break: bool = True,
    within_ms: float = 0.0,
    python: str = "python3",
) -> CaseSeen:
    """Run all requests at once from `client`, let `event` happen `after_s` after they began, collect what was seen.

    `facts(session, token)` asks the store; it runs where the store can be reached.
    """
    parts = [Part(client, python, "session.client", [json.dumps(asdict(request))]) for request in requests]
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
