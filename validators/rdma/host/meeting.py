"""How flows start together: each says that it is ready with a file, and waits for another that names the moment.

Who started the flows sees the one and writes the other, over the same way by which it reached the hosts: nothing has
to be guessed about how long a slow host needs to get ready. Both files are gone afterwards.
"""

from __future__ import annotations

import time
from pathlib import Path

from validators.rdma.host.channel import ChannelError

READY, START = ".ready", ".start"
_LOOK_S = 0.02


def wait_for_start(meeting: str, deadline_s: float) -> float:
    """Say ready and sleep until the common start; returns how late this flow is, in s. Raises ChannelError.

    Without a meeting (a flow alone) there is nothing to wait for.
    """
    if not meeting:
        return 0.0
    Path(meeting + READY).touch()
    start_at = _start_of(Path(meeting + START), deadline_s)
    left = start_at - time.time()
    if left > 0:
        time.sleep(left)
    return max(0.0, time.time() - start_at)


def leave(meeting: str) -> None:
    """Remove the files of a meeting; called by who watches over the flow, as the flow itself may have been killed."""
    if meeting:
        for end in (READY, START, START + ".new"):
            Path(meeting + end).unlink(missing_ok=True)


def _start_of(path: Path, deadline_s: float) -> float:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if path.exists():
            return float(path.read_text(encoding="ascii"))
        time.sleep(_LOOK_S)
    raise ChannelError(f"nobody gave the common start within {deadline_s:g} s")
