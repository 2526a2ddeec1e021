"""`kvfabric lab list`: which labs of this user run, and what each is."""

from __future__ import annotations

import click

from fabric.cli.output import print_json, table


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(form: str) -> None:
    """List the running labs: site, engine, number of nodes, since when, folder. Example: kvfabric lab list"""
    from datetime import UTC, datetime

    from labs import state

    rows = state.listed()
    if form == "json":
        print_json(rows)
        return
    if not rows:
        click.echo("no lab is running", err=True)
        return
    columns = ("lab", "site", "engine", "nodes", "since", "folder")
    shown = [{**row, "since": datetime.fromtimestamp(row["since"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")} for row in rows]
    click.echo(table(columns, [[row[column] for column in columns] for row in shown]))
