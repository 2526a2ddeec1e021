"""The plots of `kvfabric capacity`: what hashing leaves of each pattern, by QPs, a plot a fabric."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.capacity import LEFT_OUT, MODEL
from fabric.analysis.capacity_tables import sections
from fabric.charts.page import Page
from fabric.charts.svg import Series, bars

if TYPE_CHECKING:
    from fabric.analysis.capacity import Capacity


def page_of(answer: Capacity) -> Page:
    """Return the page: rates as shares of perfect balance, then every table."""
    plots = tuple(_plot(answer, fabric) for fabric in dict.fromkeys(fabric for fabric, _ in answer.outcomes))
    return Page(f"{answer.site}: capacity", plots, tuple(sections(answer)), MODEL, LEFT_OUT)


def _plot(answer: Capacity, fabric: str) -> str:
    outcomes = [o for f, o in answer.outcomes if f == fabric]
    patterns = list(dict.fromkeys(o.pattern for o in outcomes))
    series = [
        Series(
            f"{qps} QP{'s' * (qps > 1)} a pair",
            tuple((float(patterns.index(o.pattern)), 100 * o.efficiency) for o in outcomes if o.qps == qps),
        )
        for qps in dict.fromkeys(o.qps for o in outcomes)
    ]
    return bars(f"{answer.site} {fabric}: hashed ECMP against perfect balance", "per cent", patterns, series)
