"""`kvfabric snapshot SITE`: store what the devices say now, to judge it later without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_PASS
from fabric.cli.numbers import count
from fabric.cli.paths import Folder, hosts_file
from fabric.cli.words import LAB

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("site")
@click.option("--out", type=Folder(), required=True, help="folder to write")
@click.option(
    "--hosts",
    type=hosts_file(),
    help="real devices over SSH: a Nornir hosts file",
)
@LAB
@click.option("--samples", default=3, show_default=True, type=count(1, 100), help="how often LLDP is asked")
def command(site: str, out: Path, hosts: Path | None, lab: str, samples: int) -> int:
    """Ask every question of the acceptance of SITE and store the answers, without secrets.

    \b
    Examples:
      kvfabric snapshot xoc-256 --hosts hosts.yaml --out snapshot
      kvfabric accept xoc-256 --from snapshot
    """
    if hosts and lab:
        raise click.UsageError("one place to ask is enough: --hosts or --lab")
    from fabric.build import load_plan
    from validators.runner_acceptance import Acceptance, take_snapshot

    plan = load_plan(site, two_tiers_for="acceptance")
    counts = take_snapshot(Acceptance(plan, out, hosts=hosts, lab=lab, only_ask=True), out, samples)
    click.echo(", ".join(f"{n} {what}" for what, n in counts.items()) + f": {out}")
    return EXIT_PASS if counts["answered"] else EXIT_COULD_NOT_RUN
