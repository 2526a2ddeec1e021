"""The journal of a run: one JSON line per finished case, on the disk before anybody hears of it.

A run that is killed at any moment goes on with what the journal holds: a line is either complete (it ends with a
newline) or it was being written when the machine stopped, and then its case had not finished.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from fabric.problem import InputError, Problem
from fabric.strict_json import loads
from validators.journal_records import Record, RunInfo

if TYPE_CHECKING:
    from pathlib import Path

NAME = "journal.jsonl"
_DAMAGED = "this file is written by kvfabric only: take the run from a copy, or start a new one"


class JsonLines:
    """An append-only file of JSON lines, locked by one process, synced line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            problem = Problem(
                "journal.busy", path.name, "another run is writing this file", "wait for it, or end it", str(path)
            )
            raise InputError([problem]) from None

    def read(self) -> list[dict[str, Any]]:
        """Return the complete lines and cut off a torn last one. Raises InputError for a line that is not ours."""
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            self._file.truncate(len(whole))
            os.fsync(self._file.fileno())
        return parse_lines(whole, self.path)

    def append(self, entry: dict[str, Any]) -> None:
        """Write one line and wait until the disk has it."""
        self._file.write(json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file, which also gives the lock back."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def parse_lines(data: bytes, path: Path) -> list[dict[str, Any]]:
    """Parse complete JSON lines. Raises InputError naming the line that is not one."""
    entries: list[dict[str, Any]] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            entry, text = loads(line), "this line is not a journal entry"
        except ValueError as error:
            entry, text = None, f"this line is not a journal entry: {error}"
        if not isinstance(entry, dict):
            raise InputError([Problem("journal.damaged", path.name, text, _DAMAGED, str(path), number)])
        entries.append(entry)
    return entries


class Journal:
    """The cases of a run that have finished, on disk. Use `start` or `resume`."""

    def __init__(self, lines: JsonLines, info: RunInfo, finished: dict[str, Record]) -> None:
        self._lines = lines
        self.info = info
        self.finished = finished

    @classmethod
    def start(cls, folder: Path, info: RunInfo) -> Journal:
        """Begin a new journal in an empty run folder. Raises InputError when there already is one."""
        require_no_run(folder)
        lines = JsonLines(folder / NAME)
        lines.append({"event": "run", **info.to_dict()})
        return cls(lines, info, {})

    @classmethod
    def resume(cls, folder: Path, info: RunInfo) -> Journal:
        """Go on with the journal in `folder`; a folder without one starts anew.

        Raises InputError when that run had another plan, catalog or engine: its results would not be comparable.
        """
        path = folder / NAME
        lines = JsonLines(path)
        entries = lines.read()
        if not entries:
            lines.append({"event": "run", **info.to_dict()})
            return cls(lines, info, {})
        before, records = read_entries(entries, path)
        problems = [
            Problem(
                "journal.other-run",
                folder.name,
                f"the run was made with another {what}",
                "start a new run without --resume",
                str(path),
                1,
            )
            for what in ("plan", "catalog", "engine", "seed")
            if getattr(before, what) != getattr(info, what)
        ]
        if problems:
            lines.close()
            raise InputError(problems)
        return cls(lines, before, {record.case: record for record in records})

    def finish(self, record: Record) -> None:
        """Remember a finished case; when this returns, a power cut cannot lose it."""
        if record.case in self.finished:
            message = f"case {record.case} finished twice"
            raise ValueError(message)
        self._lines.append({"event": "finished", **record.to_dict()})
        self.finished[record.case] = record

    def end(self, at: str) -> None:
        """Write that the run has ended in order, at this time (UTC, ISO 8601): a journal without it was interrupted."""
        self._lines.append({"event": "end", "at": at})

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


def require_no_run(folder: Path) -> None:
    """Raise InputError when a folder already holds a run."""
    if (path := folder / NAME).exists():
        text, fix = "this folder already holds a run", "use --resume, or another --name or --out"
        raise InputError([Problem("journal.exists", folder.name, text, fix, str(path))])


def read_journal(folder: Path) -> tuple[RunInfo, list[Record]]:
    """Read a run, also one that is still running or was killed. Raises InputError when there is none."""
    path = folder / NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        fix = "give a folder that `kvfabric accept` wrote"
        raise InputError(
            [Problem("journal.missing", str(folder), f"no run here: {error.strerror}", fix, str(path))]
        ) from None
    entries = parse_lines(data[: data.rfind(b"\n") + 1], path)
    info, records = read_entries(entries, path)
    return info, list({record.case: record for record in records}.values())


def read_entries(entries: list[dict[str, Any]], path: Path) -> tuple[RunInfo, list[Record]]:
    """Return the run and its finished cases; without an end, the run's `finished` is empty.

    Raises InputError with every line that cannot be one.
    """
    if not entries or entries[0].get("event") != "run":
        text = "the journal has no first line"
        raise InputError([Problem("journal.damaged", path.parent.name, text, "start a new run", str(path), 1)])
    problems: list[Problem] = []
    records: list[Record] = []
    info = None
    for number, entry in enumerate(entries, 1):
        try:
            if number == 1:
                info = RunInfo.from_dict(entry)
            elif entry.get("event") == "finished":
                records.append(Record.from_dict(entry))
            elif entry.get("event") == "end" and info is not None:
                info = RunInfo.from_dict(info.to_dict() | {"finished": entry["at"]})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"this line lacks something, or it is of another kind: {error}"
            problems.append(Problem("journal.damaged", path.name, text, _DAMAGED, str(path), number))
    if problems or info is None:
        raise InputError(problems)
    return info, records
