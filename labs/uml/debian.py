"""Debian as the source of the lab's parts: its mirror, its keyring, a private apt state for other releases."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from collections.abc import Sequence

RELEASE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SOURCES = Path("/etc/apt")


def mirror() -> str:
    """Return the Debian mirror that this machine already uses, or KVFABRIC_DEBIAN_MIRROR.

    Raises CouldNotRunError when neither names one.
    """
    given = os.environ.get("KVFABRIC_DEBIAN_MIRROR")
    if given:
        return given
    files = [*sorted((_SOURCES / "sources.list.d").glob("debian*.sources")), _SOURCES / "sources.list"]
    for path in files:
        if path.is_file() and (found := mirror_in(path.read_text())):
            return found
    raise CouldNotRunError("no Debian mirror found in the apt sources; set KVFABRIC_DEBIAN_MIRROR to one")


def mirror_in(text: str) -> str:
    """Return the first Debian archive URI of a deb822 or one-line apt source, or an empty string."""
    pattern = r"^(?:URIs:|deb(?:\s+\[[^\]]*\])?)\s+(\S*?/debian/?)(?:\s|$)"
    match = re.search(pattern, text, re.MULTILINE)
    return match.group(1) if match else ""


def need_root_and_apt() -> None:
    """Raise CouldNotRunError unless this is root on a machine with apt (the parts are made with its tools)."""
    if os.geteuid() != 0:
        raise CouldNotRunError("`kvfabric lab build` installs packages and makes a Debian root: run it as root")
    if not shutil.which("apt-get"):
        raise CouldNotRunError("the lab's kernel and root are made with apt, dpkg and mmdebstrap: no apt-get here")


def install(packages: list[str]) -> None:
    """Install the host packages that are not there yet."""
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *packages]
    known = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    missing = [name for name in packages if f"installed {name}" not in known.splitlines()]
    if not missing:
        return
    command = [
        "apt-get",
        "-o",
        "DPkg::Lock::Timeout=300",
        "install",
        "-y",
        "--no-install-recommends",
        *missing,
    ]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        raise CouldNotRunError(f"apt-get install {' '.join(missing)} failed: {done.stderr.strip()[-600:]}")


class PrivateApt:
    """apt on another suite without touching the host's sources: all of its state is under one folder."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        (folder / "lists" / "partial").mkdir(parents=True)
        (folder / "cache" / "archives" / "partial").mkdir(parents=True)
        line = f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n"
        (folder / "sources.list").write_text(line)
        self._options = [
            *("-o", f"Dir::Etc::sourcelist={folder}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null"),
            *("-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"),
            *("-o", "APT::Sandbox::User=root"),
        ]
        self._run("apt-get", "update")

    def _run(self, tool: str, *arguments: str) -> str:
        command = [tool, *self._options, *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CouldNotRunError(f"{tool} {' '.join(arguments)} failed: {done.stderr.strip()[-600:]}")
        return done.stdout

    def newest(self, pattern: str) -> tuple[str, str]:
        """Return (package, version) of the package with the highest number in its name matching a regex."""
        names = [line.split()[0] for line in self._run("apt-cache", "search", "--names-only", pattern).splitlines()]
        if not names:
            raise CouldNotRunError(f"no package like {pattern} at the Debian mirror")
        name = max(names, key=lambda value: [int(part) for part in re.findall(r"\d+", value)])
        version = re.search(r"^Version: (\S+)", self._run("apt-cache", "show", name), re.MULTILINE)
        return name, version.group(1) if version else "unknown"

    def unpack(self, package: str, into: Path) -> None:
        """Download a package and unpack its files under a folder."""
        self._run("apt-get", "download", package)
        archive = next(self.folder.glob(f"{package}_*.deb"))
        subprocess.run(["dpkg", "-x", str(archive), str(into)], check=True)
        archive.unlink()

    def unpack_missing(self, packages: Sequence[str], root: Path, into: Path) -> list[str]:
        """Unpack packages, and what they need that a Debian root does not have yet; returns the package files' names.

        No maintainer script runs: this is for programs that need none.
        """
        status = ("-o", f"Dir::State::status={root}/var/lib/dpkg/status", "-o", "Debug::NoLocking=true")
        self._run("apt-get", *status, "install", "-y", "--download-only", "--no-install-recommends", *packages)
        archives = sorted((self.folder / "cache" / "archives").glob("*.deb"))
        for archive in archives:
            subprocess.run(["dpkg", "-x", str(archive), str(into)], check=True)
            archive.unlink()
        return [archive.name for archive in archives]
