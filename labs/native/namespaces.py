"""setns(2) and unshare(2) from the C library: Python has them only from 3.12 on."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import termios

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWNET = 0x40000000
# what a process can move into, by its name under /proc/PID/ns; mounts last
KINDS = {
    "cgroup": 0x02000000,
    "ipc": 0x08000000,
    "pid": 0x20000000,
    "net": CLONE_NEWNET,
    "uts": CLONE_NEWUTS,
    "mnt": CLONE_NEWNS,
}

_PR_SET_PDEATHSIG = 1

_LIBC = ctypes.CDLL(None, use_errno=True)


def setns(fd: int, kind: int) -> None:
    """Move the calling thread into the namespace behind `fd`. Raises OSError."""
    _check(_LIBC.setns(fd, kind), "setns")


def unshare(kinds: int) -> None:
    """Give the calling process namespaces of its own. Raises OSError."""
    _check(_LIBC.unshare(kinds), "unshare")


def _check(returned: int, call: str) -> None:
    if returned:
        error = ctypes.get_errno()
        raise OSError(error, f"{call}: {os.strerror(error)}")


def go_on_as_child() -> None:
    """Return in a child, because only children live in a new PID namespace; the caller waits and ends as it does."""
    pid = os.fork()
    if pid:
        _end_as(pid)
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.isatty(0):
        # a shell wants to be its terminal's session leader, which the process that waits outside would else be
        os.setsid()
        with contextlib.suppress(OSError):
            fcntl.ioctl(0, termios.TIOCSCTTY, 1)


def _end_as(pid: int) -> None:
    """Wait for a child and end the way it ended, holding nothing that others wait for."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.closerange(0, 1024)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
