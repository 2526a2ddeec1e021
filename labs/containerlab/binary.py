"""The containerlab program, built once from its published Go module and cached by version and build recipe.

Go 1.24 or newer compiles it in about two minutes on two cores. `source/` holds the pinned modules: the tagged release
cannot be installed by `go install`, because two of its `replace` lines and one module that is no longer served are
needed (`source/netaddr` stands in for the latter).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from importlib import resources
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs.uml import debian
from labs.uml.cache import digest, newest, publish, say, scratch

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

VERSION = "0.60.0"
OLDEST_GO = (1, 24)  # the first with `tool` lines in go.mod
# where the host has no such Go: Debian's, unpacked for the time of the build
_DEBIAN_GO = ("golang-1.24-go", "golang-1.24-src")

_MODULE = "github.com/srl-labs/containerlab"
_FILES = ("go.mod", "go.sum", "netaddr/go.mod", "netaddr/netaddr.go")
_TAGS = "exclude_graphdriver_btrfs containers_image_openpgp netgo"
_FLAGS = f"-s -w -X {_MODULE}/cmd.version={VERSION}"
_REPORT_S = 15


def _source() -> Traversable:
    return resources.files("labs.containerlab").joinpath("source")


def _name() -> str:
    texts = [_source().joinpath(*name.split("/")).read_text() for name in _FILES]
    return f"containerlab-{VERSION}-{digest(chr(10).join([_TAGS, _FLAGS, *texts]))}"


def cached() -> Path | None:
    """Return the cached program of today's recipe, or nothing."""
    folder = newest(_name())
    return folder / "containerlab" if folder else None


def go_version(text: str) -> tuple[int, int]:
    """Return (major, minor) from what `go version` prints; (0, 0) when it is something else."""
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def go_lacks() -> str:
    """Say what keeps containerlab from being built here; an empty string when nothing does."""
    wanted = ".".join(map(str, OLDEST_GO))
    if not shutil.which("go"):
        return f"containerlab is built with Go {wanted} or newer: no `go` on the PATH"
    text = subprocess.run(["go", "version"], capture_output=True, text=True, check=False).stdout
    found = go_version(text)
    return "" if found >= OLDEST_GO else f"containerlab is built with Go {wanted} or newer: this is {text.strip()}"


def build() -> Path:
    """Build and cache the program, or return the cached one. About 2 GB of disk are needed meanwhile.

    Modules stay in Go's own module cache; objects do not stay. Where there is no Go, Debian's
    is used, which needs root and apt. Raises CouldNotRunError when Go or a module cannot be had.
    """
    if done := cached():
        return done
    started = time.monotonic()
    with scratch("containerlab") as work:
        path = cached() or _build_in(work)
    say(f"containerlab: done in {time.monotonic() - started:.0f} s, cached in {path.parent}")
    return path


def _build_in(work: Path) -> Path:
    say(f"containerlab: fetching and compiling {VERSION} (about two minutes on two cores)")
    source = work / "source"
    for name in _FILES:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_source().joinpath(*name.split("/")).read_text())
    kept = work / "kept"
    kept.mkdir()
    _compile(_go(work), work, source, kept / "containerlab")
    told = subprocess.run([kept / "containerlab", "version"], capture_output=True, text=True, check=False)
    if told.returncode or VERSION not in told.stdout:
        raise CouldNotRunError(f"the containerlab just built does not run: {(told.stderr or told.stdout)[-400:]}")
    (kept / "SOURCE").write_text(f"containerlab {VERSION} (BSD-3-Clause) built from the Go module {_MODULE}.\n")
    return publish(kept, _name()) / "containerlab"


def _go(work: Path) -> str:
    lacks = go_lacks()
    if not lacks:
        return "go"
    say(f"{lacks}; fetching Debian's for this build")
    try:
        debian.need_root_and_apt()
    except CouldNotRunError as error:
        raise CouldNotRunError(f"{lacks}, and Debian's cannot be fetched: {error}") from error
    apt = debian.PrivateApt(work / "apt", debian.RELEASE)
    for package in _DEBIAN_GO:
        apt.unpack(package, work / "go")
    return str(next((work / "go/usr/lib").glob("go-*/bin/go")))


def _compile(go: str, work: Path, source: Path, target: Path) -> None:
    command = ["nice", go, "build", "-v", "-trimpath", "-tags", _TAGS, "-ldflags", _FLAGS, "-o", str(target), _MODULE]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    environment |= {"GOCACHE": str(work / "objects")}
    process = subprocess.Popen(
        command, cwd=source, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr
    lines: list[str] = []
    reported = time.monotonic()
    try:
        for line in process.stderr:
            lines.append(line.rstrip())
            if time.monotonic() - reported > _REPORT_S:
                reported = time.monotonic()
                say(f"containerlab: {_progress(lines)}")
    finally:
        if process.poll() is None:
            process.terminate()
        code = process.wait()
    if code:
        raise CouldNotRunError(f"building containerlab failed (exit {code}):\n    " + "\n    ".join(lines[-12:]))


def _progress(lines: list[str]) -> str:
    fetched = sum(line.startswith("go: downloading") for line in lines)
    compiled = sum(not line.startswith("go: ") for line in lines)
    return f"{fetched} modules fetched, {compiled} packages compiled"
