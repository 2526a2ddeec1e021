"""Talk to a running lab: run programs in its nodes, call its functions, copy files out. Used by the tool and by probes.

with attach("xoc-256") as lab:
    lab.run("compute-001", ["ping", "-c1", "10.1.0.3"]).check()
    server = lab.start("compute-002", ["iperf3", "-s", "-1"])
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError, InputError, Problem
from labs import state, wire
from labs.model import Lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_CHUNK = 16384
# bytes of input that a program may have been sent and not yet read
_UNREAD = 1 << 20
# answers that may wait for a paced reader before the connection is not read any further
_PACED_ANSWERS = 64


@dataclass(frozen=True, slots=True)
class Done:
    """What a program that has ended said."""

    node: str
    argv: tuple[str, ...]
    rc: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        """Its standard output as text."""
        return self.stdout.decode(errors="replace")

    @property
    def err(self) -> str:
        """Its standard error as text."""
        return self.stderr.decode(errors="replace")

    def check(self) -> Done:
        """Return itself, or raise CouldNotRunError when the program failed."""
        if self.rc:
            where = self.node or "the machine"
            said = (self.err or self.out).strip()[-600:]
            raise CouldNotRunError(f"`{' '.join(self.argv)}` in {where} failed (exit {self.rc}): {said}")
        return self


class Process:
    """A program running in a node."""

    def __init__(self, lab: Running, ident: int, node: str, argv: Sequence[str], paced: bool = False) -> None:
        self._lab = lab
        self._ident = ident
        self.node = node
        self.argv = tuple(argv)
        self._paced = paced
        self._answers: queue.SimpleQueue[wire.Message] = queue.SimpleQueue()
        self._parts: dict[int, list[bytes]] = {1: [], 2: []}
        self._rc: int | None = None
        self._unread = 0
        self._ended = False
        self._read_on = threading.Condition()

    def take(self, message: wire.Message) -> None:
        """Take an answer of the lab (called by the reading thread)."""
        op = message["op"]
        if op in {"fed", "exit", "error", "gone"}:
            with self._read_on:
                self._unread -= message.get("bytes", 0)
                self._ended |= op != "fed"
                self._read_on.notify_all()
        if op != "fed":
            self._answers.put(message)
        while op == "out" and self._paced and self._answers.qsize() > _PACED_ANSWERS:
            time.sleep(0.01)

    def messages(self, timeout_s: float | None = None) -> Iterator[wire.Message]:
        """Yield answers as they come, to the end. Raises TimeoutError when none comes for `timeout_s`."""
        while self._rc is None:
            try:
                message = self._answers.get(timeout=timeout_s)
            except queue.Empty:
                raise TimeoutError(f"{' '.join(self.argv[:3])} in {self.node or 'the machine'}") from None
            self._take(message)
            yield message

    def _take(self, message: wire.Message) -> None:
        op = message["op"]
        if op == "out":
            self._parts[message["fd"]].append(wire.unpack(message["data"]))
        elif op == "exit":
            self._rc = message["rc"]
        elif op in {"error", "gone"}:
            self._rc = 127
            self._parts[2].append(f"{message['text']}\n".encode())

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs; takes in what has been printed so far."""
        while self._rc is None and not self._answers.empty():
            self._take(self._answers.get())
        return self._rc

    def printed(self) -> str:
        """Return standard output and error so far, as text."""
        self.poll()
        return b"".join(self._parts[1] + self._parts[2]).decode(errors="replace")

    def wait_for(self, text: str, timeout_s: float = 20) -> str:
        """Wait until the program has printed `text`; returns all it printed. Raises TimeoutError, CouldNotRunError."""
        for _ in self.messages(timeout_s):
            if text in self.printed():
                return self.printed()
        if text in self.printed():
            return self.printed()
        raise CouldNotRunError(
            f"{' '.join(self.argv[:3])} in {self.node} ended without saying {text!r}: {self.printed()[-400:]}"
        )

    def wait(self, timeout_s: float | None = None) -> Done:
        """Wait for the end. Raises TimeoutError when nothing is heard for `timeout_s`; the program is killed then."""
        try:
            for _ in self.messages(timeout_s):
                pass
        except TimeoutError:
            self.kill()
            raise
        out, err = b"".join(self._parts[1]), b"".join(self._parts[2])
        return Done(self.node, self.argv, -1 if self._rc is None else self._rc, out, err)

    def write(self, data: bytes) -> None:
        """Write to its standard input; waits while it does not read."""
        for start in range(0, len(data), _CHUNK):
            part = data[start : start + _CHUNK]
            with self._read_on:
                self._read_on.wait_for(lambda: self._ended or self._unread < _UNREAD)
                self._unread += len(part)
            if self._ended:
                return
            self._lab.send({"id": self._ident, "op": "stdin", "data": wire.pack(part)})

    def close_stdin(self) -> None:
        """End its standard input."""
        self._lab.send({"id": self._ident, "op": "eof"})

    def resize(self, rows: int, columns: int) -> None:
        """Tell its terminal the new size."""
        self._lab.send({"id": self._ident, "op": "resize", "rows": rows, "columns": columns})

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to it and all that it started."""
        self._lab.send({"id": self._ident, "op": "signal", "signal": int(number)})


class Running:
    """A connection to a running lab; any number of programs and threads may use it at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        self.share = folder / "share"
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Process] = {}
        self._lock = threading.Lock()
        self._gone = ""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(folder / "control.sock"))
        except FileNotFoundError as error:
            raise CouldNotRunError(f"lab {self.name} is only just starting or ending: try again") from error
        except OSError as error:
            raise CouldNotRunError(f"lab {self.name} does not answer: {error.strerror}") from error
        threading.Thread(target=self._read, daemon=True, name=f"lab-{self.name}").start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; what it had running in the lab is killed, the lab stays."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the reading thread, which a close alone does not
        self._socket.close()

    @property
    def lab(self) -> Lab:
        """The lab's nodes, links and expectation. Raises CouldNotRunError, with the reason, when the lab has ended."""
        try:
            return Lab.from_json((self.share / "lab.json").read_text())
        except FileNotFoundError:
            raise CouldNotRunError(self._gone or f"lab {self.name} has gone") from None

    # -- programs

    def start(
        self, node: str, argv: Sequence[str], tty: bool = False, env: dict[str, str] | None = None, paced: bool = False
    ) -> Process:
        """Start a program in a node (in the machine itself when `node` is empty) and return at once.

        `paced` holds the program when nobody takes what it prints (for copying it to a pipe); else all is kept here.
        Raises CouldNotRunError for a node that is none.
        """
        if node and not self.lab.has(node):
            raise CouldNotRunError(f"lab {self.name} has no node {node}")
        message = {"op": "exec", "node": node, "argv": list(argv), "tty": tty, "env": env or {}}
        return self._request(node, argv, message, paced)

    def run(self, node: str, argv: Sequence[str], stdin: bytes = b"", timeout_s: float = 60) -> Done:
        """Run a program in a node to its end. Raises TimeoutError when it is silent for `timeout_s` seconds."""
        process = self.start(node, argv)
        if stdin:
            process.write(stdin)
        process.close_stdin()
        return process.wait(timeout_s)

    def call(self, function: str, on_note: Callable[[str], None] | None = None, **arguments: Any) -> Any:
        """Call one of the lab's functions.

        Raises InputError when what was asked for makes no sense in this lab, CouldNotRunError when it fails.
        """
        process = self._request("", [function], {"op": "call", "name": function, "args": arguments})
        for message in process.messages():
            if message["op"] == "note" and on_note:
                on_note(message["text"])
            elif message["op"] == "return":
                return message["value"]
            elif message.get("refused"):
                raise InputError([Problem("lab.refused", f"lab {self.name}", message["text"])])
            elif message["op"] in {"error", "gone"}:
                raise CouldNotRunError(message["text"])
        raise CouldNotRunError(f"lab function {function} ended without an answer")

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file out of the lab; `path` is under /lab, which tool and nodes share."""
        shutil.copyfile(self.share / path.removeprefix("/lab/"), target)

    # -- the lab itself

    def commit(self) -> None:
        """Let the lab outlive the process that started it."""
        for message in self._request("", ["commit"], {"op": "commit"}).messages(10):
            if message["op"] == "return":
                return

    def stop(self) -> None:
        """End the lab and wait until nothing is left of it."""
        with contextlib.suppress(FileNotFoundError), (self.folder / "alive").open("rb") as handle:
            self.send({"id": 0, "op": "stop"})
            _wait_released(handle.fileno())
        self.close()
        state.deaths(self.name)  # of a supervisor that was killed the folder is left

    # -- messages

    def _request(self, node: str, argv: Sequence[str], message: wire.Message, paced: bool = False) -> Process:
        ident = next(self._numbers)
        process = Process(self, ident, node, argv, paced)
        self._waiting[ident] = process
        if self._gone:
            process.take({"op": "gone", "text": self._gone})
        else:
            self.send({**message, "id": ident})
        return process

    def send(self, message: wire.Message) -> None:
        """Send a raw message; silently nothing when the lab has gone (its programs are told)."""
        with self._lock:
            try:
                self._socket.sendall(wire.encode(message))
            except OSError as error:
                self._lost(f"lab {self.name} has gone: {error.strerror}")

    def _read(self) -> None:
        splitter = wire.Splitter()
        while True:
            try:
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            if not data:
                self._lost(f"lab {self.name} has gone")
                return
            for message in splitter.feed(data):
                if message["op"] == "gone":
                    self._lost(f"lab {self.name} has gone: {message['text']}")
                elif process := self._waiting.get(message.get("id", 0)):
                    process.take(message)
                    if message["op"] in {"exit", "return", "error"}:
                        del self._waiting[message["id"]]

    def _lost(self, text: str) -> None:
        self._gone = self._gone or text
        for process in list(self._waiting.values()):
            process.take({"op": "gone", "text": self._gone})
        self._waiting.clear()


def _wait_released(handle: int, timeout_s: float = 20) -> None:
    """Wait until the supervisor has let go of its lock, that is until it has ended."""
    done = subprocess.run(
        ["flock", "--timeout", str(timeout_s), str(handle)], pass_fds=[handle], capture_output=True, check=False
    )
    if done.returncode:
        raise CouldNotRunError(f"the lab's supervisor did not end within {timeout_s:g} s")


def attach(name: str = "") -> Running:
    """Connect to a running lab; without a name, to the only one. Raises InputError."""
    return Running(state.find(name))
