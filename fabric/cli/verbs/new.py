"""`kvfabric new`: a site to go on from."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.paths import Folder


@click.command(
    epilog="""\b
Examples:
  kvfabric new berlin --size xoc-256
  kvfabric new edge-1 --size xoc-64 --profile minimal --out sites/edge-1
"""
)
@click.argument("name")
@click.option("--size", required=True, type=click.Choice(["xoc-64", "xoc-128", "xoc-256", "xoc-512", "xoc-1024"]))
@click.option("--profile", type=click.Choice(["minimal", "distributed"]), default="distributed", show_default=True)
@click.option(
    "--placement", type=click.Choice(["single-homed", "rail-optimised"]), default="single-homed", show_default=True
)
@click.option("--compute-only", is_flag=True, help="No storage servers, border leaves and gateways.")
@click.option("--management", is_flag=True, help="Add the out-of-band network.")
@click.option("--out", type=Folder(), help="Folder to write; default: ./NAME")
def command(
    name: str, size: str, profile: str, placement: str, compute_only: bool, management: bool, out: Path | None
) -> None:
    """Write a new site NAME: an inventory that plans, renders and checks as it is."""
    from fabric.inventory.scaffold import Scaffold, scaffold, write_scaffold

    files = scaffold(Scaffold(name, size, profile, placement, compute_only, management))
    folder = out or Path(name)
    for path in write_scaffold(files, folder):
        click.echo(path)
    click.echo(f"next: kvfabric plan {folder}", err=True)
