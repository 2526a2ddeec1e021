"""`kvfabric import`: somebody else's description of a site into an inventory."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.paths import Folder

_EPILOG = """\b
Examples:
  kvfabric import topology-map.yaml --out sites/opg-64
  kvfabric import wiring-backend.yaml tenant-a-vpc.yaml --out sites/dc1
  kvfabric import lab.clab.yml --out sites/lab
"""


@click.command("import", epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=Folder(), help="Folder of the new site.")
@click.option("--name", help="Name of the site; default: the folder's name.")
@click.option("--force", is_flag=True, help="Write over an inventory that is already there.")
def command(files: tuple[Path, ...], out: Path, name: str | None, force: bool) -> int:
    """Write an inventory from an OCP topology map, Hedgehog wiring and VPCs, or a containerlab topology.

    What could not be taken over is said here and at the top of the new site.yaml. Exit code 1 when it is written but
    cannot be planned before a person has added what is missing.
    """
    from fabric.cli.output import print_problems
    from fabric.interop.importing import import_files
    from fabric.interop.importing.draft import check, refuse_existing
    from fabric.interop.output import write_files

    if not force:
        refuse_existing(out)
    draft = import_files(files, name or out.resolve().name)
    for path in write_files(draft.files(), out):
        click.echo(path)
    for note in draft.notes:
        click.echo(f"not taken over: {note}", err=True)
    problems = check(out)
    if problems:
        click.echo("the new inventory needs your attention:", err=True)
        print_problems(problems)
    return EXIT_FAILED if any(problem.severity == "error" for problem in problems) else EXIT_PASS
