"""`kvfabric path`: the proof that RoCE holds between two NICs, from the rendered files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json, table

if TYPE_CHECKING:
    from fabric.analysis.roce_path import Proof


@click.command(name="path")
@click.argument("site")
@click.option("--from", "source", required=True, metavar="SERVER[:NIC]", help="Who sends.")
@click.option("--to", "target", required=True, metavar="SERVER[:NIC]", help="Who receives; same rail by default.")
@click.option("--class", "traffic", default="", help="Lossless class; default: the first.")
@click.option("--rendered", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Files to read.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, site: str, source: str, target: str, traffic: str, rendered: Path | None, form: str) -> int:
    """Follow a packet of the lossless class from NIC to NIC through the rendered files of SITE.

    Exit code 0 when every value on every equal-cost path agrees, 1 when one does not, 3 when one could not be read.

    \b
    Examples:
      kvfabric path xoc-256 --from compute-001 --to compute-032
      kvfabric path lab --from compute-001:be0-port0 --to compute-003:be1-port0 --rendered out/lab/configs
    """
    from fabric.analysis.check import rendered_site
    from fabric.analysis.rendered import Rendered
    from fabric.analysis.roce_path import prove
    from fabric.build import load_plan

    plan = load_plan(site)
    files = Rendered.from_folder(rendered) if rendered else rendered_site(plan)
    proof = prove(plan, files, source, target, traffic)
    if form == "json":
        print_json(proof.to_dict())
    else:
        _print(proof)
    return EXIT_FAILED if proof.wrong else EXIT_COULD_NOT_RUN if proof.unknown else EXIT_PASS


def _print(proof: Proof) -> None:
    words = {True: "ok", False: "WRONG", None: "unknown"}
    tunnel = "in a tunnel; the outer header copies the inner DSCP" if proof.tunnelled else "on one leaf"
    click.echo(f"{proof.source} to {proof.target}, class {proof.traffic}, {tunnel}; {proof.paths} equal-cost paths\n")
    rows = [
        (f"{hop.device} {hop.interface} {hop.way}", v.name, v.value, v.want, words[v.ok], f"{v.file} {v.key}")
        for hop in proof.hops
        for v in hop.values
    ]
    click.echo(table(("hop", "what", "value", "wanted", "", "from"), rows))
    if proof.holds:
        click.echo("\nRoCE holds on every path")
        return
    for hop in (*proof.wrong, *proof.unknown)[:1]:
        for v in hop.wrong or hop.values[:1]:
            where = f"{v.file}:{v.line}" if v.line else v.file
            click.echo(
                f"\nFirst disagreement: {hop.device} {hop.interface} {hop.way}: {v.name} is {v.value}, wanted {v.want}"
            )
            click.echo(f"Change: {where} {v.key}")
    click.echo(f"{len(proof.wrong)} ports disagree, {len(proof.unknown)} could not be read, over all paths")
