"""Send a number of frames at a rate, with something to do in between."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Pace:
    """What was asked and what really happened; `real` counts from the first frame to the end of the last send."""

    count: int
    asked_per_s: float
    seconds: float

    @property
    def real_per_s(self) -> float:
        """Frames per second that were really offered."""
        return self.count / self.seconds if self.seconds > 0 else 0.0


def paced(
    count: int,
    rate_per_s: float,
    send: Callable[[int, int], None],
    between: Callable[[], None] | None = None,
    *,
    largest: int = 256,
) -> Pace:
    """Call `send(first, last)` for pieces of 0..count so that `rate_per_s` is met; never more than `largest` at once.

    A piece covers about a millisecond. When late, full pieces go out without a pause until the schedule is met.
    """
    piece = max(1, min(largest, int(rate_per_s / 1000)))
    begun = time.perf_counter()
    done = 0
    while done < count:
        behind = int((time.perf_counter() - begun) * rate_per_s) - done
        upto = min(count, done + (min(largest, behind) if behind > piece else piece))
        early = done / rate_per_s - (time.perf_counter() - begun)
        if early > 0.0001:
            if between is not None:
                between()
            time.sleep(max(0.0, min(early, done / rate_per_s - (time.perf_counter() - begun))))
            continue
        send(done, upto)
        done = upto
        if between is not None and behind > piece:
            between()
    return Pace(count, rate_per_s, time.perf_counter() - begun)
