"""Measurements as people read them: as many digits as a trial is worth, and computed ones named as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from validators.results import COMPUTED

if TYPE_CHECKING:
    from validators.results import Measurement


def figure(value: float) -> str:
    """Return a number with four significant digits, all digits before the point kept: `1.798`, `0.01235`, `1048576`."""
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def name_of(measurement: Measurement) -> str:
    """Return its name; what was computed says so, because it stands beside what was measured."""
    mark = " (computed from the plan, not measured)" if measurement.origin == COMPUTED else ""
    return measurement.name + mark


def trials_of(measurement: Measurement) -> str:
    """Return how often it was measured; nothing for what was computed."""
    return "" if measurement.origin == COMPUTED else str(measurement.trials)
