"""Start the machine of engine `native`: this host's kernel, our Debian root, namespaces of its own.

A PID namespace whose first process is the agent: when that ends, for whatever reason, every process of the lab ends,
and with them the namespaces and mounts, none of which were ever visible outside.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from fabric.problem import CouldNotRunError
from labs.machine import Machine, Options, before_exec, code_folder
from labs.model import Lab
from labs.native import preflight
from labs.native.bringup import rdma_name
from labs.uml import root

_RDMA = Path("/sys/class/infiniband")
_GONE_S = 5
_BUILD = "run `kvfabric lab build --engine native`"


def lacks() -> list[str]:
    """Say what keeps a lab from running on this host's own kernel; what cannot be tried yet is not said."""
    tree = root.cached()
    found = [] if os.geteuid() == 0 else ["it makes namespaces and devices: run it as root"]
    found += [] if tree else [f"the Debian root is not built yet: {_BUILD}"]
    return found if found or tree is None else preflight.missing(tree)


def limits() -> list[str]:
    """Say what a lab on this kernel will not be able to do."""
    tree = root.cached()
    return preflight.limits(tree) if tree else []


@dataclass
class _OnHost(Machine):
    """A machine on this host's kernel, and the RDMA devices that it makes there: their names are the whole host's."""

    rdma: frozenset[str] = frozenset()

    def kill(self) -> None:
        """End the machine, and wait until the kernel has ended its RDMA devices too, as the next lab needs the names.

        A namespace ends after its last process, in its own time.
        """
        super().kill()
        deadline = time.monotonic() + _GONE_S
        while _there(self.rdma) and time.monotonic() < deadline:
            time.sleep(0.02)


def _there(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in names if (_RDMA / name).exists())


def _own_rdma(state: Path) -> frozenset[str]:
    """The RDMA devices that this lab will make: not those that another lab of the same nodes has."""
    lab = Lab.from_json((state / "share" / "lab.json").read_text())
    names = frozenset(rdma_name(node.name, interface) for node in lab.nodes for interface in node.rdma)
    return names - _there(names)


def start(state: Path, options: Options) -> Machine:
    """Start the machine; its agent says `ready` on the channel."""
    if options.rdma != "shared":
        text = "engine native runs with the RDMA mode that this host has: it is one for all of its namespaces"
        raise CouldNotRunError(f"{text}; use --engine uml for --rdma {options.rdma}")
    tree = root.cached()
    if tree is None:
        raise CouldNotRunError(f"the Debian root is not built yet: {_BUILD}")
    rdma = _own_rdma(state)
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
    return _OnHost(process, ours, rdma)
