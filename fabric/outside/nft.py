"""The kernel's nftables by `nft -c`: syntax, references, whether the kernel has every expression; changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from fabric.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

NAME = "nft"
FILES = ("nftables.conf",)

_LINE = re.compile(r"^(.*?):(\d+):\d+(?:-\d+)?: (Error: .*)$")
_TIMEOUT_S = 60


@cache
def available() -> str | None:
    """Why nft cannot be asked, or None: it wants rights over a network namespace, even only to check."""
    if not shutil.which("nft"):
        return "nft is not installed (apt-get install nftables)"
    try:
        done = _run(["nft", "list", "ruleset"])
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no network namespace of our own: {error}"
    return None if done.returncode == 0 else f"no network namespace of our own: {done.stderr.strip()}"


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    # an empty namespace of our own, so that nothing there now can change the answer
    inside = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    return subprocess.run([*inside, *argv], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)


def validate(folder: Path, device: str) -> list[Problem]:
    """Return what nft says about a device's nftables.conf."""
    path = folder / FILES[0]
    if not path.is_file():
        return []
    done = _run(["nft", "-c", "-f", str(path)])
    found = []
    for line in done.stderr.splitlines():
        match = _LINE.match(line)
        if match:
            found.append(Problem("outside.nft", device, match[3], file=str(path), line=int(match[2])))
    if done.returncode and not found:
        found.append(Problem("outside.nft", device, done.stderr.strip()[:400], file=str(path)))
    return found
