"""The lab's kernel: User Mode Linux built once from Debian's linux-source with our options, then cached.

Debian's own user-mode-linux package lacks nftables families, conntrack zones and InfiniBand, and kernels before 7
cannot run Soft-RoCE inside a network namespace; hence an own build (6-9 minutes on two cores, 12 MB binary).
"""

from __future__ import annotations

import os
import subprocess
import time
from importlib import resources
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs.uml import debian
from labs.uml.cache import digest, newest, publish, run_logged, say, scratch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TOOLS = [
    "flex",
    "bison",
    "bc",
    "gcc",
    "make",
    "libc6-dev",
    "xz-utils",
    "kmod",
    "mmdebstrap",
    "debian-archive-keyring",
]
_SOURCE = r"^linux-source-[0-9.]+$"

# about how many lines the compilation prints, to say how far it is
_LINES = 2150


def options_text() -> str:
    """Return the option file of the kernel."""
    return resources.files("labs.uml").joinpath("kernel-options.txt").read_text()


def parse_options(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (verb, words) of each line; verb is on, off, need or set (option, number)."""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] not in {"on", "off", "need", "set"} or len(words) < 2:
            raise CouldNotRunError(f"kernel-options.txt:{number}: expected on, off, need or set, then options")
        yield words[0], words[1:]


def cached() -> Path | None:
    """Return the folder of the newest cached kernel with today's options, or nothing."""
    return newest(f"kernel-*-{digest(options_text())}")


def build() -> Path:
    """Build and cache the kernel, or return the cached one. Needs root, apt and about 2 GB of disk meanwhile."""
    if done := cached():
        return done
    debian.need_root_and_apt()
    started = time.monotonic()
    say("kernel: installing the build tools")
    debian.install(_TOOLS)
    with scratch("kernel") as work:
        folder = cached() or _build_in(work)
    say(f"kernel: done in {time.monotonic() - started:.0f} s, cached in {folder}")
    return folder


def _build_in(work: Path) -> Path:
    say(f"kernel: fetching the newest linux-source of {debian.RELEASE}-backports")
    (work / "apt").mkdir()
    apt = debian.PrivateApt(work / "apt", f"{debian.RELEASE}-backports")
    package, version = apt.newest(_SOURCE)
    apt.unpack(package, work / "deb")
    say(f"kernel: unpacking {package} {version}")
    log = work / "build.log"
    run_logged(["tar", "xf", str(work / f"deb/usr/src/{package}.tar.xz")], log, cwd=work)
    tree = work / package
    configure(tree, log)
    jobs = os.cpu_count() or 1
    say(f"kernel: compiling with {jobs} jobs (6-9 minutes on two cores)")
    run_logged(["nice", "make", "ARCH=um", f"-j{jobs}", "linux"], log, cwd=tree, lines=_LINES)
    run_logged(["make", "-s", "ARCH=um", "modules.builtin", "modules.builtin.modinfo"], log, cwd=tree)
    return _keep(work, tree, f"{package} {version}")


def configure(tree: Path, log: Path) -> None:
    """Write the tree's .config; raise when an option that the lab cannot do without was refused."""
    run_logged(["make", "ARCH=um", "defconfig"], log, cwd=tree)
    flags: list[str] = []
    needed: list[str] = []
    for verb, words in parse_options(options_text()):
        if verb == "set":
            flags += ["--set-val", words[0], words[1]]
            continue
        flags += [part for word in words for part in ("-d" if verb == "off" else "-e", word)]
        needed += words if verb == "need" else []
    run_logged(["scripts/config", *flags], log, cwd=tree)
    run_logged(["make", "ARCH=um", "olddefconfig"], log, cwd=tree)
    config = (tree / ".config").read_text().splitlines()
    if lost := [name for name in needed if f"CONFIG_{name}=y" not in config]:
        raise CouldNotRunError(f"this kernel source refuses options that the lab needs: {' '.join(lost)}")


def _keep(work: Path, tree: Path, source: str) -> Path:
    """Publish what a run needs into its own cache folder; sources and objects go with the work folder."""
    release = subprocess.run(
        ["make", "-s", "ARCH=um", "kernelrelease"], cwd=tree, capture_output=True, text=True, check=True
    ).stdout.strip()
    name = f"kernel-{release}-{digest(options_text())}"
    kept = work / "kept"
    kept.mkdir()
    subprocess.run(["strip", "-o", str(kept / "linux"), str(tree / "linux")], check=True)
    for part in ("modules.builtin", "modules.builtin.modinfo"):
        (tree / part).rename(kept / part)
    (tree / ".config").rename(kept / "config")
    (kept / "kernelrelease").write_text(release + "\n")
    (kept / "SOURCE").write_text(f"Linux (GPL-2.0) built from Debian's {source} with the config beside this file.\n")
    return publish(kept, name)
