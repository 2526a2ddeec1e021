"""Ask several hosts at the same time, and wait for nobody once it was interrupted."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from validators.rdma.places import Places

_LOOK_AGAIN_S = 0.2


@contextmanager
def asking(places: Places, at_once: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that ask hosts. Leaving waits for all of them; after an exception (Ctrl-C) it ends what they run.

    Every thread counts, also one that is only about to start a program: an interrupt may come at any moment.
    """
    pool = ThreadPoolExecutor(at_once)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        over = threading.Event()
        ending = threading.Thread(target=_abandon, args=(places, over), daemon=True, name="abandon")
        ending.start()
        pool.shutdown()
        over.set()
        ending.join()
        raise
    pool.shutdown()


def _abandon(places: Places, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(CouldNotRunError):  # a lab that has gone runs nothing
            places.abandon()
        over.wait(_LOOK_AGAIN_S)
