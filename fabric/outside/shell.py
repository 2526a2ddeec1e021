"""A POSIX shell's parser over the rendered scripts: `sh -n`, in dash where it is installed, which has no bashisms."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from fabric.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shell"
FILES = ("*.sh",)

_LINE = re.compile(r"^.*?: (?:line )?(\d+): (.*)$")
_TIMEOUT_S = 60


def available() -> str | None:
    """Why the shell cannot be asked, or None."""
    return None if _shell() else "there is no sh"


def _shell() -> str | None:
    return shutil.which("dash") or shutil.which("sh")


def validate(folder: Path, device: str) -> list[Problem]:
    """Return what the shell says about each script of a device."""
    return [problem for path in sorted(folder.glob(FILES[0])) for problem in _parse(path, device)]


def _parse(path: Path, device: str) -> list[Problem]:
    done = subprocess.run(
        [_shell() or "sh", "-n", str(path)], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    if not done.returncode and not done.stderr:
        return []
    match = _LINE.match(done.stderr.strip())
    text, line = (match[2], int(match[1])) if match else (done.stderr.strip() or f"exit {done.returncode}", 0)
    return [Problem("outside.shell", device, text, file=str(path), line=line)]
