"""Connect a program in a lab to this terminal or to this process's pipes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
import threading
import tty
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from labs import wire

if TYPE_CHECKING:
    from labs.client import Process


def relay(process: Process, out: int = 1, reads: bool = True) -> int:
    """Copy our standard input to the program, if it `reads`, and its output to ours or to `out`; return its exit code.

    Ctrl-C goes to the program; a second one ends this. Raises CouldNotRunError when the lab goes away.
    """
    if reads:
        threading.Thread(target=_copy_input, args=(process,), daemon=True).start()
    else:
        process.close_stdin()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *_: _interrupt(process, before))
    try:
        return _copy_output(process, {1: out, 2: 2})
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(process: Process, before: Any) -> None:
    signal.signal(signal.SIGINT, before)
    process.kill(signal.SIGINT)


def _copy_output(process: Process, to: dict[int, int]) -> int:
    code = 127
    for message in process.messages():
        op = message["op"]
        if op == "out":
            _write_all(to[message["fd"]], wire.unpack(message["data"]))
        elif op == "exit":
            code = int(message["rc"])
        elif op == "gone":
            raise CouldNotRunError(message["text"])
        else:
            sys.stderr.write(message.get("text", "") + "\n")
    return code if code >= 0 else 128 - code


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _copy_input(process: Process) -> None:
    with contextlib.suppress(OSError):  # there may be no standard input
        while data := os.read(0, 16384):
            process.write(data)
    process.close_stdin()


def relay_terminal(process: Process) -> int:
    """The same with this terminal in raw mode, so that keys and the window's size reach the program."""
    if not os.isatty(0):
        return relay(process)

    def resized(*_: object) -> None:
        size = os.get_terminal_size(0)
        process.resize(size.lines, size.columns)

    before = termios.tcgetattr(0)
    handler = signal.signal(signal.SIGWINCH, resized)
    resized()
    tty.setraw(0)
    try:
        return relay(process)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
