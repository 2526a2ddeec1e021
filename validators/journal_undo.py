"""How to take back what a disruptive check did: written down before the deed, replayed backwards after it.

An undo is data (a device and a shell command that may run twice), so that the next start can take back what a killed
run left behind.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError, InputError, Problem
from validators.journal import NAME as JOURNAL
from validators.journal import JsonLines, parse_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from validators.devices.answers import Devices

NAME = "undo.jsonl"


@dataclass(frozen=True, slots=True)
class Undo:
    """One deed to take back: running `command` on `device` twice must do no harm. `text` says what it restores."""

    number: int
    device: str
    command: str
    text: str


class UndoLog:
    """The deeds of a run that are not yet taken back."""

    def __init__(self, path: Path, devices: Devices) -> None:
        self._lines = JsonLines(path)
        self._devices = devices
        self._pending, last = _undone(self._lines.read(), path)
        self._next = 1 + last

    @property
    def pending(self) -> tuple[Undo, ...]:
        """What would be taken back now, oldest first."""
        return tuple(self._pending)

    def push(self, device: str, command: str, text: str) -> Undo:
        """Write down how to take back a deed. Call it before the deed."""
        undo = Undo(self._next, device, command, text)
        self._lines.append({"push": undo.number, "device": device, "command": command, "text": text})
        self._next += 1
        self._pending.append(undo)
        return undo

    @contextmanager
    def before(self, device: str, command: str, text: str) -> Iterator[Undo]:
        """Write the undo down, let the body do its deed, and take the deed back at the end whatever happens."""
        undo = self.push(device, command, text)
        try:
            yield undo
        finally:
            failed = self._revert(undo)
        if failed:
            raise CouldNotRunError(failed)

    def settle(self) -> None:
        """Say that all pending deeds have been taken back by who did them: nothing is left to do."""
        for undo in self._pending:
            self._lines.append({"done": undo.number})
        self._pending.clear()

    def revert_all(self) -> list[str]:
        """Take everything back, newest first. Returns what could not be taken back, in words; that stays pending."""
        return [failure for undo in reversed(self.pending) if (failure := self._revert(undo))]

    def _revert(self, undo: Undo) -> str:
        if undo not in self._pending:
            return ""
        answer = self._devices.run(undo.device, undo.command)
        if not answer.ok:
            return f"{undo.device}: could not {undo.text} with `{undo.command}`: {answer.error}"
        self._lines.append({"done": undo.number})
        self._pending.remove(undo)
        return ""

    def close(self) -> None:
        """Close the file; pending undos stay in it."""
        self._lines.close()


def has_pending(path: Path) -> bool:
    """Whether an undo file still holds deeds that were not taken back. Raises InputError for a damaged one."""
    data = path.read_bytes() if path.exists() else b""
    return bool(_undone(parse_lines(data[: data.rfind(b"\n") + 1], path), path)[0])


def _undone(entries: list[dict[str, Any]], path: Path) -> tuple[list[Undo], int]:
    """Return the deeds that were not taken back, oldest first, and the last number given.

    Raises InputError with every line that is no entry: which deeds were done is not to be guessed.
    """
    undos: dict[int, Undo] = {}
    last, problems = 0, []
    for line, entry in enumerate(entries, 1):
        number = entry.get("push", entry.get("done"))
        words = [entry.get(name) for name in ("device", "command", "text")]
        if type(number) is not int or ("push" in entry and not all(isinstance(word, str) for word in words)):
            text = "this line says neither what was done nor that it was taken back"
            fix = "undo by hand what the run did, see the lines around it; then remove the file"
            problems.append(Problem("undo.damaged", path.name, text, fix, str(path), line))
        elif "push" in entry:
            undos[number] = Undo(number, entry["device"], entry["command"], entry["text"])
            last = max(last, number)
        else:
            undos.pop(number, None)
    if problems:
        raise InputError(problems)
    return list(undos.values()), last


def replay(runs: Path, devices: Devices) -> list[str]:
    """Take back what earlier runs on the same engine left behind, newest run first. Returns what was, in words.

    Raises CouldNotRunError when something cannot be: nobody should measure a network that is still broken on purpose.
    """
    taken: list[str] = []
    for path in sorted(runs.glob(f"*/{NAME}"), reverse=True):
        if not has_pending(path) or _engine(path.parent) not in {"", devices.name}:
            continue
        log = UndoLog(path, devices)
        pending = log.pending
        failed = log.revert_all()
        log.close()
        if failed:
            message = "an earlier run left the network changed, and it cannot be put back: " + "; ".join(failed)
            raise CouldNotRunError(message)
        taken += [f"{undo.device}: {undo.text}" for undo in reversed(pending)]
    return taken


def _engine(folder: Path) -> str:
    """The engine of the run in a folder, empty when nobody knows: what was done in one lab is not undone in another."""
    path = folder / JOURNAL
    first = path.read_bytes().partition(b"\n") if path.is_file() else (b"", b"", b"")
    entries = parse_lines(first[0], path) if first[1] else []
    return str(entries[0].get("engine", "")) if entries else ""
