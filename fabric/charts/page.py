"""An answer as a file: an HTML page with plots, tables, the model and what it leaves out; or the first plot as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from fabric.files import replace_file
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff;max-width:1100px}"
    "table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.2em .7em;border-bottom:1px solid #ddd;"
    "text-align:left;white-space:nowrap}h2{font-size:1.1em;margin:1.4em 0 .3em}svg{max-width:100%;height:auto}"
)


@dataclass(frozen=True, slots=True)
class Page:
    """`plots` are SVG documents; `tables` are (title, header, rows)."""

    title: str
    plots: tuple[str, ...]
    tables: tuple[tuple[str, Sequence[str], Sequence[Sequence[Any]]], ...]
    model: str
    left_out: str


def write_plot(path: Path, page: Page) -> None:
    """Write the page (`.html`) or its first plot (`.svg`) in one step. Raises InputError for another ending."""
    if path.suffix == ".svg" and page.plots:
        replace_file(path, page.plots[0])
    elif path.suffix in {".html", ".htm"}:
        replace_file(path, _html(page))
    else:
        text = f"a plot cannot be written as '{path.suffix or path.name}'"
        raise InputError(
            [Problem("plot.kind", str(path), text, f"end its name in .html{' or .svg' * bool(page.plots)}")]
        )


def _html(page: Page) -> str:
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(page.title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(page.title)}</h1>",
        *(f"<figure>{plot}</figure>" for plot in page.plots),
        *(_table(*table) for table in page.tables),
        f"<p><b>Model</b>: {escape(page.model)}</p><p><b>Left out</b>: {escape(page.left_out)}</p></html>\n",
    ]
    return "\n".join(parts)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(str(cell))}" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in row) for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{head}{body}</table>"
