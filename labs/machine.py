"""What an engine has to provide: a machine with our agent in it, reached over one descriptor."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket
    import subprocess

# share of a node's files and results, as the machine sees it
SHARE = "/lab"
# our own packages, in the VM and in a node
VM_CODE, NODE_CODE = "/mnt/code", "/opt/kvfabric"

_NICE = -5
# in which the kernel ends what was killed
_GONE_S = 5.0
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may choose: memory in MB and processors of a VM, RDMA namespace mode (`shared` or `exclusive`)."""

    memory_mb: int = 4096
    cpus: int = 2
    rdma: str = "shared"


@dataclass
class Machine:
    """A started machine: its main process and our end of the agent's channel."""

    process: subprocess.Popen[bytes]
    channel: socket.socket

    def kill(self) -> None:
        """End the machine and everything in it, and wait until it has gone, with the processes that it had itself."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # what loses its parent now comes to us
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        _wait_for_group(self.process.pid)
        self.channel.close()


def _wait_for_group(group: int) -> None:
    """Wait for what was killed with its leader: it ends in its own time, and a lab that is down has no process left."""
    deadline = time.monotonic() + _GONE_S
    with contextlib.suppress(OSError):  # nobody is in it any more, or its number is already somebody else's
        while time.monotonic() < deadline:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-group, os.WNOHANG)
            os.killpg(group, 0)
            time.sleep(0.01)


class Engine(Protocol):
    """A way to get a machine. An engine is a module with these functions; see `labs.engines`."""

    def lacks(self) -> list[str]:
        """Say what keeps this engine from running here, in words; an empty list when it can."""

    def limits(self) -> list[str]:
        """Say what a lab of this engine will not be able to do here, in words; usually an empty list."""

    def start(self, state: Path, options: Options) -> Machine:
        """Start a machine whose `/lab` is `state/share`. Raises CouldNotRunError."""


def die_with_parent() -> None:
    """In a child before exec: be killed when the parent dies, however it dies."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def before_exec() -> None:
    """In a machine's first process, which has a session of its own: die with the supervisor, and be on time.

    A lab has sessions that fall when nobody answers for 0.9 s, so it goes before builds and tests that run beside it.
    Sessions share the processors (autogroups), so that is what gets the priority; see sched(7).
    """
    die_with_parent()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_NICE))


def code_folder() -> Path:
    """Return the folder that holds our packages: a checkout or site-packages."""
    return Path(__file__).resolve().parent.parent
