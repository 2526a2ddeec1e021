"""FRR's own parser, `vtysh -C`: unknown words and numbers out of range in frr.conf. Needs no daemon and no rights."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from fabric.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

NAME = "vtysh"
FILES = ("frr.conf",)

_LINE = re.compile(r"^line (\d+): (.*)$")
_TIMEOUT_S = 60


def available() -> str | None:
    """Why vtysh cannot be asked, or None."""
    return None if shutil.which("vtysh") else "vtysh is not installed (apt-get install frr)"


def validate(folder: Path, device: str) -> list[Problem]:
    """Return each line of a device's frr.conf that FRR's parser refuses."""
    path = folder / FILES[0]
    if not path.is_file():
        return []
    done = subprocess.run(
        ["vtysh", "-C", "-f", str(path)], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
    )
    found = []
    for line in (done.stdout + done.stderr).splitlines():
        match = _LINE.match(line.strip())
        if match:
            found.append(Problem("outside.vtysh", device, match[2].strip(), file=str(path), line=int(match[1])))
        elif line.strip():
            found.append(Problem("outside.vtysh", device, line.strip(), file=str(path)))
    if done.returncode and not found:
        found.append(Problem("outside.vtysh", device, f"vtysh ended with {done.returncode}", file=str(path)))
    return found
