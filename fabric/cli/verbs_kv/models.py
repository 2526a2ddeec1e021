"""`kvfabric kv models`: the shipped models and what a token of each costs."""

from __future__ import annotations

import click

from fabric.cli.numbers import count
from fabric.cli.output import print_json, table


@click.command()
@click.option("--tokens", default=131_072, show_default=True, type=count(), help="Length for the totals.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(tokens: int, form: str) -> None:
    """List the shipped models with their bytes per token.

    \b
    Examples:
      kvfabric kv models
      kvfabric kv models --tokens 8192 --format json
    """
    from fabric.kv.model import load_model, model_names
    from fabric.kv.report import models_table
    from fabric.kv.size import METHOD, NOT_COUNTED, kv_size

    if form == "json":
        print_json([kv_size(load_model(name), tokens).to_dict() for name in model_names()])
    else:
        click.echo(table(*models_table(tokens)))
        click.echo(f"\nModel: {METHOD}; exact, without blocks\nLeft out: {'; '.join(NOT_COUNTED)}")
