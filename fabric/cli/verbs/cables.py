"""`kvfabric cables`: the plan's cables in the form somebody else reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.paths import Folder

if TYPE_CHECKING:
    from pathlib import Path

_EPILOG = """\b
Examples:
  kvfabric cables xoc-256 --format connectivity-map --fabric backend
  kvfabric cables xoc-256 --format wiring --out out/wiring
  kvfabric cables xoc-256 --format labels --out out
"""


class _FormatType(click.ParamType[str]):
    """One of the formats that are there; listed only when asked, so that help stays quick."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from fabric.interop.formats import formats

        if value not in formats():
            self.fail(f"{value!r} is not one of {', '.join(formats())}", param, ctx)
        return value


@click.command("cables", epilog=_EPILOG)
@click.argument("site")
@click.option(
    "--format",
    "form",
    type=_FormatType(),
    default="connectivity-map",
    show_default=True,
    help="connectivity-map, ocp12, netbox, wiring, wiring-gateways, labels, bom or ports.",
)
@click.option("--fabric", "fabrics", multiple=True, help="Only this fabric; may be given more than once.")
@click.option("--out", type=Folder(), help="Folder to write to; default: stdout.")
def command(site: str, form: str, fabrics: tuple[str, ...], out: Path | None) -> None:
    """Write the cable map, NetBox cables, Hedgehog wiring, labels, bill of materials or port list of SITE."""
    from fabric.build import load_plan
    from fabric.interop.formats import write
    from fabric.interop.output import print_files, require_apart, write_files

    files = write(load_plan(site), form, fabrics)
    if out is None:
        print_files(files)
    else:
        require_apart(site, out, files)
        for path in write_files(files, out):
            click.echo(f"wrote {path}", err=True)
