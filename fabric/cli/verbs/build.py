"""`kvfabric build`: the whole output folder of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json, print_problems
from fabric.cli.paths import Folder

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    epilog="""\b
Examples:
  kvfabric build xoc-256 --out out            everything, below out/xoc-256
  kvfabric build my-site --out out --external  and ask YANG, vtysh and nft too
  kvfabric build my-site --out out --format json   what was written and found, for a script
"""
)
@click.argument("site")
@click.option("--out", required=True, type=Folder(), help="Writes DIR/<site>/...")
@click.option("--external", is_flag=True, help="Run the outside validators on what was written.")
@click.option("--prune", is_flag=True, help="Remove configurations that kvfabric wrote and the plan no longer has.")
@click.option("--force", is_flag=True, help="Exit 0 even when the check has findings; they are still shown.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(ctx: click.Context, site: str, out: Path, external: bool, prune: bool, force: bool, form: str) -> None:
    """Plan, check and render SITE, write its cable files, and remember its numbers in the ledger."""
    from fabric.output_folder import build_output

    built = build_output(site, out, external=external, progress=lambda text: click.echo(text, err=True), prune=prune)
    if form == "json":
        print_json(built.to_dict())
    else:
        click.echo(built.text)
    print_problems(built.findings)
    ctx.exit(EXIT_PASS if force or not built.failed else EXIT_FAILED)
