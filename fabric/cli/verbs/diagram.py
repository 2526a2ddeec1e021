"""`kvfabric diagram`: a picture of the site that a person can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.paths import File

if TYPE_CHECKING:
    from pathlib import Path

_EPILOG = """\b
Examples:
  kvfabric diagram xoc-256 --out xoc-256.svg
  kvfabric diagram xoc-1024 --out xoc-1024.html     zoom, highlighting, light and dark
"""


@click.command("diagram", epilog=_EPILOG)
@click.argument("site")
@click.option("--out", required=True, type=File(), help="FILE.svg or FILE.html.")
def command(site: str, out: Path) -> None:
    """Draw SITE: a panel for each fabric, spines, leaves, servers by class and tenant, gateways and edge."""
    if out.suffix.lower() not in {".svg", ".html"}:
        raise click.BadParameter(f"{out.name} must end in .svg or .html", param_hint="--out")
    from fabric.build import load_plan
    from fabric.interop.diagram import diagram
    from fabric.interop.output import write_files

    text = diagram(load_plan(site, two_tiers_for="the diagram"), html=out.suffix.lower() == ".html")
    for path in write_files({out.name: text}, out.parent):
        click.echo(f"wrote {path}", err=True)
