"""The one interface of all agents, and the way a program's answer becomes data."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import threading
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fabric.problem import CouldNotRunError
from fabric.strict_json import loads
from validators.agents.package import command, stdin_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left: exit code and output."""

    code: int
    stdout: bytes
    stderr: bytes


class Agent(Protocol):
    """A place where a command can be run with bytes on standard input."""

    @property
    def name(self) -> str:
        """Name of the host in results."""

    @property
    def python(self) -> str:
        """Its Python 3 interpreter."""

    def execute(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Finished:
        """Run and wait. Raises CouldNotRunError when the place cannot be reached or the deadline passes."""


def run_program(
    agent: Agent, packages: tuple[str, ...], module: str, request: dict[str, Any], timeout_s: float
) -> dict[str, Any]:
    """Ship the packages, run `module` there with the request, return the JSON object it prints last.

    Raises CouldNotRunError when the host cannot be reached, lacks Python, or the program said nothing.
    """
    done = agent.execute(command(module, agent.python), stdin_bytes(packages, request), timeout_s)
    # a login shell may greet before and after it
    for line in reversed(done.stdout.decode(errors="replace").splitlines()):
        if (row := _row(line)) is not None:
            return row
    said = " ".join(done.stderr.decode(errors="replace").split())[-600:] or "and said nothing"
    if done.code == _NOT_FOUND:
        said += f" (the probe needs {agent.python} on the host)"
    raise CouldNotRunError(f"{agent.name}: the probe gave no row (exit {done.code}): {said}")


# what a shell says of a command that is not there
_NOT_FOUND = 127


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


@dataclass(frozen=True, slots=True)
class LocalAgent:
    """This machine, optionally inside one of its named network namespaces and with added environment variables."""

    name: str = "local"
    namespace: str = ""
    python: str = "python3"
    environment: tuple[tuple[str, str], ...] = ()

    def execute(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Finished:
        """Run here."""
        prefix = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        prefix += ["env", *(f"{key}={value}" for key, value in self.environment)] if self.environment else []
        return _subprocess([*prefix, *argv], stdin, timeout_s, self.name)


_KEYS = "this logs in with a key (a hosts file's `data: {key_file: ...}`, or an SSH agent), never with a password"


class Sessions:
    """Programs that run for us, from any thread."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    @contextmanager
    def one(self, argv: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Start a program with pipes and know of it while it runs: nobody can end the others between these two."""
        with self._lock:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            process = subprocess.Popen(argv, start_new_session=True, **pipes)  # type: ignore[call-overload]
            self._running.add(process)
        try:
            with process:
                yield process
        finally:
            with self._lock:
                self._running.discard(process)

    def end(self) -> None:
        """Kill what runs now; what takes deeds back may still begin."""
        with self._lock:
            for process in self._running:
                _kill(process)


@dataclass(frozen=True, slots=True)
class SshAgent:
    """A real host through the system's ssh: its configuration, keys and jump hosts apply; never asks for a password.

    `hint` says what to do when it cannot connect; `sessions` lets somebody end what runs.
    """

    name: str
    target: str
    python: str = "python3"
    options: tuple[str, ...] = ()
    hint: str = ""
    sessions: Sessions | None = None

    def execute(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Finished:
        """Run there. ssh itself answers 255 when it could not connect."""
        if not shutil.which("ssh"):
            raise CouldNotRunError("ssh is not installed here")
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", *self.options]
        whole = ["ssh", *options, "--", self.target, shlex.join(argv)]
        done = _subprocess(whole, stdin, timeout_s, self.name, self.sessions)
        if done.code == 255:
            said = " ".join(done.stderr.decode(errors="replace").split())[-300:] or "it said nothing"
            hints = [hint for hint in (self.hint, _KEYS if "Permission denied" in said else "") if hint]
            raise CouldNotRunError(f"ssh to {self.target}: {said}" + (f" ({'; '.join(hints)})" if hints else ""))
        return done


class NodeRunner(Protocol):
    """What the lab offers: run a program in a node and wait, and a folder that nodes see as `/lab`."""

    share: Path

    def run(self, node: str, argv: Sequence[str], stdin: bytes = b"", timeout_s: float = 60) -> Any:
        """Return something with `rc`, `stdout` and `stderr`."""


@dataclass(frozen=True, slots=True)
class LabAgent:
    """A node of a running lab; `prefix` goes before every command (a namespace inside the node)."""

    lab: NodeRunner
    name: str
    python: str = "python3"
    prefix: tuple[str, ...] = ()

    def execute(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Finished:
        """Run in the node. Standard input is a file in the shared folder: the control channel is for small things."""
        file = self.lab.share / f"stdin-{uuid.uuid4().hex}"
        file.write_bytes(stdin)
        shell = ["sh", "-c", 'exec "$@" < "$0"', f"/lab/{file.name}", *argv]
        try:
            done = self.lab.run(self.name, [*self.prefix, *shell], timeout_s=timeout_s)
        except TimeoutError as error:
            raise CouldNotRunError(f"{self.name}: not done within {timeout_s:g} s") from error
        finally:
            file.unlink()
        return Finished(done.rc, done.stdout, done.stderr)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it started (a ProxyCommand), which else would hold its output open."""
    with suppress(ProcessLookupError):  # it may have ended by itself just now
        os.killpg(process.pid, signal.SIGKILL)


def _subprocess(
    argv: Sequence[str], stdin: bytes, timeout_s: float, name: str, sessions: Sessions | None = None
) -> Finished:
    try:
        with (sessions or Sessions()).one(argv) as process:
            try:
                out, err = process.communicate(stdin, timeout=timeout_s)
            except BaseException:
                _kill(process)
                raise
    except subprocess.TimeoutExpired as error:
        raise CouldNotRunError(f"{name}: not done within {timeout_s:g} s") from error
    except FileNotFoundError as error:
        raise CouldNotRunError(f"{name}: {error.filename} is not there") from error
    return Finished(process.returncode, out, err)
