"""Engine `containerlab`: this host where it has a Docker engine and containerlab, else the VM with both inside."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs import state
from labs.containerlab import build, disk, layer
from labs.machine import Machine, Options, code_folder, die_with_parent
from labs.uml import machine as uml

if TYPE_CHECKING:
    from pathlib import Path

# the call that builds the lab once the machine is ready
BRING_UP = "deploy"

_DENIED = "this user may not use Docker: run as root, or join the group `docker` and log in again"
_NO_RIGHTS = "containerlab makes links between containers: run it as root"


def on_host() -> bool:
    """Whether this host has containerlab and a Docker engine that answers, or one that refuses this user."""
    return bool(shutil.which("containerlab")) and _docker_says() in {"", _DENIED}


def _docker_says() -> str:
    """Ask Docker for its version: an empty string when it answers, else what is wrong, in words."""
    if not shutil.which("docker"):
        return "no `docker` on the PATH"
    done = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return _DENIED if "permission denied" in done.stderr.lower() else "the Docker engine does not answer"


def lacks() -> list[str]:
    """Say what keeps a lab from being deployed here, on the host or in the VM."""
    if not on_host():
        return [*uml.lacks(), *build.lacks()] if os.uname().machine != "x86_64" else build.lacks()
    if said := _docker_says():
        return [said]
    return [] if os.geteuid() == 0 else [_NO_RIGHTS]


def limits() -> list[str]:
    """Say what a lab will lack here; on a host's own kernel `node.sh` says it for each node that wants it."""
    return []


def start(folder: Path, options: Options) -> Machine:
    """Start the machine that will deploy the lab; its agent says `ready` on the channel."""
    return _start_here(folder) if on_host() else _start_vm(folder, options)


def _start_vm(folder: Path, options: Options) -> Machine:
    docker, image = layer.cached(), disk.cached()
    if docker is None or image is None:
        raise CouldNotRunError("Docker and its disk are not built yet: run `kvfabric lab build --engine containerlab`")
    # what changes on the disk goes with the lab's folder; the cached one is never written to
    words = disk.vm_words(docker, folder, f"{folder / 'disk.cow'},{image}")
    return uml.boot(folder, options, words)


def _start_here(folder: Path) -> Machine:
    shutil.copy("/proc/cpuinfo", folder / "share" / "cpuinfo")
    (folder / "run").mkdir()
    topology = next((folder / "share" / "nodes").glob("*.clab.yml"))
    # containers outlive processes: whoever removes the lab's folder destroys them first
    state.write_facts(folder, undo=["containerlab", "destroy", "-t", str(topology), "--cleanup"])
    ours, theirs = socket.socketpair()
    environment = {
        **os.environ,
        "PYTHONPATH": str(code_folder()),
        "LAB_SHARE": str(folder / "share"),
        "LAB_RUN": str(folder / "run"),
    }
    with (folder / "console.log").open("wb") as console:
        process = subprocess.Popen(
            [sys.executable, "-m", "labs.agent", str(theirs.fileno())], stdin=subprocess.DEVNULL, stdout=console,
            stderr=console, env=environment, cwd="/", pass_fds=[theirs.fileno()], start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509  no threads here
        )  # fmt: skip
    theirs.close()
    return Machine(process, ours)
