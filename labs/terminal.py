"""Connect a program in a lab to this terminal or to this process's pipes."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import termios
import threading
import tty
from typing import TYPE_CHECKING

from labs import wire

if TYPE_CHECKING:
    from labs.client import Process


def relay(process: Process) -> int:
    """Copy our standard input to the program and its output to ours; return its exit code."""
    threading.Thread(target=_copy_input, args=(process,), daemon=True).start()
    code = 127
    for message in process.messages():
        if message["op"] == "out":
            os.write(message["fd"], wire.unpack(message["data"]))
        elif message["op"] == "exit":
            code = int(message["rc"])
        else:
            sys.stderr.write(message.get("text", "") + "\n")
    return code if code >= 0 else 128 - code


def _copy_input(process: Process) -> None:
    while data := os.read(0, 16384):
        process.write(data)
    process.close_stdin()


def relay_terminal(process: Process) -> int:
    """The same with this terminal in raw mode, so that keys and the window's size reach the program."""
    if not os.isatty(0):
        return relay(process)

    def resized(*_: object) -> None:
        size = shutil.get_terminal_size()
        process.resize(size.lines, size.columns)

    before = termios.tcgetattr(0)
    signal.signal(signal.SIGWINCH, resized)
    resized()
    tty.setraw(0)
    try:
        return relay(process)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
