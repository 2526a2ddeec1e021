"""How the tool ends when it is told to, or when nobody reads it any more: what it began is ended in order.

A reader that leaves (`| head`) ends nothing and changes no exit code: the work goes on to its end, unread. Only what
passes on the output of a program in a lab, which may have no end, stops then.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer


class PipeBrokenError(Exception):
    """A BrokenPipeError under another name: click would take it, and exit with 1."""


class _MayBeUnread(io.FileIO):
    """An open file whose reader may leave: what is written from then on goes to the null device."""

    lost: type[OSError] = BrokenPipeError

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except self.lost:
            silence(self)
            return memoryview(data).nbytes


class _MayBeLost(_MayBeUnread):
    """Standard error, on a full disk too: what nobody can be told changes no exit code."""

    lost = OSError


def outlive_readers() -> None:
    """Make standard output and error streams whose reader may leave; what is no file (a test's) stays as it is."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        buffer = getattr(stream, "buffer", None)
        raw = getattr(buffer, "raw", buffer)  # no buffer lies between with PYTHONUNBUFFERED
        if type(raw) is not io.FileIO:
            continue
        stream.flush()
        kind = _MayBeLost if name == "stderr" else _MayBeUnread
        lasting = kind(raw.fileno(), "w", closefd=False)
        setattr(sys, name, io.TextIOWrapper(
            lasting if raw is buffer else io.BufferedWriter(lasting),
            stream.encoding, stream.errors, "\n", stream.line_buffering, stream.write_through,
        ))  # fmt: skip


def silence(*streams: io.IOBase | TextIO) -> None:
    """Give the numbers of these streams to the null device: Python must not try to flush again at exit."""
    for stream in streams:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


@contextmanager
def broken_pipes_kept() -> Iterator[None]:
    """Raise PipeBrokenError for BrokenPipeError."""
    try:
        yield
    except BrokenPipeError as error:
        raise PipeBrokenError(str(error)) from error


def readers_left() -> bool:
    """Whether whoever read our standard output or error has closed it."""
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)  # what is asked for is told anyway: errors
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


@contextmanager
def ended_as_interrupted(ended: list[signal.Signals]) -> Iterator[None]:
    """Make SIGTERM and SIGHUP behave like Ctrl-C: deeds are taken back, programs elsewhere end, reports are written.

    Notes in `ended` what came. A second one changes nothing: what is being taken back is taken back to its end.
    """

    def interrupt(number: int, _frame: object) -> None:
        ended.append(signal.Signals(number))
        if len(ended) == 1:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield  # whoever runs us there handles signals
        return
    # what is ignored stays so: `nohup`
    before = {n: now for n in (signal.SIGTERM, signal.SIGHUP) if (now := signal.getsignal(n)) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
