"""`kvfabric report`: write a run again in any format, or say what got worse between two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.numbers import Finite
from fabric.cli.paths import run_to_read

if TYPE_CHECKING:
    from pathlib import Path


@click.group()
def command() -> None:
    """Work with the runs that `kvfabric accept` wrote.

    \b
    Examples:
      kvfabric report show out/xoc-256/runs/20261130T060000Z --format markdown
      kvfabric report diff BASELINE RUN
    """


@command.command()
@click.argument("run", type=run_to_read())
@click.option(
    "--format",
    "style",
    default="markdown",
    type=click.Choice(["html", "junit", "json", "csv", "markdown", "prometheus"]),
)
def show(run: Path, style: str) -> int:
    """Print the run in folder RUN; one that is going on or was killed can be read too, and says `interrupted`.

    \b
    Examples:
      kvfabric report show out/lab/runs/20261130T060000Z
      kvfabric report show out/lab/runs/20261130T060000Z --format json | jq .verdict
    """
    from validators.report.write import FORMATS, load_run

    click.echo(FORMATS[style][1](load_run(run)), nl=False)
    return EXIT_PASS


@command.command()
@click.argument("baseline", type=run_to_read())
@click.argument("run", type=run_to_read())
@click.option(
    "--tolerance", default=0.05, show_default=True, type=Finite(), help="share by which a measurement may move"
)
@click.option("--format", "style", default="text", type=click.Choice(["text", "json"]))
def diff(baseline: Path, run: Path, tolerance: float, style: str) -> int:
    """Say what got worse from BASELINE to RUN, then what is new, gone or better; exit 1 when something did.

    \b
    Examples:
      kvfabric report diff out/lab/runs/first out/lab/runs/20261130T060000Z
      kvfabric report diff BASELINE RUN --tolerance 0.1 --format json
    """
    from fabric.cli.output import print_json, table
    from validators.report.difference import compare, plain_names
    from validators.report.write import load_run

    first, second = load_run(baseline), load_run(run)
    changes = compare(first, second, tolerance)
    names = plain_names({change.case for change in changes})
    if style == "json":
        print_json([change.to_dict() for change in changes])
    else:
        click.echo(f"baseline: {first.headline}\nrun: {second.headline}\n")
        click.echo(
            table(("change", "case", "what"), [(c.kind, names[c.case], c.text) for c in changes])
            if changes
            else "no difference"
        )
    return EXIT_FAILED if any(change.kind in {"worse", "slower", "gone"} for change in changes) else EXIT_PASS
