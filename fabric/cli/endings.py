"""How the tool ends when it is told to: everything that it began is ended in order."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


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
