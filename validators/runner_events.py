"""What others may hear of a run while it goes on: progress bars, logs and reports hang here, never in the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
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
    """Prints stages and what did not pass; on a terminal also the case that runs now."""

    def __init__(self, stream: TextIO, *, colour: bool, verbose: bool = False) -> None:
        self.stream, self.colour, self.verbose = stream, colour, verbose
        self.live = stream.isatty()
        self.done = self.total = 0

    def stage_started(self, stage: Stage, cases: int) -> None:
        """Print nothing yet: a stage is one line when it ends."""
        self.done, self.total = 0, cases
        self._status(f"{stage.value}: 0/{cases}")

    def case_started(self, case: Case) -> None:
        """Show the case on a terminal."""
        self._status(f"{case.check.stage.value}: {self.done}/{self.total}  {case.check.name} {case.subject}")

    def case_finished(self, record: Record, *, repeated: bool) -> None:
        """Print a case that did not pass, or every case when verbose."""
        self.done += 1
        result = record.result
        state = result.state.value
        if not repeated and (self.verbose or state in {"fail", "error", "unknown"}):
            place = f"  [{result.place}]" if result.place else ""
            self._line(f"  {self._paint(state)} {result.check} {result.subject}: {result.text}{place}")

    def stage_finished(self, stage: Stage, states: dict[str, int], blocked: str) -> None:
        """Print the stage's line."""
        if blocked:
            self._line(f"{self._paint('skipped')} {stage.value}: {blocked}")
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
            self.stream.write(f"\r\x1b[2K{text[:100]}")
            self.stream.flush()

    def _line(self, text: str) -> None:
        self.stream.write(("\r\x1b[2K" if self.live else "") + text + "\n")
        self.stream.flush()
