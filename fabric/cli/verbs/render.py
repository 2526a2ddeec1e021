"""`kvfabric render`: the configuration of every device, as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json
from fabric.cli.paths import Folder
from fabric.cli.words import words

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("site")
@click.option("--out", required=True, type=Folder(), help="Folder to write, DIR/<device>/<file>.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change. Exit 0: nothing, 1: something.")
@click.option("--prune", is_flag=True, help="Remove files that kvfabric wrote and the plan no longer has.")
@click.option("--limit", metavar="DEVICE,...", multiple=True, callback=words, help="Only these devices; repeatable.")
@click.option("--target", metavar="NAME", help="Use this target where it can render a device, e.g. frr for switches.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context, *, site: str, out: Path, diff: bool, prune: bool, limit: tuple[str, ...], target: str | None,
    form: str,
) -> None:  # fmt: skip
    """Write the configuration of the devices of SITE below a folder, one folder a device.

    \b
    Examples:
      kvfabric render xoc-256 --out out/configs
      kvfabric render xoc-256 --out out/configs --diff
      kvfabric render lab --target frr --out out/lab --limit leaf-01,spine-01
    """
    from fabric.build import plan_site
    from fabric.render.registry import render_site
    from fabric.render.stale import settle_stale, stale_line, stale_names
    from fabric.render.writer import diff_tree, require_ours, summary_of, write_tree

    if prune and (diff or limit):
        message = (
            "--prune goes with the whole site: leave --limit out" if limit else "--diff writes nothing: leave it out"
        )
        raise click.UsageError(message)
    names = list(limit) or None
    planned = plan_site(site, two_tiers_for="rendering")
    rendered = render_site(planned.plan, names, target)
    if diff:
        differences = diff_tree(out, rendered, whole=names is None, site=planned.plan.site)
        if form == "json":
            print_json([{"path": d.path, "state": d.state, "lines": d.lines} for d in differences])
        else:
            for difference in differences:
                click.echo("\n".join(difference.lines))
            for line in summary_of(differences):
                click.echo(line, err=True)
        gone = [d for d in dict.fromkeys(d.device for d in differences) if d not in planned.plan.kind_of]
        stale = stale_names(gone, [d.path for d in differences if d.state == "removed"])
        if stale:
            click.echo(stale_line(out, stale), err=True)
        ctx.exit(EXIT_FAILED if differences else EXIT_PASS)
    require_ours(out, planned.inventory)
    texts = list(rendered)
    # what is rendered must keep its numbers, or the next run could give others: files nobody can keep are not written
    click.echo(planned.keep_ledger(), err=True)
    done = write_tree(out, texts, whole=names is None, inventory=planned.inventory)
    stale = settle_stale(out, done, remove=prune)
    if form == "json":
        told = {"removed": done.stale} if prune else {"stale": done.stale}
        print_json({"written": done.written, "unchanged": done.unchanged, **told})
    else:
        click.echo(f"{len(done.written)} files written, {done.unchanged} unchanged, in {out}", err=True)
    for line in stale:
        click.echo(line, err=True)
