"""`kvfabric kv benefit`: is splitting prefill and decode worth the transfer, and for which requests."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.numbers import Finite, count
from fabric.cli.output import print_json, table
from fabric.cli.plotting import plot_option, save_plot

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--ttft-together", default=3.4, show_default=True, type=Finite(), help="Time to first token, phases together, s."
)
@click.option("--ttft-split", default=2.1, show_default=True, type=Finite(), help="The same with the phases split, s.")
@click.option(
    "--tpot-together", default=45.0, show_default=True, type=Finite(), help="Time per output token, together, ms."
)
@click.option("--tpot-split", default=68.0, show_default=True, type=Finite(), help="The same, split, ms.")
@click.option("--transfer", default=180.0, show_default=True, type=Finite(), help="KV transfer at p95, ms.")
@click.option("--ttft-includes-transfer", is_flag=True, help="The split TTFT has the transfer in it already.")
@click.option("--model", help="Also ask per request bucket, for this model.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The same from a config.json."
)
@click.option("--trace", type=_FILE, help="CSV of requests.")
@click.option(
    "--requests", "count", default=400, show_default=True, type=count(1, 1_000_000), help="Requests to generate."
)
@click.option("--seed", default=1, show_default=True, type=count(0))
@click.option("--nodes", default=8, show_default=True, type=count(1, 100_000), help="Nodes for the placement rules.")
@click.option("--tp", default=8, show_default=True, type=count())
@click.option(
    "--line-gbps", default=400.0, show_default=True, type=Finite(), help="Line rate of a port, one way, Gb/s."
)
@click.option("--ports", default=1, show_default=True, type=count())
@click.option("--prefill-tokens-per-s", default=10_000.0, show_default=True, type=Finite(1e-6))
@plot_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    ttft_together: float,
    ttft_split: float,
    tpot_together: float,
    tpot_split: float,
    transfer: float,
    ttft_includes_transfer: bool,
    model: str | None,
    config: Path | None,
    trace: Path | None,
    count: int,
    seed: int,
    nodes: int,
    tp: int,
    line_gbps: float,
    ports: int,
    prefill_tokens_per_s: float,
    plot: Path | None,
    form: str,
) -> None:
    """Prefill saved - KV transfer - extra decode: for one measured case, and per bucket of a request set.

    Without numbers it answers the published case. With --model it also goes through a trace (or a generated set) and
    four stress sets, and compares placement rules on each.

    \b
    Examples:
      kvfabric kv benefit
      kvfabric kv benefit --ttft-together 2.0 --ttft-split 1.2 --tpot-together 30 --tpot-split 33 --transfer 90
      kvfabric kv benefit --plot benefit.html
      kvfabric kv benefit --model llama-3.1-70b --trace requests.csv --line-gbps 200
    """
    from dataclasses import asdict

    from fabric.kv import ask, report
    from fabric.kv.benefit import LEFT_OUT, METHOD, MeasuredCase, verdict
    from fabric.kv.move import Conditions

    case = MeasuredCase(
        ttft_together, ttft_split, tpot_together / 1e3, tpot_split / 1e3, transfer / 1e3, ttft_includes_transfer
    )
    buckets, placements = {}, {}
    if model or config or trace:
        chosen = ask.chosen_model(model, config, None, None, None)
        under = Conditions(tp=tp, line_gbps=line_gbps, ports=ports, prefill_tokens_per_s=prefill_tokens_per_s)
        sets = ask.request_sets(trace, count, seed)
        buckets = ask.benefit_of_sets(sets, chosen, under, case.loss_per_token_s)
        placements = ask.placements_of_sets(sets, chosen, under, nodes)
    if plot is not None:
        from fabric.kv.pages import benefit_page

        save_plot(plot, benefit_page(case, buckets, placements))
    if form == "json":
        print_json(
            {
                "method": METHOD,
                "left_out": LEFT_OUT,
                "case": {**asdict(case), "verdict": verdict(case), "longest_worth": case.longest_worth()},
                "buckets": {name: [asdict(row) for row in rows] for name, rows in buckets.items()},
                "placements": {name: [asdict(row) for row in rows] for name, rows in placements.items()},
            }
        )
        return
    click.echo("\n".join(report.case_lines(case)) + "\n")
    click.echo(table(*report.case_table(case)))
    if buckets:
        click.echo("\n" + table(*report.buckets_table(buckets)))
        click.echo("\n" + table(*report.placements_table(placements)))
    click.echo(f"\nModel: {METHOD}\nLeft out: {LEFT_OUT}")
