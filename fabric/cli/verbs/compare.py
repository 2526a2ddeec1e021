"""`kvfabric compare`: a published or measured cable map against the plan."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS

_EPILOG = """\b
Examples:
  kvfabric compare xoc-256-rail connectivity-map.csv
  kvfabric compare xoc-256 wiring-backend.yaml --fabric backend --all

\b
Exit codes: 0 the same cabling, 1 it differs, 2 input error.
"""


@click.command("compare", epilog=_EPILOG)
@click.argument("site")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--fabric", "fabrics", multiple=True, help="Compare only this fabric; may be given more than once.")
@click.option("--all", "everything", is_flag=True, help="Show every cable, not the first ten of each kind.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(site: str, file: Path, fabrics: tuple[str, ...], everything: bool, form: str) -> int:
    """Say how the cable map in FILE differs from the plan of SITE.

    FILE is an OCP connectivity map (11 or 12 columns), a NetBox cable export or Hedgehog wiring. Row order, which end
    comes first and consistent renames make no difference.
    """
    from fabric.build import load_plan
    from fabric.cli.output import print_json
    from fabric.interop.comparing import compare
    from fabric.interop.readers import read_cable_map

    given = read_cable_map(file)
    comparison = compare(load_plan(site), given, fabrics)
    if form == "json":
        print_json(comparison.to_dict())
    else:
        click.echo(comparison.text(0 if everything else 10))
    return EXIT_PASS if comparison.same else EXIT_FAILED
