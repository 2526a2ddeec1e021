"""The lab's cache: artefacts that take minutes to make, kept by version and configuration, made atomically."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SAY_EVERY_S = 20


def say(text: str) -> None:
    """Print one line of progress on stderr."""
    sys.stderr.write(f"lab: {text}\n")
    sys.stderr.flush()


# where root's builds are, for everybody on this machine to boot (FHS 5.5)
_OF_ALL = Path("/var/cache/kvfabric")


def cache_dir() -> Path:
    """Return where builds go: $XDG_CACHE_HOME/kvfabric, else /var/cache/kvfabric for root and ~/.cache/kvfabric."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "kvfabric"
    return _OF_ALL if os.geteuid() == 0 else Path.home() / ".cache" / "kvfabric"


def digest(text: str) -> str:
    """Return a short hash of a configuration; comments and blank lines do not count."""
    lines = [line.strip() for line in text.splitlines()]
    kept = "\n".join(line for line in lines if line and not line.startswith("#"))
    return hashlib.sha256(kept.encode()).hexdigest()[:12]


def newest(pattern: str) -> Path | None:
    """Return the cached folder with the highest version among those that match a glob, or nothing.

    What root built is everybody's; a user's own goes before it, and $XDG_CACHE_HOME before all.
    """
    for place in (cache_dir(),) if os.environ.get("XDG_CACHE_HOME") else (cache_dir(), _OF_ALL):
        if found := sorted(place.glob(pattern), key=lambda path: _version_key(path.name)):
            return found[-1]
    return None


def _version_key(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """Yield an empty folder in the cache, removed at the end; one builder of a kind at a time (a lock beside it).

    What a builder that was killed left behind is removed by the next one.
    """
    root = cache_dir()
    root.mkdir(parents=True, exist_ok=True)
    with (root / f".{kind}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stale in root.glob(f".building-{kind}-*"):
            shutil.rmtree(stale, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=f".building-{kind}-", dir=root))
        work.chmod(0o755)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def publish(folder: Path, name: str) -> Path:
    """Move a finished folder from a scratch folder into the cache by one rename: it is there whole or not at all."""
    final = cache_dir() / name
    if final.exists():
        final.rename(folder.with_name("replaced"))
    folder.rename(final)
    return final


def run_logged(command: Sequence[str], log: Path, cwd: Path | None = None, lines: int = 0) -> None:
    """Run a build step with its output in a log; raise with the log's tail when it fails.

    With `lines`, about how many lines it prints in all, it says now and then how far it is.
    """
    with log.open("ab") as stream, subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
    ) as process:  # fmt: skip
        try:
            _follow(process, log, lines)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        tail = "\n    ".join(log.read_text(errors="replace").splitlines()[-12:])
        raise CouldNotRunError(f"`{' '.join(command[:6])}` failed (exit {process.returncode}):\n    {tail}")


def _follow(process: subprocess.Popen[bytes], log: Path, lines: int) -> None:
    started, before = time.monotonic(), log.read_bytes().count(b"\n")
    while True:
        try:
            process.wait(_SAY_EVERY_S if lines else None)
        except subprocess.TimeoutExpired:
            share = min(99, 100 * (log.read_bytes().count(b"\n") - before) // lines)
            say(f"{share} % after {time.monotonic() - started:.0f} s")
        else:
            return
