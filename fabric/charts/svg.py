"""Curves and bars as SVG documents of fixed size; every mark has a title that says its value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# told apart by people who see colours differently
COLOURS = ("#2f6fde", "#e07b00", "#1a9c74", "#b0479b", "#b58f00", "#5b5bd6", "#d1495b", "#4c8c2b")
_WIDTH, _HEIGHT = 900, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 24, 64, 56
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.t{font-size:15px;font-weight:600}.a{stroke:#888}.g{stroke:#ddd}"
    ".l{fill:none;stroke-width:2}"
)


@dataclass(frozen=True, slots=True)
class Series:
    """One curve or one colour of bars: its name and (x, y) points. For bars x counts the groups from 0."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at x, with words."""

    x: float
    text: str


def curves(
    title: str,
    x_name: str,
    y_name: str,
    series: Sequence[Series],
    marks: Iterable[Mark] = (),
    *,
    logarithmic: bool = False,
) -> str:
    """Return curves over a common x axis; linear axes hold 0, logarithmic ones need values above it."""
    xs = [x for one in series for x, _ in one.points] or [0.0, 1.0]
    ys = [y for one in series for _, y in one.points] or [0.0, 1.0]
    low, high = min(xs), max(xs)
    axis = _log_axis if logarithmic else _linear_axis
    place, rise = axis(xs, _LEFT, _WIDTH - _RIGHT), axis(ys, _HEIGHT - _BOTTOM, _TOP)
    drawn = [*_frame(place, rise, x_name, y_name)]
    for k, one in enumerate(series):
        colour = COLOURS[k % len(COLOURS)]
        path = " L".join(f"{place.at(x):.1f} {rise.at(y):.1f}" for x, y in one.points)
        drawn.append(f'<path class="l" stroke="{colour}" d="M{path}"/>')
        drawn += [
            f'<circle cx="{place.at(x):.1f}" cy="{rise.at(y):.1f}" r="3" fill="{colour}"><title>{escape(one.name)}: '
            f"{short(x)}, {short(y)}</title></circle>"
            for x, y in one.points
        ]
    drawn += [_mark(place, mark) for mark in marks if low <= mark.x <= high]
    return _document(title, [one.name for one in series], drawn)


def bars(title: str, y_name: str, groups: Sequence[str], series: Sequence[Series]) -> str:
    """Return groups of bars, one bar of each series in each group; y from 0."""
    rise = _linear_axis([y for one in series for _, y in one.points] or [1.0], _HEIGHT - _BOTTOM, _TOP)
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(groups))
    width = step * 0.8 / max(1, len(series))
    drawn = [*_rows(rise, y_name)]
    for k, one in enumerate(series):
        for group, y in one.points:
            x = _LEFT + step * (group + 0.1) + width * k
            drawn.append(
                f'<rect x="{x:.1f}" y="{rise.at(y):.1f}" width="{max(1.0, width - 1):.1f}" '
                f'height="{max(0.0, rise.at(0) - rise.at(y)):.1f}" fill="{COLOURS[k % len(COLOURS)]}">'
                f"<title>{escape(groups[int(group)])}, {escape(one.name)}: {short(y)}</title></rect>"
            )
    drawn += [
        f'<text x="{_LEFT + step * (i + 0.5):.1f}" y="{_HEIGHT - 38}" text-anchor="middle">{escape(name)}</text>'
        for i, name in enumerate(groups)
    ]
    return _document(title, [one.name for one in series], drawn)


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high, v = (self.low, self.high, value)
        if self.logarithmic:
            low, high, v = math.log10(low), math.log10(high), math.log10(v)
        return self.start + (self.end - self.start) * ((v - low) / (high - low) if high > low else 0.5)


def _linear_axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low, high = min(0.0, *values), max(0.0, *values)
    step = nice((high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return _Axis(first * step, last * step, start, end, tuple(n * step for n in range(first, last + 1)))


def _log_axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low, high = min(values), max(values)
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    return _Axis(low, high, start, end, tuple(10.0**n for n in powers), logarithmic=True)


def _frame(place: _Axis, rise: _Axis, x_name: str, y_name: str) -> list[str]:
    base = _HEIGHT - _BOTTOM
    columns = [
        f'<text x="{place.at(x):.1f}" y="{base + 18}" text-anchor="middle">{short(x)}</text>' for x in place.ticks
    ]
    name = f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(x_name)}</text>'
    return [*_rows(rise, y_name), *columns, name]


def _rows(rise: _Axis, y_name: str) -> list[str]:
    lines = [
        f'<line class="{"a" if y == 0 else "g"}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{rise.at(y):.1f}" '
        f'y2="{rise.at(y):.1f}"/><text x="{_LEFT - 6}" y="{rise.at(y) + 4:.1f}" text-anchor="end">{short(y)}</text>'
        for y in rise.ticks
    ]
    return [*lines, f'<text x="8" y="{_TOP - 10}">{escape(y_name)}</text>']


def _mark(place: _Axis, mark: Mark) -> str:
    x = place.at(mark.x)
    return (
        f'<line class="a" stroke-dasharray="4 3" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        f'<text x="{x + 4:.1f}" y="{_TOP + 10}">{escape(mark.text)}</text>'
    )


def _document(title: str, names: Sequence[str], drawn: Sequence[str]) -> str:
    legend, x = [], float(_LEFT)
    for k, name in enumerate(names):
        legend.append(
            f'<rect x="{x:.0f}" y="30" width="11" height="11" fill="{COLOURS[k % len(COLOURS)]}"/>'
            f'<text x="{x + 15:.0f}" y="40">{escape(name)}</text>'
        )
        x += 34 + 6.6 * len(name)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><style>{_STYLE}</style>',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
            f'<text class="t" x="8" y="20">{escape(title)}</text>',
            *legend,
            *drawn,
            "</svg>\n",
        ]
    )


def nice(value: float) -> float:
    """Round an axis up to 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * (1 - 1e-9)), value)


def short(value: float) -> str:
    """A number in at most four figures: 12.5k, 3M."""
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (limit if limit > 1e4 else 1e3):.4g}{letter}"
    return f"{value:.4g}"
