"""What others may hear of a run while it goes on: progress bars, logs and reports hang here, never in the checks."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from validators.results import BAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from validators.catalog import Case
    from validators.check import Stage
    from validators.journal_records import Record


class Processor(Protocol):
    """Hooks at the start and end of stages and cases. All are called from the run's own thread."""

    def stage_started(self, stage: Stage, cases: int) -> None:
        """Say that a stage begins with so many cases, those already finished included."""

    def case_started(self, case: Case) -> None:
        """Say that a case begins."""

    def case_finished(self, record: Record, *, repeated: bool) -> None:
        """Say that a case has ended; `repeated` when its result comes from the journal of an earlier start."""

    def stage_finished(self, stage: Stage, states: dict[str, int], blocked: str) -> None:
        """Say that a stage ended; `blocked` is why it did not run, else empty."""

    def note(self, text: str) -> None:
        """Say something that belongs to no case."""


_MARKS = {"pass": "✔", "fail": "✘", "error": "!", "skipped": "-", "unknown": "?"}
_COLOURS = {"pass": "32", "fail": "31", "error": "35", "skipped": "90", "unknown": "33"}


class Progress:
    """Prints stages and what did not pass; on a terminal also the case that runs now.

    Where there is no terminal, a case that takes long is a line every `every_s` seconds: silence looks like a hang. Use
    it as a context: a thread of its own prints that.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool,
        verbose: bool = False,
        every_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream, self.colour, self.verbose = stream, colour, verbose
        self.live = stream.isatty()
        self.every_s, self.clock = 1.0 if self.live else every_s, clock
        self.done = self.total = 0
        self._doing, self._since = "", 0.0
        self._lock, self._left = threading.Lock(), threading.Event()
        self._left.set()  # until it is entered
        self._pulse = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._left.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._pulse.ident:
            self._pulse.join()

    def _beat(self) -> None:
        while not self._left.wait(self.every_s):
            try:
                self.still()
            except (OSError, ValueError):  # who read us has left
                return

    def still(self) -> None:
        """Say what runs now and for how long, when it has run for a while."""
        doing, seconds = self._doing, self.clock() - self._since
        if not doing or seconds < self.every_s:
            return
        text = f"{doing}, for {seconds:.0f} s now"
        if self.live:
            self._status(text)
        else:
            self._line(f"  … {text}")

    def _begin(self, text: str) -> None:
        self._doing, self._since = text, self.clock()
        self._status(text)

    def stage_started(self, stage: Stage, cases: int) -> None:
        """Show it on a terminal: a stage is one line when it ends."""
        self.done, self.total = 0, cases
        if not (self._pulse.ident or self._left.is_set()):  # not before: a lab is started by a process without threads
            self._pulse.start()
        self._begin(f"{stage.value}: 0/{cases}, asking the devices")

    def case_started(self, case: Case) -> None:
        """Show the case on a terminal."""
        self._begin(f"{case.check.stage.value}: {self.done + 1}/{self.total}, {case.check.name} {case.subject}")

    def case_finished(self, record: Record, *, repeated: bool) -> None:
        """Print a case that did not pass, or every case when verbose."""
        self.done, self._doing = self.done + 1, ""
        result = record.result
        if not repeated and (self.verbose or result.state in BAD):
            place = f"  [{result.place}]" if result.place else ""
            self._line(f"  {self._paint(result.state.value)} {result.check} {result.subject}: {result.text}{place}")

    def stage_finished(self, stage: Stage, states: dict[str, int], blocked: str) -> None:
        """Print the stage's line."""
        self._doing = ""
        if blocked:
            self._line(f"{self._paint('skipped')} {stage.value}: {states.get('skipped', 0)} skipped: {blocked}")
            return
        worst = next((s for s in ("fail", "error", "unknown", "pass", "skipped") if states.get(s)), "skipped")
        counts = ", ".join(f"{n} {state}" for state, n in states.items() if n)
        self._line(f"{self._paint(worst)} {stage.value}: {counts or 'nothing to do'}")

    def note(self, text: str) -> None:
        """Print a line."""
        self._line(text)

    def _paint(self, state: str) -> str:
        mark = _MARKS[state]
        return f"\x1b[{_COLOURS[state]}m{mark}\x1b[0m" if self.colour else mark

    def _status(self, text: str) -> None:
        if self.live:
            self._write(f"\r\x1b[2K{text[:100]}")

    def _line(self, text: str) -> None:
        self._write(("\r\x1b[2K" if self.live else "") + text + "\n")

    def _write(self, text: str) -> None:
        with self._lock:
            self.stream.write(text)
            self.stream.flush()
