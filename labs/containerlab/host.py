"""containerlab and a Docker engine of this host: whether they are there and serve us, and a machine that uses them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs import state
from labs.containerlab import trouble
from labs.containerlab.disk import pack
from labs.containerlab.kinds import NODE_IMAGE
from labs.machine import NODE_CODE, Machine, code_folder, die_with_parent
from labs.uml import root
from labs.uml.cache import say, scratch

if TYPE_CHECKING:
    from pathlib import Path

DENIED = "this user may not use Docker: run as root, or join the group `docker` and log in again"
_NO_RIGHTS = "containerlab makes links between containers: run it as root"
_NO_IMAGE = f"Docker has no image {NODE_IMAGE}: run `kvfabric lab build --engine containerlab`"


def used() -> bool:
    """Whether labs are deployed on this host: it has containerlab and a Docker engine, be it one that refuses us."""
    return bool(shutil.which("containerlab")) and _docker_says() in {"", DENIED}


def _docker_says() -> str:
    """Ask Docker for its version: an empty string when it answers, else what is wrong, in words."""
    if not shutil.which("docker"):
        return "no `docker` on the PATH"
    done = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return DENIED if "permission denied" in done.stderr.lower() else "the Docker engine does not answer"


def lacks() -> list[str]:
    """Say what keeps a lab from being deployed on this host."""
    if said := _docker_says():
        return [said]
    found = [] if os.geteuid() == 0 else [_NO_RIGHTS]
    return found if _has_image() else [*found, _NO_IMAGE]


def _has_image() -> bool:
    return subprocess.run(["docker", "image", "inspect", NODE_IMAGE], capture_output=True, check=False).returncode == 0


def give_image() -> None:
    """Give this host's Docker engine the node image, unless it has it. Raises CouldNotRunError."""
    if said := _docker_says():
        raise CouldNotRunError(said)
    if _has_image():
        return
    say(f"node image: importing the lab's Debian root into this host's Docker as {NODE_IMAGE}")
    with scratch("host-image") as work:
        pack(root.build(), work / "node.tar", work / "pack.log")
        command = ["docker", "import", "--change", 'CMD ["sleep","infinity"]', str(work / "node.tar"), NODE_IMAGE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CouldNotRunError(f"docker import failed: {trouble.explain(done.stderr)}")


def start(folder: Path) -> Machine:
    """Start our agent on this host; it deploys the lab that is in the folder."""
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
