"""Start the VM: one User Mode Linux process on the cached root, talking to us over its serial line."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs.machine import Machine, Options, before_exec, code_folder
from labs.uml import cache, kernel, root

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHM = Path("/dev/shm")  # noqa: S108  the VM's memory is a deleted file there
_LEAST_MB, _LEFT_MB = 512, 32


def lacks() -> list[str]:
    """Say what keeps a VM from running here."""
    if os.uname().machine != "x86_64":
        return [f"User Mode Linux runs on x86_64, this is {os.uname().machine}"]
    parts = {"kernel": kernel.cached(), "Debian root": root.cached()}
    return [f"the {part} is not built yet: run `kvfabric lab build`" for part, found in parts.items() if not found]


def limits() -> list[str]:
    """Say what a lab in the VM will not be able to do: its kernel has all that a lab uses."""
    return []


def start(state: Path, options: Options) -> Machine:
    """Boot the VM and return it at once; its agent says `ready` on the channel about a second later."""
    return boot(state, options)


def memory_mb(wanted: int) -> int:
    """Return the MB that a VM gets: what is wanted, or less where `/dev/shm`, which holds it, has less room.

    A VM that writes where no room is left dies at once. Raises CouldNotRunError when there is too little for any lab.
    """
    free = shutil.disk_usage(_SHM).free >> 20
    given = min(wanted, free - _LEFT_MB)
    if given >= _LEAST_MB:
        return given
    fix = f"make room, or `mount -o remount,size=4G {_SHM}`; for a Docker container `docker run --shm-size 4g`"
    raise CouldNotRunError(
        f"a VM's memory is a file in {_SHM}, which has {free} MB free, and {_LEAST_MB} are needed: {fix}"
    )


def seen(state: Path, name: str, target: Path | None = None) -> str:
    """Return the path by which a VM finds `name` in its lab's folder, there a link to `target` when one is given.

    A kernel's words and mount options cannot hold every path of a host (blanks, commas, quotes); a VM's working folder
    is the lab's.
    """
    if target:
        (state / name).symlink_to(target.resolve())  # a VM follows one link, not a chain of them
    return f"/proc/self/cwd/{name}"


def _bytecode(state: Path) -> str:
    """Return where the VM keeps bytecode, as it sees it: in the cache, or for this lab only when the user has none."""
    kept = cache.cache_dir() / "pycache"
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError:  # a user without a home, as in many a container
        (state / "pycache").mkdir()
        return seen(state, "pycache")
    return seen(state, "pycache", kept)


def boot(state: Path, options: Options, extra: Sequence[str] = ()) -> Machine:
    """Boot the VM with more words on its kernel's command line (a disk, a layer over the root). See `start`."""
    binary, tree = kernel.cached(), root.cached()
    if binary is None or tree is None:
        raise CouldNotRunError("the lab's kernel and root are not built yet: run `kvfabric lab build`")
    shutil.copy("/proc/cpuinfo", state / "share" / "cpuinfo")
    ours, theirs = socket.socketpair()
    command = [
        str(binary / "linux"),
        *(f"mem={memory_mb(options.memory_mb)}M", f"ncpus={options.cpus}", "seccomp=on"),
        # its process and socket files go with the lab's folder, not into the user's home
        *("uml_dir=./", "umid=uml"),
        *("root=/dev/root", "rootfstype=hostfs", f"rootflags={seen(state, 'root', tree)}", "ro", "init=/lab-init"),
        *(
            f"lab.name={state.name}",
            f"lab.code={seen(state, 'code', code_folder())}",
            f"lab.share={seen(state, 'share')}",
            f"lab.pycache={_bytecode(state)}",
            f"lab.rdma={options.rdma}",
        ),
        *(f"ssl0=fd:{theirs.fileno()}", "con=null", "con0=null,fd:2", "con1=null", "quiet", "panic=-1"),
        *extra,
    ]
    with (state / "console.log").open("wb") as console:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, cwd=state,
            pass_fds=[theirs.fileno()], start_new_session=True, preexec_fn=before_exec,  # noqa: PLW1509  no threads here
            env={**os.environ, "TMPDIR": str(_SHM)},
        )  # fmt: skip
    theirs.close()
    return Machine(process, ours)
