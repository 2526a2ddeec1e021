"""setns(2) and unshare(2) from the C library: Python has them only from 3.12 on."""

from __future__ import annotations

import ctypes
import os

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWNET = 0x40000000

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
