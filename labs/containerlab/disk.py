"""The disk of the embedded VM that holds Docker's data: made once, with the node image imported; labs write to copies.

A lab's VM never writes to the cached file: User Mode Linux keeps what changes in a file of its own (copy on write).
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs.containerlab import layer, oneshot
from labs.containerlab.kinds import NODE_IMAGE
from labs.machine import Options
from labs.uml import debian, kernel, machine, root
from labs.uml.cache import digest, newest, publish, run_logged, say, scratch

if TYPE_CHECKING:
    from pathlib import Path

_SIZE = 6 << 30  # bytes at most; the file is sparse
_FILE = "docker.ext4"
_LEFT_OUT = ("./lab-init", "./dev/*", "./proc/*", "./sys/*", "./var/cache/*", "./var/lib/apt/*", "./usr/share/locale/*")
_SCRIPT = "/opt/kvfabric/labs/containerlab/import.sh"


def _name(tree: Path) -> str:
    return f"docker-disk-{digest(chr(10).join([tree.name, NODE_IMAGE, str(_SIZE), *_LEFT_OUT]))}"


def cached() -> Path | None:
    """Return the cached disk image for the cached root, or nothing."""
    tree = root.cached()
    folder = newest(_name(tree)) if tree else None
    return folder / _FILE if folder else None


def build() -> Path:
    """Make and cache the disk with the node image on it, or return the cached one. About a minute and 1 GB."""
    if done := cached():
        return done
    tree, docker = root.cached(), layer.cached()
    if tree is None or docker is None or kernel.cached() is None:
        raise CouldNotRunError("the lab's kernel, root and Docker are not built yet: run `kvfabric lab build`")
    debian.install(["e2fsprogs"])
    started = time.monotonic()
    with scratch("docker-disk") as work:
        path = cached() or _build_in(work, tree, docker)
    say(f"node image: done in {time.monotonic() - started:.0f} s, cached in {path.parent}")
    return path


def pack(tree: Path, target: Path, log: Path) -> None:
    """Pack the lab's Debian root as what `docker import` takes: the nodes of every engine run the same programs."""
    excludes = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
    run_logged(["tar", "-C", str(tree), "--numeric-owner", *excludes, "-cf", str(target), "."], log)


def _build_in(work: Path, tree: Path, docker: Path) -> Path:
    kept, state = work / "kept", work / "vm"
    kept.mkdir()
    (state / "share").mkdir(parents=True)
    say("node image: packing the lab's Debian root")
    pack(tree, state / "share" / "node.tar", work / "pack.log")
    with (kept / _FILE).open("wb") as stream:
        stream.truncate(_SIZE)
    # no journal: the image is written once, and a lab's copy does not outlive its VM
    run_logged(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", str(kept / _FILE)], work / "mkfs.log")
    say("node image: importing it into a Docker engine in the VM (about half a minute)")
    # one processor: an import is twice as slow on two
    words = vm_words(docker, state, machine.seen(state, "disk", kept / _FILE))
    started = machine.boot(state, Options(cpus=1), words)
    try:
        oneshot.run(started, ["sh", _SCRIPT, NODE_IMAGE], 300, lambda text: say(f"node image: {text}"))
    except CouldNotRunError as error:
        tail = (state / "share" / "dockerd.log").read_text(errors="replace")[-800:] if _logged(state) else ""
        raise CouldNotRunError(f"{error}\n{tail}".rstrip()) from error
    finally:
        started.kill()
    return publish(kept, _name(tree)) / _FILE


def _logged(state: Path) -> bool:
    return (state / "share" / "dockerd.log").is_file()


def vm_words(docker: Path, state: Path, disk: str) -> list[str]:
    """Return the kernel words of a VM with Docker: the layer of programs and the disk; puts kernel facts in the share.

    `disk` is a file, or `COPY,FILE` for copy on write, as the VM sees them.
    """
    binary = kernel.cached()
    if binary is None:
        raise CouldNotRunError("the lab's kernel is not built yet: run `kvfabric lab build`")
    facts = state / "share" / "modules"
    facts.mkdir()
    for name in ("modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(binary / name, facts)
    return [f"lab.layer={machine.seen(state, 'layer', docker)}", f"ubd0={disk}"]
