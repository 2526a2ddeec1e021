"""Where a program of ours can run: behind a command on this machine (`ip netns exec`, `ssh`), or in a node of a lab.

The modules travel as a zip archive, so a host needs Python and numpy only.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import shlex
import subprocess
import threading
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Take = Callable[[bytes], object]

_ROOT = Path(__file__).parents[1]
_PARTS = ("__init__.py", "connections/*.py", "failover/*.py", "session/*.py")
# a program that reads nothing would be waited for without end
_TAKES_S = 30.0
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
    """Return the modules that run elsewhere as a zip archive; the same bytes for the same code."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for pattern in _PARTS:
            for path in sorted(_ROOT.glob(pattern)):
                name = f"validators/{path.relative_to(_ROOT)}"
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


class Pipe(Protocol):
    """A running program: what it prints goes line by line to whoever started it, an empty line means that it ended."""

    def write(self, data: bytes) -> None:
        """Write to its standard input; raises BrokenPipeError when it has ended."""

    def last_words(self) -> str:
        """Return the last line that it said on standard error, or its exit code."""

    def kill(self) -> None:
        """End it without warning, as a crash does."""

    def close(self) -> None:
        """End its standard input, and it with it, within 5 s."""


class Host(Protocol):
    """A place where programs of ours run."""

    def start(self, module: str, arguments: list[str] | None, take: Take) -> Pipe:
        """Start `main` of a module below `validators`; `take` gets the lines it prints. Raises OSError."""


@dataclass(frozen=True)
class CommandHost:
    """A place reached by a command in front of its Python: nothing, `ip netns exec NAME`, `ssh HOST`."""

    prefix: Sequence[str] = ()
    python: str = "python3"

    def start(self, module: str, arguments: list[str] | None, take: Take) -> Pipe:
        """Start it and send it its code."""
        pipe = _LocalPipe(self._argv(module, () if arguments is None else (arguments,)), take)
        late = threading.Timer(_TAKES_S, pipe.kill)
        late.start()
        try:
            pipe.write(bundle())
        except BrokenPipeError:
            if not late.is_alive():
                message = f"did not take its program within {_TAKES_S:g} s: `{shlex.join(self.prefix)}` must run it"
                raise TimeoutError(message) from None
            # else what went wrong is heard when the first answer is missing
        except BaseException:
            pipe.kill()
            raise
        finally:
            late.cancel()
        return pipe

    def _argv(self, module: str, arguments: tuple[list[str], ...]) -> list[str]:
        code = _BOOT % (len(bundle()), module, arguments)
        if self.prefix and self.prefix[0] == "ssh":
            # ssh joins its words with blanks and has the far shell split them again
            code = shlex.quote(code)
        return [*self.prefix, self.python, "-u", "-c", code]


class _LocalPipe:
    def __init__(self, argv: list[str], take: Take) -> None:
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._errors: list[bytes] = []
        self._readers = [
            threading.Thread(target=_pass_lines, args=(stream, taker), daemon=True)
            for stream, taker in ((self._process.stdout, take), (self._process.stderr, self._errors.append))
        ]
        for reader in self._readers:
            reader.start()

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            self._process.wait(timeout=5)
            raise

    def last_words(self) -> str:
        self._readers[1].join(2)  # what it said may still be on its way
        text = b"".join(self._errors).decode(errors="replace").strip().splitlines()
        return text[-1] if text else f"exit code {self._process.poll()}"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()


def _pass_lines(stream: Any, take: Take) -> None:
    for line in stream:
        take(line)
    take(b"")


class LabProgram(Protocol):
    """A program in a lab's node, as `labs.client.Process` offers it."""

    def messages(self, timeout_s: float | None = None) -> Any:
        """Yield what it says, to its end."""

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""

    def write(self, data: bytes) -> None:
        """Write to its standard input."""

    def close_stdin(self) -> None:
        """End its standard input."""

    def kill(self) -> None:
        """Kill it."""


class RunningLab(Protocol):
    """What is needed of a running lab; `share` is the folder that its nodes see as /lab."""

    @property
    def share(self) -> Path:
        """The shared folder."""

    def start(self, node: str, argv: Sequence[str]) -> LabProgram:
        """Start a program in a node."""


@dataclass(frozen=True)
class LabHost:
    """A node of a running lab; the code lies in the folder that the lab shares with its nodes."""

    lab: RunningLab
    node: str

    def start(self, module: str, arguments: list[str] | None, take: Take) -> Pipe:
        """Start it."""
        archive = self.lab.share / f"probes-{hashlib.sha256(bundle()).hexdigest()[:12]}.zip"
        if not archive.exists():
            fresh = archive.with_suffix(f".{os.getpid()}")
            fresh.write_bytes(bundle())
            fresh.replace(archive)
        code = f"from validators.{module} import main; main(*{() if arguments is None else (arguments,)!r})"
        argv = ["env", f"PYTHONPATH=/lab/{archive.name}", "python3", "-u", "-c", code]
        return _LabPipe(self.lab.start(self.node, argv), take)


class _LabPipe:
    def __init__(self, process: LabProgram, take: Take) -> None:
        self._process = process
        self._errors = b""
        self._ended = threading.Event()
        threading.Thread(target=self._pump, args=(take,), daemon=True).start()

    def _pump(self, take: Take) -> None:
        rest = b""
        for message in self._process.messages():
            if message["op"] == "out" and message["fd"] == 1:
                *lines, rest = (rest + base64.b64decode(message["data"])).split(b"\n")
                for line in lines:
                    take(line + b"\n")
            elif message["op"] == "out":
                self._errors = (self._errors + base64.b64decode(message["data"]))[-2000:]
            elif "text" in message:
                self._errors += str(message["text"]).encode()
        self._ended.set()
        take(b"")

    def write(self, data: bytes) -> None:
        if self._ended.is_set():
            raise BrokenPipeError
        self._process.write(data)

    def last_words(self) -> str:
        text = self._errors.decode(errors="replace").strip().splitlines()
        return text[-1] if text else f"exit code {self._process.poll()}"

    def kill(self) -> None:
        self._process.kill()
        self._ended.wait(5)

    def close(self) -> None:
        self._process.close_stdin()
        if not self._ended.wait(5):
            self.kill()
