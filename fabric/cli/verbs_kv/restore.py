"""`kvfabric kv restore`: many nodes pull KV cache from a pool at once, on the site's real topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.numbers import count
from fabric.cli.output import print_json, table
from fabric.cli.plotting import plot_option, save_plot

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("site")
@click.option("--nodes", required=True, type=count(), help="Nodes that pull at once.")
@click.option("--size", required=True, help="Bytes for each node: 20GB, 8GiB, 500MB.")
@click.option("--window", default="1s", show_default=True, help="Time each has from its start: 1s, 500ms.")
@click.option(
    "--arrivals",
    default="together",
    show_default=True,
    type=click.Choice(["together", "even", "poisson"]),
    help="When the nodes start.",
)
@click.option("--over", default="1s", show_default=True, help="Time that even or poisson arrivals are spread over.")
@click.option("--fabric", default="", help="Default: the fabric with RDMA.")
@click.option("--pool", multiple=True, metavar="SERVER", help="Servers that hold the cache. Repeatable.")
@click.option("--pool-ports", default=0, type=count(0), help="Use only so many ports of the pool.")
@click.option("--reader-ports", default=1, show_default=True, type=count(1, 64), help="NIC ports a node reads with.")
@click.option("--near", is_flag=True, help="Place readers on the pool's leaves first.")
@click.option("--qps", default=8, show_default=True, type=click.IntRange(1, 64), help="QPs a port.")
@click.option("--seed", default=0, show_default=True, type=count(0), help="Of hashing and of poisson arrivals.")
@plot_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, site: str, size: str, window: str, over: str, plot: Path | None, form: str, **asked: Any) -> int:
    """Say how long a restore burst takes on SITE, what binds it, and what would help. Exit 1 when a node is late.

    \b
    Examples:
      kvfabric kv restore xoc-256 --nodes 8 --size 20GB --window 1s
      kvfabric kv restore xoc-256 --nodes 8 --size 20GB --pool compute-032 --pool-ports 2
      kvfabric kv restore xoc-256 --nodes 24 --size 20GB --arrivals poisson --over 3s --plot restore.html
    """
    from dataclasses import replace

    from fabric.analysis.flows.amounts import read_bytes, read_seconds
    from fabric.analysis.flows.restore import LEFT_OUT, MODEL, Arrivals, Burst, restore
    from fabric.build import load_plan

    arrivals = Arrivals(asked.pop("arrivals"))
    spread = read_seconds(over)
    burst = Burst(size_bytes=read_bytes(size), window_s=read_seconds(window), arrivals=arrivals, **asked)
    burst = replace(burst, over_s=0.0 if arrivals is Arrivals.TOGETHER else spread)
    answer = restore(load_plan(site), burst)
    if plot:
        from fabric.analysis.flows.restore_page import page_of

        save_plot(plot, page_of(answer, site))
    if form == "json":
        print_json(answer.to_dict())
    else:
        from fabric.analysis.flows.restore_page import figures, fixes

        click.echo(table(("restore", f"{burst.nodes} x {size} in {window}"), figures(answer)))
        if answer.fixes:
            click.echo("\n" + table(*fixes(answer)))
        click.echo(f"\nModel: {MODEL}\nLeft out: {LEFT_OUT}")
    return EXIT_FAILED if answer.late else EXIT_PASS
