"""The longest silence of each of many flows, kept up to date as batches of frames arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Gaps:
    """Per flow: when it was last good, and the longest silence between two good frames. Times in ns since 1970."""

    def __init__(self, count: int) -> None:
        self.first = np.zeros(count, np.int64)
        self.last = np.zeros(count, np.int64)
        self.longest = np.zeros(count, np.int64)
        self.before = np.zeros(count, np.int64)
        self.after = np.zeros(count, np.int64)
        self.frames = np.zeros(count, np.int64)
        self._row = np.zeros(count, np.int64)

    def take(self, flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        """Add good frames; a flow may have several in one batch."""
        if not len(flows):
            return
        rows = np.arange(len(flows))
        self._row[flows] = rows
        if (self._row[flows] == rows).all():  # no flow twice: nothing to sort
            self._take_distinct(flows, times)
        else:
            self._take_sorted(flows, times)

    def _take_distinct(self, flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        previous = self.last[flows]
        fresh = previous == 0
        self.first[flows[fresh]] = times[fresh]
        silence = np.where(fresh, 0, times - previous)
        longer = silence > self.longest[flows]
        self._keep_longest(flows[longer], silence[longer], previous[longer], times[longer])
        self.last[flows] = np.maximum(previous, times)
        self.frames[flows] += 1

    def _keep_longest(
        self, flows: NDArray[Any], silence: NDArray[Any], before: NDArray[Any], after: NDArray[Any]
    ) -> None:
        self.longest[flows], self.before[flows], self.after[flows] = silence, before, after

    def _take_sorted(self, flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        order = np.lexsort((times, flows))
        flows, times = flows[order], times[order]
        starts = np.ones(len(flows), np.bool_)
        starts[1:] = flows[1:] != flows[:-1]
        fresh = flows[starts & (self.first[flows] == 0)]
        self.first[fresh] = times[starts & (self.first[flows] == 0)]
        previous = np.empty(len(times), np.int64)
        previous[1:] = times[:-1]
        previous[starts] = self.last[flows[starts]]
        silence = np.where(previous > 0, times - previous, 0)
        worst = np.lexsort((silence, flows))
        ends = np.ones(len(flows), np.bool_)
        ends[:-1] = flows[worst][1:] != flows[worst][:-1]
        pick = worst[ends]
        longer = pick[silence[pick] > self.longest[flows[pick]]]
        self._keep_longest(flows[longer], silence[longer], previous[longer], times[longer])
        last = np.ones(len(flows), np.bool_)
        last[:-1] = starts[1:]
        self.last[flows[last]] = np.maximum(self.last[flows[last]], times[last])
        np.add.at(self.frames, flows, 1)

    def report(self, now_ns: int) -> dict[str, Any]:
        """Return the arrays; a silence that has not ended by `now_ns` and is the longest has `after` = 0."""
        running = np.where(self.last > 0, now_ns - self.last, 0)
        open_ended = running > self.longest
        return {
            "first": self.first,
            "last": self.last,
            "before": np.where(open_ended, self.last, self.before),
            "after": np.where(open_ended, 0, self.after),
            "silence": np.where(open_ended, running, self.longest),
            "frames": self.frames,
        }
