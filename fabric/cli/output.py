"""How things look on a terminal: data on stdout, everything else on stderr, colour only where it is wanted."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fabric.problem import Problem

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def wants_colour(stream: Any) -> bool:
    """Colour only on a terminal, and never when NO_COLOR holds anything (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and stream.isatty()


def print_problems(problems: Iterable[Problem]) -> None:
    """Print each problem once on stderr, then how many there were."""
    counts: dict[str, int] = {}
    for problem in problems:
        word = problem.severity.value
        counts[word] = counts.get(word, 0) + 1
        text = str(problem)
        if wants_colour(sys.stderr):
            text = text.replace(f"{word}:", click.style(f"{word}:", fg=_COLOURS[word]), 1)
        click.echo(text, err=True)
    if counts:
        click.echo(
            ", ".join(f"{n} {word}{'s' if n != 1 and word != 'info' else ''}" for word, n in counts.items()), err=True
        )


def print_json(data: Any) -> None:
    """Print data as indented JSON with stable key order; ValueError for NaN and infinity, which JSON has not."""
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Lay out rows under a header in columns; numbers to the right, text to the left."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max([len(title), *(len(row[i]) for row in cells)]) for i, title in enumerate(header)]
    numeric = [
        bool(cells) and all(row[i].replace(".", "", 1).replace(":", "", 1).isdigit() for row in cells)
        for i in range(len(header))
    ]

    def line(values: Sequence[str]) -> str:
        return "  ".join(
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        ).rstrip()

    return "\n".join([line(list(header)), *(line(row) for row in cells)])
