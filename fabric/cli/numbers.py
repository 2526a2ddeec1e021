"""Number types of options: finite, and within bounds that arithmetic can stand."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A float that is a number: NaN and infinity pass click's own range, and would come out as JSON that is none."""

    name = "number"

    def __init__(self, low: float = 0.0, high: float = 1e12, *, above: bool = False) -> None:
        """Accept `low` to `high`; `above` leaves `low` itself out."""
        super().__init__(min=low, max=high, min_open=above)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; fails like any click type."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def count(low: int = 1, high: int = 1_000_000_000) -> click.IntRange:
    """Whole numbers from `low` to `high`."""
    return click.IntRange(low, high)
