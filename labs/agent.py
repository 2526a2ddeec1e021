"""The agent: the one process of ours inside a lab's machine. It starts programs in nodes and runs the lab's functions.

It is process 1 of the VM (engine `uml`) or of a PID namespace (engine `native`), so it also buries orphans, and when
it ends everything in the machine ends with it. Usage: `python3 -m labs.agent FD|DEVICE`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import selectors
import signal
import struct
import subprocess
import sys
import termios
import traceback
import tty
from typing import Any

from labs import wire
from labs.native import calls
from labs.native.nodes import enter

_CHUNK = 16384
_HIGH_WATER = 1 << 20


class _Job:
    """A program or function at work for one request."""

    def __init__(self, ident: int, pid: int, outputs: dict[int, int], stdin: int | None) -> None:
        self.ident = ident
        self.pid = pid
        self.outputs = outputs
        self.stdin = stdin
        self.backlog = b""
        self.fed = 0
        self.ending = False
        self.status: int | None = None
        self.value = b""


class Agent:
    """A single-threaded loop over the control channel, the programs' pipes and their ends."""

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.selector = selectors.DefaultSelector()
        self.splitter = wire.Splitter()
        self.pending = bytearray()
        self.taken = 0
        self.jobs: dict[int, _Job] = {}
        self.running = True
        os.set_blocking(channel, False)
        wake_read, wake_write = os.pipe()
        for end in (wake_read, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(channel, selectors.EVENT_READ, self._on_channel)
        self.selector.register(wake_read, selectors.EVENT_READ, self._on_wake)

    # -- the loop

    def serve(self) -> None:
        """Serve until the other end goes away."""
        self.send({"op": "ready", "pid": os.getpid()})
        while self.running:
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.pending else 0)
            self.selector.modify(self.channel, wanted, self._on_channel)
            self.turn()

    def turn(self) -> None:
        """Serve everybody who has something for us now."""
        for key, mask in self.selector.select():
            # what was closed in this turn may have been opened again for somebody else: its old owner is not asked
            if self.selector.get_map().get(key.fileobj) is key:
                key.data(key.fileobj, mask)

    def send(self, message: wire.Message) -> None:
        """Queue a message for the other end; wait while too much is queued, which slows the programs down."""
        self.pending += wire.encode(message)
        while len(self.pending) > _HIGH_WATER:
            select.select([], [self.channel], [])
            self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            sent = os.write(self.channel, self.pending[:_CHUNK])
            del self.pending[:sent]

    def _on_channel(self, _fd: int, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            self._flush()
        if mask & selectors.EVENT_READ:
            try:
                data = os.read(self.channel, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self.running = bool(data)
            self.taken += len(data)
            if self.taken >= wire.REPORT:
                self.send({"op": "taken", "bytes": self.taken})
                self.taken = 0
            for message in self.splitter.feed(data):
                self._handle(message)

    def _on_wake(self, fd: int, _mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for job in [job for job in self.jobs.values() if job.pid == pid]:
                job.status = status
                self._finish_if_done(job)

    # -- requests

    def _handle(self, message: wire.Message) -> None:
        ident, op = message.get("id", 0), message.get("op")
        try:
            if op == "exec":
                self._exec(ident, message)
            elif op == "call":
                self._call(ident, message)
            elif ident in self.jobs:
                self._to_job(self.jobs[ident], message)
        except FileNotFoundError as error:
            self.send({"id": ident, "op": "error", "text": f"{error.filename}: {error.strerror}"})
        except PermissionError as error:
            name = error.filename or next(iter(message.get("argv") or ()), "")
            self.send({"id": ident, "op": "error", "text": f"{name or 'an empty name'}: {error.strerror}"})
        except (OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
            self.send({"id": ident, "op": "error", "text": f"{type(error).__name__}: {error}"})

    def _to_job(self, job: _Job, message: wire.Message) -> None:
        op = message["op"]
        if op == "stdin":
            job.backlog += wire.unpack(message["data"])
            self._feed(job)
        elif op == "eof":
            job.ending = True
            self._feed(job)
        elif op == "hold":
            for fd in job.outputs:
                self._forget(fd)
        elif op == "resume":
            for fd in job.outputs:
                self._forget(fd)
                self._register_output(job, fd)
        elif op == "resize" and job.stdin is not None:
            size = struct.pack("HHHH", message["rows"], message["columns"], 0, 0)
            fcntl.ioctl(job.stdin, termios.TIOCSWINSZ, size)
        elif op == "signal" and job.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, message["signal"])

    def _exec(self, ident: int, message: wire.Message) -> None:
        environment = {**os.environ, **message.get("env", {})}
        node, argv = message.get("node", ""), message["argv"]
        prepare = enter(node) if node else None
        if message.get("tty"):
            self._exec_tty(ident, argv, environment, prepare)
            return
        process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, preexec_fn=prepare,  # noqa: PLW1509  no threads here
        )  # fmt: skip
        assert process.stdin
        assert process.stdout
        assert process.stderr
        # the loop owns the descriptors and the exit status from here on
        fds = [os.dup(stream.fileno()) for stream in (process.stdin, process.stdout, process.stderr)]
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        process.returncode = 0
        self._watch(_Job(ident, process.pid, {fds[1]: 1, fds[2]: 2}, fds[0]))

    def _exec_tty(self, ident: int, argv: list[str], environment: dict[str, str], prepare: Any) -> None:
        pid, master = os.forkpty()
        if pid == 0:
            try:
                if prepare:
                    prepare()
                os.execvpe(argv[0], argv, environment)  # noqa: S606
            finally:
                os._exit(127)
        self._watch(_Job(ident, pid, {master: 1}, os.dup(master)))

    def _call(self, ident: int, message: wire.Message) -> None:
        """Run one of the lab's functions in a child: a fork is cheap, a new interpreter in a VM is not."""
        read_value, write_value = os.pipe()
        read_notes, write_notes = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child_call(message, write_value, write_notes)
        os.close(write_value)
        os.close(write_notes)
        self._watch(_Job(ident, pid, {read_value: 3, read_notes: 4}, None))

    # -- what programs print, and their ends

    def _watch(self, job: _Job) -> None:
        self.jobs[job.ident] = job
        if job.stdin is not None:
            os.set_blocking(job.stdin, False)
        for fd in job.outputs:
            self._register_output(job, fd)

    def _register_output(self, job: _Job, fd: int) -> None:
        self.selector.register(fd, selectors.EVENT_READ, lambda fd, _m: self._on_output(job, fd))

    def _forget(self, fd: int) -> None:
        if fd in self.selector.get_map():
            self.selector.unregister(fd)

    def _on_output(self, job: _Job, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except OSError:
            data = b""  # a pty says EIO when its last program has gone
        stream = job.outputs[fd]
        if not data:
            self.selector.unregister(fd)
            os.close(fd)
            del job.outputs[fd]
            self._finish_if_done(job)
        elif stream == 3:
            job.value += data
        elif stream == 4:
            self.send({"id": job.ident, "op": "note", "text": data.decode(errors="replace").rstrip("\n")})
        else:
            self.send({"id": job.ident, "op": "out", "fd": stream, "data": wire.pack(data)})

    def _feed(self, job: _Job, *_: int) -> None:
        fd = job.stdin
        if fd is None:
            job.fed, job.backlog = job.fed + len(job.backlog), b""
            self._tell_fed(job)
            return
        try:
            while job.backlog:
                written = os.write(fd, job.backlog[:_CHUNK])
                job.backlog = job.backlog[written:]
                job.fed += written
        except BlockingIOError:
            self._tell_fed(job)
            if fd not in self.selector.get_map():
                self.selector.register(fd, selectors.EVENT_WRITE, lambda _fd, _m: self._feed(job))
            return
        except OSError:
            job.fed += len(job.backlog)
            job.backlog, job.ending = b"", True  # the program does not read any more
        self._tell_fed(job)
        self._forget(fd)
        if job.ending:
            os.close(fd)
            job.stdin = None

    def _tell_fed(self, job: _Job) -> None:
        """Tell the sender how much of its input the program has been given, so that it may send more."""
        if job.fed:
            self.send({"id": job.ident, "op": "fed", "bytes": job.fed})
            job.fed = 0

    def _finish_if_done(self, job: _Job) -> None:
        """Answer when the program has ended and its output is read; a daemon that keeps the pipe does not hold it."""
        if job.status is None or self.jobs.get(job.ident) is not job:
            return
        self._drain(job)
        del self.jobs[job.ident]
        for fd in [*job.outputs, *([] if job.stdin is None else [job.stdin])]:
            self._forget(fd)
            os.close(fd)
        if job.value:
            self.send({"id": job.ident, **json.loads(job.value)})
        else:
            self.send({"id": job.ident, "op": "exit", "rc": os.waitstatus_to_exitcode(job.status)})

    def _drain(self, job: _Job) -> None:
        for fd in list(job.outputs):
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError):
                while fd in job.outputs and (data := os.read(fd, _CHUNK)):
                    if job.outputs[fd] == 3:
                        job.value += data
                    elif job.outputs[fd] != 4:
                        self.send({"id": job.ident, "op": "out", "fd": job.outputs[fd], "data": wire.pack(data)})


def _child_call(message: wire.Message, value: int, notes: int) -> None:
    """In the child: run the function, write its answer, never return."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(notes, 2)
        os.dup2(notes, 1)
        answer: dict[str, Any]
        try:
            answer = {"op": "return", "value": calls.run(message["name"], message.get("args", {}))}
        except calls.RefusedError as error:
            answer = {"op": "error", "text": str(error), "refused": True}
        except calls.CallError as error:
            answer = {"op": "error", "text": str(error)}
        except Exception:  # noqa: BLE001  the tool must hear of every bug in here
            answer = {"op": "error", "text": traceback.format_exc()}
        with os.fdopen(value, "w") as stream:
            json.dump(answer, stream)
    finally:
        os._exit(0)


def main(channel: str) -> None:
    """Serve on an inherited descriptor (a number) or on a serial line (a device path)."""
    if channel.isdigit():
        fd = int(channel)
    else:
        fd = os.open(channel, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(fd)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        # a handler, unlike SIG_IGN, is not inherited by the programs started here
        signal.signal(number, lambda *_: None)
    Agent(fd).serve()


if __name__ == "__main__":
    main(sys.argv[1])
