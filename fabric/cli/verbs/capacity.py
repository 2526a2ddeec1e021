"""`kvfabric capacity`: what a site can carry, and what is left for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.numbers import Finite
from fabric.cli.output import print_json, table

if TYPE_CHECKING:
    from fabric.analysis.capacity import Capacity

_PATTERNS = ("all-to-all", "rail", "prefill-decode", "pool-decode", "ingress")


@click.command(name="capacity")
@click.argument("site")
@click.option("--pattern", "patterns", multiple=True, type=click.Choice(_PATTERNS), help="Default: all. Repeatable.")
@click.option("--qps", multiple=True, type=click.IntRange(1, 64), help="QPs a pair; default 1, 4, 8, 16. Repeatable.")
@click.option("--requests", default=0.0, type=Finite(), help="New connections a second to judge for.")
@click.option("--life", default=10.0, show_default=True, type=Finite(0.001), help="Seconds one lasts.")
@click.option("--polarised", is_flag=True, help="Every switch hashes alike.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    site: str,
    patterns: tuple[str, ...],
    qps: tuple[int, ...],
    requests: float,
    life: float,
    polarised: bool,
    form: str,
) -> int:
    """Say what SITE can carry: oversubscription, bisection, patterns with hashed ECMP, gateways, room to grow.

    Exit code 1 when a gateway pool cannot serve --requests.

    \b
    Examples:
      kvfabric capacity xoc-256
      kvfabric capacity xoc-1024 --pattern prefill-decode --qps 4 --qps 16
      kvfabric capacity xoc-256 --requests 2000 --life 30
    """
    from fabric.analysis.capacity import capacity
    from fabric.build import load_plan

    answer = capacity(
        load_plan(site),
        patterns=patterns or _PATTERNS,
        qps=qps or (1, 4, 8, 16),
        requests_per_s=requests,
        life_s=life,
        polarised=polarised,
    )
    if form == "json":
        print_json(answer.to_dict())
    else:
        _print(answer)
    return EXIT_PASS if all(g.enough for g in answer.gateways) else EXIT_FAILED


def _print(answer: Capacity) -> None:
    from fabric.analysis.capacity import MODEL, layers

    click.echo("Tiers (Gb/s one way)")
    header = ("fabric", "leaves", "spines", "NIC ports", "down", "up", "oversubscription", "bisection", "spare ports")
    rows = [
        (t.fabric, t.leaves, t.spines, t.endpoints, t.down, t.up, f"{t.ratio:.2f}:1", t.bisection, t.spare_ports)
        for t in answer.tiers
    ]
    click.echo(table(header, rows))
    click.echo("\nPatterns (Gb/s, sum over pairs)")
    columns = (
        "fabric",
        "pattern",
        "pairs",
        "on one leaf",
        "QPs",
        "ideal",
        "hashed",
        "of ideal",
        "slowest pair",
        "fullest link",
    )
    lines = [
        (
            f,
            o.pattern,
            o.pairs,
            f"{o.local:.0%}",
            o.qps,
            f"{o.ideal:.0f}",
            f"{o.hashed:.0f}",
            f"{o.efficiency:.0%}",
            f"{o.worst:.1f}",
            o.busiest[0][0] if o.busiest else "",
        )
        for f, o in answer.outcomes
    ]
    click.echo(table(columns, lines))
    if answer.gateways:
        click.echo(f"\nGateways: {answer.gateway_gbps} Gb/s in all, {answer.conntrack} conntrack entries in all")
        header = (
            "tenant",
            "exposure",
            "mode",
            "addresses",
            "NAT ports",
            "idle s",
            "new/s sustained",
            "asked/s",
            "enough",
        )
        rooms = [
            (
                g.tenant,
                g.exposure,
                g.mode,
                g.addresses,
                g.nat_ports,
                g.idle_timeout_s,
                f"{g.new_per_s:.0f}",
                f"{g.asked_per_s:.0f}",
                "yes" if g.enough else "no",
            )
            for g in answer.gateways
        ]
        click.echo(table(header, rooms))
    click.echo("\nLayers of a disaggregated stack")
    click.echo(table(("layer", "what the network gives", "from"), layers(answer)))
    click.echo("\nLeft in pools")
    click.echo(table(("pool", "range", "used", "left"), answer.pools))
    click.echo(f"\nModel: {MODEL}")
