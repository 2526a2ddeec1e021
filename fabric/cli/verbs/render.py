"""`kvfabric render`: the configuration of every device, as files."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json


@click.command()
@click.argument("site")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write, DIR/<device>/<file>.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change. Exit 0: nothing, 1: something.")
@click.option("--limit", metavar="DEVICE,...", help="Only these devices.")
@click.option("--target", metavar="NAME", help="Use this target where it can render a device, e.g. frr for switches.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context, *, site: str, out: Path, diff: bool, limit: str | None, target: str | None, form: str
) -> None:
    """Write the configuration of the devices of SITE below a folder, one folder a device.

    \b
    Examples:
      kvfabric render xoc-256 --out out/configs
      kvfabric render xoc-256 --out out/configs --diff
      kvfabric render lab --target frr --out out/lab --limit be-leaf-01,be-spine-01
    """
    from fabric.build import plan_site
    from fabric.render.registry import render_site
    from fabric.render.writer import diff_tree, write_tree

    names = [name.strip() for name in limit.split(",") if name.strip()] if limit is not None else None
    planned = plan_site(site)
    rendered = render_site(planned.plan, names, target)
    if diff:
        differences = diff_tree(out, rendered, whole=names is None)
        if form == "json":
            print_json([{"path": d.path, "state": d.state, "lines": d.lines} for d in differences])
        else:
            for difference in differences:
                click.echo("\n".join(difference.lines))
        ctx.exit(EXIT_FAILED if differences else EXIT_PASS)
    done = write_tree(out, rendered, whole=names is None)
    # what was rendered must keep its numbers, or the next run could give others
    click.echo(planned.keep_ledger(), err=True)
    if form == "json":
        print_json({"written": done.written, "unchanged": done.unchanged, "stale": done.stale})
    else:
        click.echo(f"{len(done.written)} files written, {done.unchanged} unchanged, in {out}", err=True)
    for path in done.stale:
        click.echo(f"stale: {out / path} belongs to no device of this plan any more", err=True)
