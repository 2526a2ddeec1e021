"""`kvfabric kv move`: move a cache or compute it again, with break-even points, records and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from fabric.cli.numbers import Finite, count
from fabric.cli.output import print_json, table
from fabric.cli.paths import File
from fabric.cli.plotting import plot_option, save_plot

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_CONDITIONS = [
    click.option("--dtype", help="Element type  [fp16]"),
    click.option("--tp", type=count(), help="Tensor-parallel ranks  [1]"),
    click.option("--block-tokens", type=count(), help="Tokens per block  [16]"),
    click.option("--layout", type=click.Choice(["layer", "contiguous"]), help="[layer]"),
    click.option("--line-gbps", type=Finite(), help="Line rate of a port, one way, Gb/s  [400]"),
    click.option("--ports", type=count(), help="Ports used at once  [1]"),
    click.option("--mtu", type=count(), help="RDMA path MTU, bytes  [4096]"),
    click.option("--efficiency", type=Finite(), help="Share of the MTU's payload ceiling  [0.9]"),
    click.option("--queue-s", type=Finite(), help="Wait before the first byte, s  [0]"),
    click.option("--read-s", type=Finite(), help="Cost of reading the source, s  [0]"),
    click.option("--per-piece-s", type=Finite(), help="Posting cost of a piece, s  [1e-6]"),
    click.option("--control-s", type=Finite(), help="Lookup and handshake, s  [0.002]"),
    click.option("--prefetch-window-s", type=Finite(), help="Time hidden behind other work, s  [0]"),
    click.option("--prefill-tokens-per-s", type=Finite(0, 1e15), help="Prefill rate of the whole group  [10000]"),
    click.option("--quadratic-tokens2-per-s", type=Finite(0, 1e24), help="Rate of the quadratic part, 0: none  [0]"),
]


def _with_conditions(function: Any) -> Any:
    for option in reversed(_CONDITIONS):
        function = option(function)
    return function


@click.command()
@click.option("--model", help="Shipped model, see `kvfabric kv models`.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A Hugging Face config.json."
)
@click.option("--tokens", type=count(), help="Tokens whose cache exists elsewhere.")
@click.option("--request", default="", help="Name of the request in a record.")
@click.option(
    "--record",
    type=File(),
    help="Append the decision to this JSON lines file.",
)
@click.option(
    "--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Make recorded decisions again."
)
@plot_option
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@_with_conditions
def command(
    *,
    model: str | None,
    config: Path | None,
    tokens: int | None,
    request: str,
    record: Path | None,
    replay: Path | None,
    plot: Path | None,
    form: str,
    **conditions: Any,
) -> None:
    """Compare moving a cache with computing it again: five terms, break-even length and bandwidth.

    A rate is one direction: 400 Gb/s is 50 GB/s. With --replay, the options given replace the recorded conditions.

    \b
    Examples:
      kvfabric kv move --model llama-3.1-70b --tokens 61000 --tp 8 --line-gbps 400 --ports 8
      kvfabric kv move --model deepseek-v3 --tokens 8000 --record decisions.jsonl --request r1
      kvfabric kv move --model llama-3.1-70b --tokens 61000 --tp 8 --plot move.svg
      kvfabric kv move --replay decisions.jsonl --line-gbps 100
    """
    changes = {name: value for name, value in conditions.items() if value is not None}
    if replay is not None and plot is not None:
        raise click.UsageError("--plot draws one question; it does not go with --replay")
    if replay is not None:
        _replay(replay, changes, form)
        return
    if tokens is None:
        raise click.UsageError("--tokens is needed (or --replay FILE)")
    from fabric.kv.ask import chosen_model
    from fabric.kv.move import (
        LEFT_OUT,
        METHOD,
        Conditions,
        break_even_gbps,
        break_even_tokens,
        decide,
        write_decisions,
    )
    from fabric.kv.report import move_lines

    chosen = chosen_model(model, config, None, None, None)
    under = Conditions(**changes)
    decision = decide(chosen, tokens, under, request)
    length, rate = break_even_tokens(chosen, under), break_even_gbps(chosen, tokens, under)
    if record is not None:
        write_decisions(record, [decision])
    if plot is not None:
        from fabric.kv.pages import move_page

        save_plot(plot, move_page(chosen, decision, length, rate))
    if form == "json":
        said = {"method": METHOD, "left_out": LEFT_OUT}
        print_json({**said, **decision.to_dict(), "break_even_tokens": length, "break_even_gbps_per_port": rate})
    else:
        click.echo("\n".join(move_lines(decision, length, rate)))
        click.echo(f"\nModel: {METHOD}\nLeft out: {LEFT_OUT}")


def _replay(path: Path, changes: dict[str, Any], form: str) -> None:
    from fabric.kv.move import read_decisions, replay
    from fabric.kv.report import replay_table

    pairs = replay(read_decisions(path), changes)
    if form == "json":
        print_json([{"recorded": old.to_dict(), "replayed": new.to_dict()} for old, new in pairs])
    else:
        click.echo(table(*replay_table(pairs)))
        changed = sum(old.choice != new.choice for old, new in pairs)
        click.echo(f"{len(pairs)} decisions, {changed} differ from the record")
