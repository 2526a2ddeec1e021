"""`kvfabric new`: a site to go on from."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.paths import Folder

_SIZES = ("xoc-64", "xoc-128", "xoc-256", "xoc-512", "xoc-1024")
_RAIL = "-rail"  # how the shipped rail-optimised sites are called


@click.command(
    epilog="""\b
Examples:
  kvfabric new berlin --size xoc-256
  kvfabric new paris --size xoc-256-rail          the same, rail-optimised
  kvfabric new edge-1 --size xoc-64 --profile minimal --out sites/edge-1
"""
)
@click.argument("name")
@click.option(
    "--size",
    required=True,
    type=click.Choice([*_SIZES, *(size + _RAIL for size in _SIZES)]),
    help="Which shipped site.",
)
@click.option("--profile", type=click.Choice(["minimal", "distributed"]), default="distributed", show_default=True)
@click.option(
    "--placement",
    type=click.Choice(["single-homed", "rail-optimised"]),
    help="Of the backend.  [default: single-homed; rail-optimised for a -rail size]",
)
@click.option("--compute-only", is_flag=True, help="No storage servers, border leaves and gateways.")
@click.option("--management", is_flag=True, help="Add the out-of-band network.")
@click.option("--out", type=Folder(), help="Folder to write; default: ./NAME")
def command(
    name: str, size: str, profile: str, placement: str | None, compute_only: bool, management: bool, out: Path | None
) -> None:
    """Write a new site NAME: an inventory that plans, renders and checks as it is."""
    from fabric.inventory.scaffold import Scaffold, scaffold, write_scaffold

    if size.endswith(_RAIL):
        size = size.removesuffix(_RAIL)
        if placement == "single-homed":
            message = f"--size {size}{_RAIL} is rail-optimised: say --size {size} for --placement single-homed"
            raise click.UsageError(message)
        placement = "rail-optimised"
    placement = placement or "single-homed"
    files = scaffold(Scaffold(name, size, profile, placement, compute_only, management))
    folder = out or Path(name)
    for path in write_scaffold(files, folder):
        click.echo(path)
    click.echo(f"next: kvfabric plan {folder}", err=True)
    click.echo(f"every key: docs/inventory.md; for an editor: kvfabric schema > {folder}/site.schema.json", err=True)
    click.echo("    and as first line of these files: # yaml-language-server: $schema=site.schema.json", err=True)
