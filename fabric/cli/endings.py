"""How the tool ends when it is told to, or when nobody reads it any more: what it began is ended in order."""

from __future__ import annotations

import select
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class PipeBrokenError(Exception):
    """A BrokenPipeError under another name: click would take it, and exit with 1."""


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
