"""`kvfabric capacity`: what a site can carry, and what is left for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.numbers import Finite, count
from fabric.cli.output import print_json, table
from fabric.cli.plotting import plot_option, save_plot

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.analysis.capacity import Capacity

_PATTERNS = ("all-to-all", "rail", "prefill-decode", "pool-decode", "ingress")


@click.command(name="capacity")
@click.argument("site")
@click.option("--pattern", "patterns", multiple=True, type=click.Choice(_PATTERNS), help="Default: all. Repeatable.")
@click.option("--qps", multiple=True, type=click.IntRange(1, 64), help="QPs a pair; default 1, 4, 8, 16. Repeatable.")
@click.option("--requests", default=0.0, type=Finite(), help="New connections a second to judge for.")
@click.option("--life", default=10.0, show_default=True, type=Finite(0.001), help="Seconds one lasts.")
@click.option("--request-size", default="0B", show_default=True, help="Bytes of a request, larger direction: 2MB.")
@click.option("--rtt", default="20ms", show_default=True, help="Round trip to the clients, for handshakes.")
@click.option("--polarised", is_flag=True, help="Every switch hashes alike.")
@click.option("--links", default=1, show_default=True, type=count(1), help="Fullest links to name in each tier.")
@plot_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    site: str,
    patterns: tuple[str, ...],
    qps: tuple[int, ...],
    requests: float,
    life: float,
    request_size: str,
    rtt: str,
    polarised: bool,
    links: int,
    plot: Path | None,
    form: str,
) -> int:
    """Say what SITE can carry: oversubscription, bisection, patterns with hashed ECMP, gateways, room to grow.

    Exit code 1 when the gateways cannot serve --requests.

    \b
    Examples:
      kvfabric capacity xoc-256
      kvfabric capacity xoc-1024 --pattern prefill-decode --qps 4 --qps 16 --plot capacity.html
      kvfabric capacity xoc-256 --requests 2000 --life 30 --request-size 2MB --rtt 40ms
      kvfabric capacity pods-100k --pattern all-to-all --qps 8
    """
    from fabric.analysis.capacity import capacity
    from fabric.analysis.flows.amounts import read_bytes, read_seconds
    from fabric.analysis.gateway_room import Requests
    from fabric.build import load_plan

    asked = Requests(requests, life, read_bytes(request_size, least=0), read_seconds(rtt))
    answer = capacity(
        load_plan(site),
        patterns=patterns or _PATTERNS,
        qps=qps or (1, 4, 8, 16),
        asked=asked,
        polarised=polarised,
        links=links,
    )
    if plot:
        from fabric.analysis.capacity_page import page_of

        save_plot(plot, page_of(answer))
    if form == "json":
        print_json(answer.to_dict())
    else:
        _print(answer)
    return EXIT_PASS if all(g.enough for g in answer.gateways) else EXIT_FAILED


def _print(answer: Capacity) -> None:
    from fabric.analysis import capacity_tables as tables
    from fabric.analysis.capacity import LEFT_OUT, MODEL

    for title, header, rows in tables.sections(answer):
        click.echo(f"{title}\n{table(header, rows)}\n")
    click.echo(f"Model: {MODEL}\nLeft out: {LEFT_OUT}")
