"""Posting and polling in windows of linked work requests, the same for every verbs binding.

Work requests are built once, linked into chains, and only the last of a chain asks for a completion: one completion and
one doorbell per chain, not per piece. Chain c runs on queue pair c modulo the number of queue pairs; a queue pair's
completions come in order, so when chain c is done, chain c + stride is the next on its queue pair.
"""

from __future__ import annotations

import os
import time
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from validators.rdma.host.backend import Times, TransferError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LONGEST_CHAIN = 32
_SPINS_BEFORE_YIELD = 100
"""Empty polls without any system call, not even for the time: that is what the latency of a small READ is made of."""
_YIELDS_PER_LOOK = 8
"""Yields between two looks at the clock."""
_SPINS_BEFORE_SLEEP = 2_000
_CLOCK_READINGS = 500
_NAP_S = 50e-6


def chain_length(pieces: int, qps: int, depth: int) -> int:
    """Return work requests per chain: long enough to be cheap, short enough to keep every queue pair busy."""
    fair = -(-pieces // (qps * 2))
    return max(1, min(LONGEST_CHAIN, depth // 2 or 1, fair))


def chain_slices(pieces: int, length: int) -> list[tuple[int, int]]:
    """Return (first, last + 1) of the pieces of each chain."""
    return [(first, min(first + length, pieces)) for first in range(0, pieces, length)]


@cache
def clock_cost_s() -> float:
    """Return the least time between two readings of the clock in s, which every measured time has in it once.

    Some 40 ns on a host; several microseconds in the lab, whose kernel has no clock that can be read without a system
    call: a fifth of a small READ, which perftest does not see as it reads the processor's counter.
    """
    readings = [time.perf_counter() for _ in range(_CLOCK_READINGS)]
    return min(later - earlier for earlier, later in pairwise(readings))


def run_window(
    total: int,
    stride: int,
    post: Callable[[int], None],
    poll: Callable[[], Sequence[tuple[int, str]]],
    deadline_s: float,
    time_posts: bool = False,
) -> Times:
    """Post chains 0..total-1 with at most `stride` outstanding, and wait for all.

    `poll` returns (chain, status) pairs, status empty for success. `time_posts` adds up the time inside `post`: two
    readings of the clock a chain, which cost more than the post itself where the clock is a system call. The cost of
    one reading is taken off every time.

    Raises TransferError with the status of the first bad completion, or `deadline`; `detected_s` counts from the start.
    """
    clock = time.perf_counter
    cost_s = clock_cost_s()
    times = Times()
    if time_posts:
        post = _timed(post, times)
    start = clock()
    for chain in range(min(stride, total)):
        post(chain)
    posted, done, spins = min(stride, total), 0, 0
    while done < total:
        batch = poll()
        if not batch:
            spins += 1
            if spins > _SPINS_BEFORE_YIELD:
                _wait(spins)
                if spins % _YIELDS_PER_LOOK == 0 and clock() - start > deadline_s:
                    missing = total - done
                    text = f"{missing} of {total} completions did not come within {deadline_s:g} s"
                    raise TransferError("deadline", text, clock() - start)
            continue
        spins = 0
        for chain, status in batch:
            if status:
                raise TransferError(status, f"work completion {status} in chain {chain} of {total}", clock() - start)
            done += 1
            following = chain + stride
            if following < total:
                post(following)
                posted += 1
    times.completion_s = max(0.0, clock() - start - cost_s)
    times.posts, times.completions = posted, done
    return times


def _timed(post: Callable[[int], None], times: Times) -> Callable[[int], None]:
    clock = time.perf_counter
    cost_s = clock_cost_s()

    def timed(chain: int) -> None:
        before = clock()
        post(chain)
        times.posting_s += max(0.0, clock() - before - cost_s)

    return timed


def _wait(spins: int) -> None:
    """Let others run: software RDMA needs the same cores that a busy poll would hold."""
    if spins > _SPINS_BEFORE_SLEEP:
        time.sleep(_NAP_S)
    else:
        os.sched_yield()
