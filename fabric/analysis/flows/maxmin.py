"""Max-min fair shares of flows over directed links.

Model: a flow takes one fixed path and as much as it can get; no flow can have more without one that has no more than
it having less. What it leaves out: queueing, DCQCN's ramp, PFC spreading, retransmission. For transfers of seconds
over few hops this is the bound that protocols come near to.

Method: progressive filling where every link that is the tightest of all its flows is filled in the same round. Such a
link stays tightest while others are filled (shares only grow), so the result is exact and takes few rounds. Flows
with equal paths are one flow with a weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_LINK = -1
_MOST_GROUPED = 100_000
_CLOSE = 1 + 1e-9


def max_min(paths: NDArray[np.int64], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rate of each flow, in the unit of `capacity`.

    `paths` is (flows, hops) of link indexes, padded with -1; every flow has at least one link.
    """
    if len(paths) == 0:
        return np.zeros(0)
    if len(paths) > _MOST_GROUPED:  # sorting that many costs more than equal paths save
        return _fill(paths, np.ones(len(paths)), capacity)
    groups, member, weight = np.unique(paths, axis=0, return_inverse=True, return_counts=True)
    return _fill(groups, weight.astype(float), capacity)[member.reshape(-1)]


def _fill(paths: NDArray[np.int64], weight: NDArray[np.float64], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    rates = np.zeros(len(paths))
    left = capacity.astype(float).copy()
    flow, hop = np.nonzero(paths != NO_LINK)
    link = paths[flow, hop]
    while len(flow):
        load = np.bincount(link, weights=weight[flow], minlength=len(left))
        share = np.divide(left, load, out=np.full(len(left), np.inf), where=load > 0)
        tightest = np.full(len(paths), np.inf)
        np.minimum.at(tightest, flow, share[link])
        lowest = np.full(len(left), np.inf)
        np.minimum.at(lowest, link, tightest[flow])
        full = (load > 0) & (share <= lowest * _CLOSE)
        done = np.zeros(len(paths), dtype=bool)
        done[flow[full[link]]] = True
        rates[done] = tightest[done]
        gone = done[flow]
        left -= np.bincount(link[gone], weights=(weight * rates)[flow[gone]], minlength=len(left))
        np.maximum(left, 0.0, out=left)
        flow, link = flow[~gone], link[~gone]
    return rates


def link_load(paths: NDArray[np.int64], rates: NDArray[np.float64], links: int) -> NDArray[np.float64]:
    """Return the sum of rates on each link."""
    flow, hop = np.nonzero(paths != NO_LINK)
    return np.bincount(paths[flow, hop], weights=rates[flow], minlength=links).astype(float)
