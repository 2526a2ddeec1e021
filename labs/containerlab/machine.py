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

# where the VM and a node have our packages
VM_CODE, NODE_CODE = "/mnt/code", "/opt/kvfabric"

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


def binds() -> tuple[str, ...]:
    """Return what nodes see of the machine they are in, relative to the topology file's folder.

    The folder that tool and nodes share, our own packages for probes, and the host's processor, whose clock rate
    perftest reads and the VM's kernel does not tell.
    """
    here = on_host()
    code = code_folder() if here else VM_CODE
    packages = tuple(f"{code}/{name}:{NODE_CODE}/{name}:ro" for name in ("labs", "fabric", "validators"))
    # the VM's programs look for bytecode in one place, where it stays from one lab to the next
    kept = () if here else ("/mnt/pycache:/mnt/pycache",)
    return ("..:/lab", "../cpuinfo:/proc/cpuinfo:ro", *packages, *kept)


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
        # the second for programs that the agent starts in nodes
        "PYTHONPATH": f"{code_folder()}:{NODE_CODE}",
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
