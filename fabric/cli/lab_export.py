"""`kvfabric lab export`: the lab as a folder for somebody else's machine."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.output import print_json
from fabric.cli.paths import Folder
from fabric.cli.words import not_blank


@click.command()
@click.argument("site")
@click.option("--engine", type=click.Choice(["containerlab"]), default="containerlab", show_default=True)
@click.option(
    "--slice",
    "counts",
    default="",
    callback=not_blank,
    help="leaves=2,spines=2,gateways=2,servers=4,links=2; default: all.",
)
@click.option("--out", type=Folder(), help="Folder; default: out/SITE/containerlab.")
@click.option("--name", default="", callback=not_blank, help="Name of the lab; default: the site's.")
@click.option("--kind", "kinds", multiple=True, metavar="[ROLE=]KIND", help="How switches are played: frr (default), sonic-vs, sonic-vm.")  # noqa: E501  # fmt: skip
@click.option("--image", "images", multiple=True, metavar="KIND=IMAGE", help="Container image of a kind.")
@click.option("--prefix", default="", help="Before container names; default: none, they are the plan's names.")
@click.option("--management", type=click.Choice(["plan", "containerlab"]), default="plan", show_default=True, help="Whose addresses eth0 gets.")  # noqa: E501  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    site: str,
    engine: str,
    counts: str,
    out: Path | None,
    name: str,
    kinds: tuple[str, ...],
    images: tuple[str, ...],
    prefix: str,
    management: str,
    form: str,
) -> None:
    """Write SITE as a folder that `containerlab deploy` runs on any machine with Docker; see docs/containerlab.md.

    \b
    Examples:
      kvfabric lab export lab --out lab.d
      kvfabric lab export xoc-256 --slice leaves=2,spines=2,servers=4
      kvfabric lab export lab --kind leaf=sonic-vs --image sonic-vs=docker-sonic-vs:202405
    """
    from fabric.build import plan_site
    from labs import slice as slicing
    from labs.containerlab import export
    from labs.containerlab.kinds import Settings, parse_images, parse_kinds

    settings = Settings(parse_kinds(kinds), parse_images(images), prefix, management)
    planned = plan_site(site, two_tiers_for="a lab")
    plan = planned.plan
    lab = slicing.make(plan, name or plan.site, slicing.parse_counts(counts), planned.inventory)
    done = export.write(plan, lab, out or Path("out") / plan.site / engine, settings)
    # what leaves the house must keep its numbers, or the next export could give others
    click.echo(planned.keep_ledger(), err=True)
    facts = {"folder": str(done.folder), "topology": str(done.topology), "nodes": done.nodes, "links": done.links}
    if form == "json":
        print_json({**facts, "kinds": done.kinds, "notes": done.notes})
        return
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    counted = ", ".join(f"{count} {kind}" for kind, count in done.kinds.items())
    click.echo(f"{done.nodes} nodes ({counted}), {done.links} links", err=True)
    click.echo(done.topology)
