"""The controller's side of an agent: start it anywhere a command can be run, send it its own code, talk JSON.

The agent's modules travel as a zip archive in front of the first command, so a host needs Python and numpy only.
"""

from __future__ import annotations

import contextlib
import io
import json
import queue
import shlex
import subprocess
import threading
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.connections.arrays import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_ROOT = Path(__file__).parents[1]
_PARTS = ("__init__.py", "connections/*.py", "failover/*.py", "session/*.py")
_BOOT = (
    "import sys,tempfile\n"
    "f=tempfile.NamedTemporaryFile(suffix='.zip')\n"
    "f.write(sys.stdin.buffer.read(%d)); f.flush()\n"
    "sys.path.insert(0,f.name)\n"
    "from validators.%s import main\n"
    "main(*%r)\n"
)


@cache
def bundle() -> bytes:
    """Return the agent's modules as a zip archive; the same bytes for the same code."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for pattern in _PARTS:
            for path in sorted(_ROOT.glob(pattern)):
                name = f"validators/{path.relative_to(_ROOT)}"
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def boot(prefix: Sequence[str], python: str, module: str = "connections.agent", *arguments: list[str]) -> list[str]:
    """Return the command that takes the bundle on stdin and runs `main` of one of its modules."""
    code = _BOOT % (len(bundle()), module, arguments)
    if prefix and prefix[0] == "ssh":
        # ssh joins its words with blanks and has the far shell split them again
        return [*prefix, python, "-u", "-c", shlex.quote(code)]
    return [*prefix, python, "-u", "-c", code]


class AgentProcess:
    """One agent, started by a command such as `ip netns exec NAME`, `ssh HOST` or nothing at all."""

    def __init__(self, name: str, prefix: Sequence[str] = (), *, python: str = "python3") -> None:
        """Start `prefix + python` and check that it answers; raises CouldNotRunError when it does not."""
        self.name = name
        try:
            self._process = subprocess.Popen(
                boot(prefix, python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            raise CouldNotRunError(f"agent {name}: {error}") from error
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._number = 0
        self._errors: list[bytes] = []
        for stream, take in ((self._process.stdout, self._lines.put), (self._process.stderr, self._errors.append)):
            threading.Thread(target=_drain, args=(stream, take), daemon=True).start()
        self._write(bundle())
        self.facts: dict[str, Any] = self.call("hello", timeout_s=30)

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
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise CouldNotRunError(f"agent {self.name}: no answer within {timeout_s:g} s") from None
        if not line:
            raise CouldNotRunError(f"agent {self.name}: ended: {self._last_words()}")
        reply = json.loads(line)
        if not reply["ok"]:
            raise CouldNotRunError(f"agent {self.name}: {reply['error']}")
        return unpacked(reply["result"])

    def close(self) -> None:
        """End the agent: it leaves when its stdin closes; killed if it does not within 5 s."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._process.wait(timeout=5)
            raise CouldNotRunError(f"agent {self.name}: ended: {self._last_words()}") from None

    def _last_words(self) -> str:
        text = b"".join(self._errors).decode(errors="replace").strip().splitlines()
        return text[-1] if text else f"exit code {self._process.poll()}"


def _drain(stream: Any, take: Any) -> None:
    for line in stream:
        take(line)
    take(b"")
