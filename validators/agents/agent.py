"""The one interface of all agents, and the way a program's answer becomes data."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from fabric.problem import CouldNotRunError
from validators.agents.package import command, stdin_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
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
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    try:
        row = json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        said = done.stderr.decode(errors="replace").strip()[-600:]
        raise CouldNotRunError(f"{agent.name}: the probe gave no row (exit {done.code}): {said}") from None
    if not isinstance(row, dict):
        raise CouldNotRunError(f"{agent.name}: the probe's row is not an object")
    return row


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


@dataclass(frozen=True, slots=True)
class SshAgent:
    """A real host through the system's ssh: its configuration, keys and jump hosts apply; never asks for a password."""

    name: str
    target: str
    python: str = "python3"
    options: tuple[str, ...] = ()

    def execute(self, argv: Sequence[str], stdin: bytes, timeout_s: float) -> Finished:
        """Run there. ssh itself answers 255 when it could not connect."""
        if not shutil.which("ssh"):
            raise CouldNotRunError("ssh is not installed here")
        options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", *self.options]
        done = _subprocess(["ssh", *options, "--", self.target, shlex.join(argv)], stdin, timeout_s, self.name)
        if done.code == 255:
            raise CouldNotRunError(f"ssh to {self.target}: {done.stderr.decode(errors='replace').strip()[-300:]}")
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


def _subprocess(argv: Sequence[str], stdin: bytes, timeout_s: float, name: str) -> Finished:
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise CouldNotRunError(f"{name}: not done within {timeout_s:g} s") from error
    except FileNotFoundError as error:
        raise CouldNotRunError(f"{name}: {error.filename} is not there") from error
    return Finished(done.returncode, done.stdout, done.stderr)
