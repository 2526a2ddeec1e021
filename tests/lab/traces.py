"""What a lab has on this machine: its processes, namespaces, mounts, sockets and files, read from the kernel itself."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

_KINDS = ("net", "mnt", "uts", "ipc", "pid")


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_bytes().decode(errors="replace")
    return ""


def _stat(pid: int) -> tuple[int, str]:
    """Return (parent, start time); a process number may be used again, with another start."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return (int(fields[1]), fields[19]) if len(fields) > 19 and fields[0] != "Z" else (0, "")


def processes() -> list[int]:
    """Return every process of this machine."""
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _below(ancestor: int) -> list[int]:
    parents = {pid: _stat(pid)[0] for pid in processes()}
    found, wave = [ancestor], [ancestor]
    while wave:
        wave = [pid for pid, parent in parents.items() if parent in wave]
        found += wave
    return found


def _namespaces(pid: int) -> set[str]:
    found = set()
    for kind in _KINDS:
        with contextlib.suppress(OSError):
            found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


def works_in(pid: int, root: Path) -> bool:
    """Whether a process has its working folder in `root`, as a VM has it in its lab's."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(root)
    return False


def mentioning(root: Path) -> list[str]:
    """Return processes, mounts, sockets and files that speak of a lab's state folder; the folder itself may stay."""
    mark = str(root)
    me = {os.getpid(), os.getppid()}
    found = [
        f"process {pid}: {_text(Path(f'/proc/{pid}/cmdline')).replace(chr(0), ' ')[:120]}"
        for pid in processes()
        if pid not in me and (mark in _text(Path(f"/proc/{pid}/cmdline")) or works_in(pid, root))
    ]
    mounts = _text(Path("/proc/self/mountinfo")).replace("\\040", " ").splitlines()
    found += [f"mount {line}" for line in mounts if mark in line]
    found += [f"socket {line}" for line in _text(Path("/proc/net/unix")).splitlines() if mark in line]
    # unlike rglob, walk does not mind that a folder goes away under it
    found += [f"file {folder}/{name}" for folder, folders, files in os.walk(root) for name in [*folders, *files]]
    return found


@dataclass(frozen=True)
class Footprint:
    """A running lab's processes (number and start) and the namespaces that only it has."""

    processes: frozenset[tuple[int, str]]
    namespaces: frozenset[str]

    @staticmethod
    def of(supervisor: int) -> Footprint:
        """Take it of a supervisor and all below it."""
        pids = _below(supervisor)
        foreign = _namespaces(os.getpid())
        spaces = {space for pid in pids for space in _namespaces(pid)} - foreign
        return Footprint(frozenset((pid, _stat(pid)[1]) for pid in pids if _stat(pid)[1]), frozenset(spaces))

    def left(self) -> list[str]:
        """Return what is still there."""
        found = [f"process {pid}" for pid, start in self.processes if _stat(pid)[1] == start]
        if self.namespaces:
            found += [f"{space} of {pid}" for pid in processes() for space in _namespaces(pid) & self.namespaces]
        return found


def wait_gone(root: Path, footprint: Footprint | None = None, timeout_s: float = 60) -> list[str]:
    """Wait until nothing is left; returns what still is at the end."""
    deadline = time.monotonic() + timeout_s
    while True:
        left = mentioning(root) + (footprint.left() if footprint else [])
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)
