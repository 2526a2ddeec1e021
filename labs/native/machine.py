"""Start the machine of engine `native`: this host's kernel, our Debian root, namespaces of its own.

A PID namespace whose first process is the agent: when that ends, for whatever reason, every process of the lab ends,
and with them the namespaces and mounts, none of which were ever visible outside.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

from fabric.problem import CouldNotRunError
from labs.machine import Machine, Options, before_exec, code_folder
from labs.native import preflight
from labs.uml import root


def lacks() -> list[str]:
    """Say what keeps a lab from running on this host's own kernel."""
    found = [] if os.geteuid() == 0 else ["it makes namespaces and devices: run it as root"]
    found += [] if root.cached() else ["the Debian root is not built yet: run `kvfabric lab build`"]
    return found + [text for text in preflight.missing() if text]


def limits() -> list[str]:
    """Say what a lab on this kernel will not be able to do."""
    return preflight.limits()


def start(state: Path, options: Options) -> Machine:
    """Start the machine; its agent says `ready` on the channel."""
    if options.rdma != "shared":
        text = "engine native runs with the RDMA mode that this host has: it is one for all of its namespaces"
        raise CouldNotRunError(f"{text}; use --engine uml for --rdma {options.rdma}")
    tree = root.cached()
    if tree is None:
        raise CouldNotRunError("the lab's Debian root is not built yet: run `kvfabric lab build`")
    shutil.copy("/proc/cpuinfo", state / "share" / "cpuinfo")
    (state / "root").mkdir()
    ours, theirs = socket.socketpair()
    script = Path(__file__).with_name("init.sh")
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "TERM": os.environ.get("TERM", "dumb"),
        "LANG": "C.UTF-8",
        "LAB_LOWER": str(tree),
        "LAB_ROOT": str(state / "root"),
        "LAB_SHARE": str(state / "share"),
        "LAB_CODE": str(code_folder()),
        "LAB_CHANNEL": str(theirs.fileno()),
    }
    command = [
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--uts",
        "--ipc",
        "--fork",
        "--kill-child",
        "--propagation",
        "private",
    ]
    with (state / "console.log").open("wb") as console:
        process = subprocess.Popen(
            [*command, "sh", "-e", str(script)], stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=environment,  # noqa: E501
            pass_fds=[theirs.fileno()], start_new_session=True, preexec_fn=before_exec,  # noqa: PLW1509  no threads here  # noqa: E501
        )  # fmt: skip
    theirs.close()
    return Machine(process, ours)
