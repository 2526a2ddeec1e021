"""Answers as files: a folder per device, a text file per question. A run or a snapshot writes it, and so can people.

`<device>/<question>.txt` is the first sample, `<question>.2.txt` the second; `<question>.error.txt` and
`<question>.2.error.txt` say why there is no answer. A snapshot or a run's folder has this tree under `raw/devices` or
`devices`, or is the tree itself.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.files import replace_file
from fabric.problem import InputError, Problem
from fabric.strict_json import loads
from validators.devices.answers import Answer, Ask
from validators.journal import NAME as JOURNAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from validators.devices.answers import Devices
    from validators.report.redact import Redactor

DEVICES = "devices"
# what the answers were taken from: whether its ports were real decides what can be judged
ENGINE = "engine.json"
SNAPSHOT = "snapshot.json"


class StoredDevices:
    """An engine that answers from files and runs nothing."""

    name = "stored"

    def __init__(self, folder: Path, site: str = "") -> None:
        """Find the answers in a folder. Raises InputError when there are none, or when they are of another site."""
        facts = _facts_of(folder)
        other = str(facts.get("site", ""))
        # the digest of the plan that the answers were asked by, empty where nobody says
        self.plan = str(facts.get("plan", ""))
        if site and other and other != site:
            text = f"holds the answers of site {other}, not of {site}"
            fix = f"name a snapshot or run of {site}, or accept {other}"
            raise InputError([Problem("snapshot.other-site", str(folder), text, fix, str(folder))])
        trees = (folder / "raw" / DEVICES, folder / DEVICES, folder)
        self.root = next((tree for tree in trees if tree.is_dir()), folder)
        if not self.root.is_dir() or not any(self.root.iterdir()):
            fix = "give a folder that `kvfabric snapshot` or `kvfabric accept` wrote"
            raise InputError(
                [Problem("snapshot.missing", str(folder), "there are no stored answers here", fix, str(folder))]
            )
        facts = _engine(self.root.parent / ENGINE)
        # answers that people put together themselves come from real devices unless the folder says otherwise
        self.physical = bool(facts.get("physical", True))
        said = facts.get("unproven", [])
        self.unproven: Sequence[str] = [str(name) for name in said] if isinstance(said, list) else []
        samples = [int(m[1]) for path in self.root.glob("*/*.txt") if (m := _SAMPLE.search(path.name))]
        self.rounds: int | None = max(samples, default=1)

    def gather(self, asks: Iterable[Ask], sample: int = 0) -> dict[Ask, Answer]:
        """Read the files; a sample that was not taken is the first one, said again."""
        return {ask: self._read(ask, sample) for ask in asks}

    def _read(self, ask: Ask, sample: int) -> Answer:
        if sample and (found := self._sample(ask, sample)):
            return found
        return replace(self._sample(ask, 0) or Answer(error="not in the stored answers"), again=bool(sample))

    def _sample(self, ask: Ask, sample: int) -> Answer | None:
        answer, error = _file_names(ask.question, sample)
        for name in (answer, f"{ask.question}.json", error):
            path = self.root / ask.device / name
            if path.is_file() and (name.endswith(".txt") or not sample):
                text = path.read_text(encoding="utf-8", errors="replace")
                return Answer(error=text.strip() or "the device gave no reason") if name == error else Answer(text)
        return None

    def run(self, device: str, command: str, timeout_s: float = 30.0) -> Answer:
        """Say that nothing can be run."""
        del command, timeout_s
        return Answer(error=f"{device} is a folder of files: nothing can be run")

    def close(self) -> None:
        """Nothing is open."""


class Recorder:
    """Passes questions on to another engine and writes every answer down, without secrets."""

    def __init__(self, inner: Devices, folder: Path, redactor: Redactor) -> None:
        self.inner, self.root, self.redactor = inner, folder / DEVICES, redactor
        self.name, self.physical, self.rounds = inner.name, inner.physical, inner.rounds
        self.unproven = inner.unproven
        self._noted = False

    def _note_engine(self) -> None:
        """Write whom the answers are of, before the first: a folder that is refused meanwhile stays as it is."""
        self.root.mkdir(parents=True, exist_ok=True)
        facts = {"engine": self.name, "physical": self.physical, "unproven": list(self.unproven)}
        replace_file(self.root.parent / ENGINE, json.dumps(facts))
        self._noted = True

    def gather(self, asks: Iterable[Ask], sample: int = 0) -> dict[Ask, Answer]:
        """Ask, write, return."""
        answers = self.inner.gather(asks, sample)
        if not self._noted:
            self._note_engine()
        for ask, answer in answers.items():
            folder = self.root / ask.device
            folder.mkdir(parents=True, exist_ok=True)
            good, bad = _file_names(ask.question, sample)
            name, old = (good, bad) if answer.ok else (bad, good)
            replace_file(folder / name, self.redactor.text(answer.text if answer.ok else answer.error))
            # what was said before is not said any more
            (folder / old).unlink(missing_ok=True)
        return answers

    def run(self, device: str, command: str, timeout_s: float = 30.0) -> Answer:
        """Pass on."""
        return self.inner.run(device, command, timeout_s)

    def close(self) -> None:
        """Pass on."""
        self.inner.close()


@contextmanager
def replaced_answers(folder: Path) -> Iterator[Path]:
    """Give a folder to write answers to, and put them in the place of those in `folder` when all went well.

    Raises InputError for the folder of a run, whose answers are its own.
    """
    if (folder / JOURNAL).exists():
        text = "is the folder of a run, which keeps the answers that it judged"
        raise InputError([Problem("snapshot.run", str(folder), text, "name another folder", str(folder))])
    there = folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder, prefix=".snapshot-"))
    try:
        yield new
        # from here to the end a reader finds no snapshot, never half of two
        (folder / SNAPSHOT).unlink(missing_ok=True)
        shutil.rmtree(folder / DEVICES, ignore_errors=True)
        for name in (DEVICES, ENGINE, SNAPSHOT):
            (new / name).replace(folder / name)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        if not there and not any(folder.iterdir()):
            folder.rmdir()


_SAMPLE = re.compile(r"\.(\d+)(\.error)?\.txt$")


def _file_names(question: str, sample: int) -> tuple[str, str]:
    """Return the names of the file of an answer and of the reason why there is none, of a sample from 0."""
    name = f"{question}.{sample + 1}" if sample else question
    return f"{name}.txt", f"{name}.error.txt"


def _facts_of(folder: Path) -> dict[str, Any]:
    """What a snapshot or the journal of a run says of itself; nothing when people put the answers there themselves."""
    for path in (folder / SNAPSHOT, folder / JOURNAL):
        try:
            with path.open("rb") as file:
                data = loads(file.read() if path.name == SNAPSHOT else file.readline())
            if isinstance(data["site"], str):
                return dict(data)
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def _engine(path: Path) -> dict[str, Any]:
    """What is written of the engine that asked; nothing where nobody wrote it."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}
