"""`kvfabric failures`: what every single and double failure leaves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json, table

if TYPE_CHECKING:
    from fabric.analysis.failures import Impact


@click.command(name="failures")
@click.argument("site")
@click.option("--doubles", is_flag=True, help="Every double failure too, by class.")
@click.option("--worst", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many to show.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a heat map of the single failures."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, site: str, doubles: bool, worst: int, html: Path | None, form: str) -> int:
    """Fail every link, optic, switch, pipeline, gateway and rack of SITE and say what is left.

    Exit code 1 when a single failure that is no rack or switch splits leaves or ends a gateway group.

    \b
    Examples:
      kvfabric failures xoc-256
      kvfabric failures xoc-1024 --doubles --worst 20
      kvfabric failures xoc-256 --html failures.html
    """
    from fabric.analysis.failures import Sweep
    from fabric.build import load_plan

    sweep = Sweep(load_plan(site))
    singles = sweep.singles()
    pairs = sweep.doubles() if doubles else []
    if html:
        from fabric.analysis.heat_map import write_heat_map

        write_heat_map(html, sweep.plan, singles)
        click.echo(f"{html} written", err=True)
    if form == "json":
        print_json(
            {
                "parts": len(sweep.parts),
                "singles": [i.to_dict() for i in singles],
                "double_classes": [i.to_dict() for i in pairs],
            }
        )
    else:
        click.echo(f"{len(singles)} single failures, the worst {min(worst, len(singles))}:")
        click.echo(_table(singles[:worst]))
        if doubles:
            count = sum(i.alike for i in pairs)
            click.echo(f"\n{count} double failures in {len(pairs)} classes, the worst {min(worst, len(pairs))}:")
            click.echo(_table(pairs[:worst]))
    bad = [i for i in singles if (i.split or i.groups_dead) and not {"rack", "switch"} & set(i.kinds)]
    return EXIT_FAILED if bad else EXIT_PASS


def _table(impacts: list[Impact]) -> str:
    header = (
        "what",
        "alike",
        "servers cut",
        "tenants",
        "leaves split",
        "worst leaf",
        "fabric",
        "skew",
        "gateways left",
        "groups dead",
    )
    return table(
        header,
        [
            (
                " and ".join(f"{k} {n}" for k, n in zip(i.kinds, i.parts, strict=True)),
                i.alike,
                len(i.cut),
                ", ".join(f"{t} {n}" for t, n in i.tenants.items()) or "-",
                i.split,
                f"{i.residual:.0%}",
                f"{i.joint:.1%}",
                f"{i.skew:.2f}",
                i.gateways_left,
                ", ".join(i.groups_dead) or "-",
            )
            for i in impacts
        ],
    )
