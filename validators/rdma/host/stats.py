"""Percentiles and fairness, without numpy, because a probe host may not have it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHARES = (50.0, 95.0, 99.0, 99.9)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` percent of the values do not exceed (nearest rank)."""
    if not values:
        return math.nan
    ordered = sorted(values)
    rank = math.ceil(len(ordered) * share / 100.0 - 1e-9)
    return ordered[max(0, rank - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return count, smallest, p50, p95, p99, p99.9 and largest. A percentile needs its trials: see `count`."""
    if not values:
        return {"count": 0}
    named = {f"p{share:g}": percentile(values, share) for share in SHARES}
    return {"count": len(values), "min": min(values), **named, "max": max(values)}


def jain(rates: Sequence[float]) -> float:
    """Return Jain's fairness index of rates: 1.0 when all are equal, 1/n when one has everything (R. Jain, 1984)."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else math.nan
