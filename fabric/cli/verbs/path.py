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
@click.option("--source-port", type=click.IntRange(0, 65535), help="UDP source port of a QP: which path it takes.")
@click.option("--rendered", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Files to read.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *, site: str, source: str, target: str, traffic: str, source_port: int | None, rendered: Path | None, form: str
) -> int:
    """Follow a packet of the lossless class from NIC to NIC through the rendered files of SITE.

    Exit code 0 when every value on every equal-cost path agrees, 1 when one does not, 3 when one could not be read.

    \b
    Examples:
      kvfabric path xoc-256 --from compute-001 --to compute-016
      kvfabric path xoc-256 --from compute-001 --to compute-016 --source-port 49153
      kvfabric path lab --from compute-001:be0-port0 --to compute-003:be1-port0 --rendered out/lab/configs
    """
    from fabric.analysis.check import rendered_site
    from fabric.analysis.rendered import Rendered
    from fabric.analysis.roce_path import prove
    from fabric.build import load_plan

    plan = load_plan(site, two_tiers_for="the path's proof")
    files = Rendered.from_folder(rendered) if rendered else rendered_site(plan)
    proof = prove(plan, files, source, target, traffic, source_port)
    if form == "json":
        print_json(proof.to_dict())
    else:
        _print(proof)
    return EXIT_FAILED if proof.wrong else EXIT_COULD_NOT_RUN if proof.unknown else EXIT_PASS


def _print(proof: Proof) -> None:
    from fabric.analysis.roce_path import LEFT_OUT, MODEL

    words = {True: "ok", False: "WRONG", None: "unknown"}
    tunnel = "in a tunnel; the outer header copies the inner DSCP" if proof.tunnelled else "on one leaf"
    click.echo(f"{proof.source} to {proof.target}, class {proof.traffic}, {tunnel}; {proof.paths} equal-cost paths\n")
    click.echo(table(("hop", "packet"), [(f"{h.device} {h.interface} {h.way}", h.packet) for h in proof.hops]) + "\n")
    rows = [
        (f"{hop.device} {hop.interface} {hop.way}", v.name, v.value, v.want, words[v.ok], f"{v.file} {v.key}")
        for hop in proof.hops
        for v in hop.values
    ]
    click.echo(table(("hop", "what", "value", "wanted", "", "from"), rows))
    _print_choices(proof)
    if proof.holds:
        click.echo("\nRoCE holds on every path")
    else:
        _print_disagreement(proof)
    click.echo(f"\nModel: {MODEL}\nLeft out: {LEFT_OUT}")


def _print_choices(proof: Proof) -> None:
    flow = proof.ecmp.flow
    ports = f"UDP {flow['source_port']} to {flow['target_port']}"
    click.echo(f"\nPath of {flow['source']} to {flow['target']}, {ports}: {proof.ecmp.verdict}")
    rows = [
        (
            c.device,
            len(c.cables),
            ", ".join(c.fields) or "-",
            f"{c.file} {c.key}".strip() or "-",
            c.chosen or "unknown",
            c.why,
        )
        for c in proof.ecmp.choices
    ]
    if rows:
        click.echo(table(("chooser", "cables", "hashes", "from", "takes", "why"), rows))


def _print_disagreement(proof: Proof) -> None:
    for hop in (*proof.wrong, *proof.unknown)[:1]:
        for v in hop.wrong or hop.values[:1]:
            where = f"{v.file}:{v.line}" if v.line else v.file
            click.echo(
                f"\nFirst disagreement: {hop.device} {hop.interface} {hop.way}: {v.name} is {v.value}, wanted {v.want}"
            )
            click.echo(f"Change: {where} {v.key}")
    click.echo(f"{len(proof.wrong)} ports disagree, {len(proof.unknown)} could not be read, over all paths")
