"""Where running labs are kept: one folder each, removed by its supervisor, or by whoever finds it dead.

A lab is alive exactly while its supervisor holds a lock on `alive`; a lock cannot outlive its process, so nothing here
trusts a process number. Of a lab that died by itself a note is kept, `NAME.died`, until somebody has been told.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.files import replace_file
from fabric.problem import CouldNotRunError, InputError, Problem
from fabric.strict_json import loads
from labs.model import LAB_NAME, LAB_NAME_WORDS, Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

# a Unix socket's path holds 107 bytes, and the folder is part of it
_LONGEST_PATH = 90
_UNDO_S = 300
_DIED, _GONE = ".died", ".gone-"


def state_root() -> Path:
    """Return $KVFABRIC_LAB_STATE, or /run/kvfabric for root, or a folder of the user's own."""
    given = os.environ.get("KVFABRIC_LAB_STATE")
    if given:
        return Path(given).absolute()
    if os.geteuid() == 0:
        return Path("/run/kvfabric")
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or home) / "kvfabric"


@contextlib.contextmanager
def _locked_root() -> Iterator[Path]:
    root = state_root()
    root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield root
    finally:
        os.close(handle)


def is_alive(folder: Path) -> bool:
    """Whether the supervisor of this folder is running."""
    try:
        handle = os.open(folder / "alive", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        # shared, so that two who ask at once do not take each other for the supervisor
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _sweep(root: Path) -> None:
    """Remove what labs left behind whose supervisor died, and note it."""
    for path in [path for path in root.iterdir() if path.is_dir() and not is_alive(path)]:
        _undo(path)
        shutil.rmtree(path, ignore_errors=True)
        if not path.name.startswith(_GONE):
            note_death(path, "its supervisor was killed")


def remove(folder: Path) -> None:
    """Remove a lab's folder: at once for those who look, in its own time on disk."""
    _undo(folder)
    with _locked_root() as root, contextlib.suppress(FileNotFoundError):
        gone = folder.rename(root / f"{_GONE}{folder.name}-{os.getpid()}")
        shutil.rmtree(gone, ignore_errors=True)


def _undo(folder: Path) -> None:
    """Run what the lab's engine left word of: what it made on this host outlives every process of ours."""
    if command := facts_of(folder).get("undo"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=_UNDO_S)


def note_death(folder: Path, why: str) -> None:
    """Keep, beside a lab's folder, why it died."""
    replace_file(folder.with_name(folder.name + _DIED), why)


def deaths(name: str = "") -> dict[str, str]:
    """Return name -> why of the labs that died by themselves (of one of them), once: what is told is forgotten.

    Whatever they left behind is removed by then.
    """
    if not state_root().is_dir():
        return {}
    with _locked_root() as root:
        _sweep(root)
        notes = [path for path in sorted(root.glob(f"*{_DIED}")) if name in {"", path.name.removesuffix(_DIED)}]
        told = {path.name.removesuffix(_DIED): path.read_text() for path in notes}
        for path in notes:
            path.unlink()
    return told


def require_free(name: str) -> None:
    """Raise InputError when a name is not usable or a lab of this name is running."""
    if not LAB_NAME.fullmatch(name):
        raise InputError([Problem("lab.name", f"lab {name}", LAB_NAME_WORDS, fix="choose another --name")])
    if is_alive(state_root() / name):
        fix = f"`kvfabric lab down --name {name}`, or another --name"
        raise InputError([Problem("lab.running", f"lab {name}", "a lab of this name is running", fix=fix)])


def create(name: str) -> tuple[Path, int]:
    """Make a new lab's folder; returns it and the held lock on `alive`, which the supervisor must inherit.

    Raises InputError as `require_free` does, CouldNotRunError when the folder's name would be too long for a socket.
    """
    require_free(name)
    with _locked_root() as root:
        _sweep(root)
        folder = root / name
        if len(str(folder).encode()) > _LONGEST_PATH:
            raise CouldNotRunError(f"{folder} is too long for a socket's path: set KVFABRIC_LAB_STATE to a shorter one")
        if folder.exists():
            require_free(name)  # somebody was faster
        root.joinpath(name + _DIED).unlink(missing_ok=True)
        folder.mkdir(mode=0o700)
        handle = os.open(folder / "alive", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)  # somebody who asks whether it is alive may hold it for a moment
        (folder / "share").mkdir()
        return folder, handle


def running() -> list[Path]:
    """Return the folders of the labs that are alive."""
    root = state_root()
    folders = (
        [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(_GONE)] if root.is_dir() else []
    )
    return sorted(path for path in folders if is_alive(path))


def listed() -> list[dict[str, Any]]:
    """Return what each running lab is: lab, site, engine, number of nodes, since (Unix time), folder; JSON-ready."""
    found = []
    for folder in running():
        facts = facts_of(folder)
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            lab = Lab.from_json((folder / "share" / "lab.json").read_text())
            found.append(
                {
                    "lab": folder.name,
                    "site": lab.site,
                    "engine": facts.get("engine", "starting"),
                    "nodes": len(lab.nodes),
                    "since": facts.get("started", folder.stat().st_ctime),
                    "folder": str(folder),
                }
            )
    return found


def find(name: str = "") -> Path:
    """Return the folder of a running lab; without a name, of the one in $KVFABRIC_LAB, else of the only one.

    Raises InputError when there is none or more than one, CouldNotRunError when it has died.
    """
    name = name or os.environ.get("KVFABRIC_LAB", "")
    labs = running()
    chosen = [path for path in labs if not name or path.name == name]
    if len(chosen) == 1:
        return chosen[0]
    there = ", ".join(path.name for path in labs)
    if chosen:
        fix = "say which: --name (accept, snapshot, probe: --lab), or KVFABRIC_LAB"
        raise InputError([Problem("lab.which", "lab", f"more than one is running: {there}", fix=fix)])
    if dead := deaths(name):
        words = "\n".join(f"lab {name} is dead: {why}" for name, why in dead.items())
        raise CouldNotRunError(f"{words}\nwhat it left is removed; `kvfabric lab up SITE` starts it anew")
    subject, text = f"lab {name}".strip(), f"not running; running: {there}" if there else "no lab is running"
    raise InputError([Problem("lab.absent", subject, text, fix="`kvfabric lab up SITE`")])


def write_facts(folder: Path, **facts: Any) -> None:
    """Keep facts about a lab (engine, process, start) beside it; written whole or not at all."""
    path = folder / "facts.json"
    merged = {**facts_of(folder), **facts}
    replace_file(path, json.dumps(merged, indent=1))


def facts_of(folder: Path) -> dict[str, Any]:
    """Return the facts kept beside a lab; nothing where they are not there, or damaged (a disk that was full)."""
    try:
        found = loads((folder / "facts.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
