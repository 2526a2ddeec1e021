"""`kvfabric failures`: what every single and double failure leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json, table
from fabric.cli.plotting import plot_option, save_plot

if TYPE_CHECKING:
    from pathlib import Path


@click.command(name="failures")
@click.argument("site")
@click.option("--doubles", is_flag=True, help="Every double failure too, by class.")
@click.option("--worst", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many to show.")
@plot_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, site: str, doubles: bool, worst: int, plot: Path | None, form: str) -> int:
    """Fail every link, optic, switch, pipeline, gateway and rack of SITE and say what is left.

    Exit code 1 when a single failure that is no rack or switch splits leaves or ends a gateway group.

    \b
    Examples:
      kvfabric failures xoc-256
      kvfabric failures xoc-1024 --doubles --worst 20
      kvfabric failures xoc-256 --plot failures.html
    """
    from fabric.analysis.failures import LEFT_OUT, MODEL, Sweep
    from fabric.analysis.heat_map import HEADER, page_of, rows_of
    from fabric.build import load_plan

    sweep = Sweep(load_plan(site, two_tiers_for="failure analysis"))
    singles = sweep.singles()
    pairs = sweep.doubles() if doubles else []
    if plot:
        save_plot(plot, page_of(sweep.plan, singles, pairs, worst))
    if form == "json":
        print_json(
            {
                "model": MODEL,
                "left_out": LEFT_OUT,
                "parts": len(sweep.parts),
                "singles": [i.to_dict() for i in singles],
                "double_classes": [i.to_dict() for i in pairs],
            }
        )
    else:
        click.echo(f"{len(singles)} single failures, the worst {min(worst, len(singles))}:")
        click.echo(table(HEADER, rows_of(singles[:worst])))
        if doubles:
            count = sum(i.alike for i in pairs)
            click.echo(f"\n{count} double failures in {len(pairs)} classes, the worst {min(worst, len(pairs))}:")
            click.echo(table(HEADER, rows_of(pairs[:worst])))
        click.echo(f"\nModel: {MODEL}\nLeft out: {LEFT_OUT}")
    bad = [i for i in singles if (i.split or i.groups_dead) and not {"rack", "switch"} & set(i.kinds)]
    return EXIT_FAILED if bad else EXIT_PASS
