"""The option that writes an answer as a page or a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.paths import File

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.charts.page import Page

plot_option = click.option(
    "--plot",
    type=File(),
    metavar="FILE",
    help="Write plots and tables to FILE.html, or the first plot to FILE.svg.",
)


def save_plot(path: Path, page: Page) -> None:
    """Write the file and say so on stderr."""
    from fabric.charts.page import write_plot

    write_plot(path, page)
    click.echo(f"{path} written", err=True)
