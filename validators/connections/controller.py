"""The controller's side of an agent: start it anywhere a program of ours can run, and talk JSON with it."""

from __future__ import annotations

import json
import queue
import time
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.connections.arrays import packed, unpacked
from validators.connections.programs import CommandHost

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from validators.connections.programs import Host


class AgentProcess:
    """One agent, started by a command such as `ip netns exec NAME`, `ssh HOST` or nothing at all."""

    def __init__(
        self, name: str, prefix: Sequence[str] = (), *, python: str = "python3", host: Host | None = None
    ) -> None:
        """Start it behind a command, or on a `host`; raises CouldNotRunError when it does not answer."""
        self.name = name
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._number = 0
        try:
            self._pipe = (host or CommandHost(prefix, python)).start("connections.agent", None, self._lines.put)
        except OSError as error:
            raise CouldNotRunError(f"agent {name}: {error}") from error
        try:
            self.facts: dict[str, Any] = self.call("hello", timeout_s=30)
        except BaseException:
            self.close()
            raise

    def call(self, do: str, timeout_s: float = 60.0, **args: Any) -> Any:
        """Run one command and return its result; raises CouldNotRunError for an error, a silent or a dead agent."""
        self.begin(do, **args)
        return self.finish(timeout_s)

    def begin(self, do: str, **args: Any) -> None:
        """Send a command without waiting, so that two agents can work at the same time."""
        self._number += 1
        self._write((json.dumps({"id": self._number, "do": do, "args": packed(args)}) + "\n").encode())

    def finish(self, timeout_s: float = 60.0) -> Any:
        """Wait for the answer to the last `begin`."""
        end = time.monotonic() + timeout_s
        while (reply := self._reply(end, timeout_s)) is None:
            pass  # a login shell greets on standard output
        if not reply["ok"]:
            raise CouldNotRunError(f"agent {self.name}: {reply['error']}")
        return unpacked(reply["result"])

    def _reply(self, end: float, timeout_s: float) -> dict[str, Any] | None:
        """Return the next line as an answer, None when it is none."""
        try:
            line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            raise CouldNotRunError(f"agent {self.name}: no answer within {timeout_s:g} s") from None
        if not line:
            raise self._ended()
        try:
            reply = json.loads(line)
        except ValueError:
            return None
        return reply if isinstance(reply, dict) and "ok" in reply else None

    def _ended(self) -> CouldNotRunError:
        said = self._pipe.last_words()
        hint = " (it needs Python 3 with numpy there; --python names another one)" if "numpy" in said else ""
        return CouldNotRunError(f"agent {self.name}: ended: {said}{hint}")

    def close(self) -> None:
        """End the agent: it leaves when its stdin closes; killed if it does not within 5 s."""
        self._pipe.close()

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        try:
            self._pipe.write(data)
        except BrokenPipeError:
            raise self._ended() from None
