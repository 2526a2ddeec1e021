"""Enter a named network namespace for a moment: a socket stays in the namespace in which it was made."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLONE_NEWNET = 0x40000000
_FOLDER = Path("/var/run/netns")


@contextmanager
def namespace(name: str) -> Iterator[None]:
    """Run the block in the namespace `name` of `ip netns`; an empty name means: stay here.

    Only the calling thread moves. Raises OSError if the namespace does not exist or may not be entered.
    """
    if not name:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _enter(libc, os.open(_FOLDER / name, os.O_RDONLY))
        try:
            yield
        finally:
            _enter(libc, os.dup(home))
    finally:
        os.close(home)


def _enter(libc: ctypes.CDLL, descriptor: int) -> None:
    try:
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"setns: {os.strerror(number)}")
    finally:
        os.close(descriptor)
