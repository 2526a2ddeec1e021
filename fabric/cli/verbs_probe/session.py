"""`kvfabric probe session`: do requests outlive their connections, and is their work done once."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import run_in_lab, site_options
from fabric.cli.words import LAB

_CASES = ["worker", "tool", "drain", "gateway"]
_DISRUPTIVE = {"drain", "gateway"}


@click.command()
@site_options
@LAB
@click.option("--case", "cases", multiple=True, type=click.Choice(_CASES), help="Default: all; repeat.")
@click.option("--sessions", default=4, show_default=True, type=click.IntRange(1, 32), help="Clients at once.")
@click.option("--allow-disruptive", is_flag=True, help="Yes, drain and break a gateway of the lab, and bring it back.")
def command(cases: tuple[str, ...], sessions: int, *, allow_disruptive: bool, **asked: Any) -> int:
    """Stream answers from a small service behind a VIP while something between client and worker fails.

    Connections must be made again, answers must go on where they stopped, and no piece of work may be done twice.
    Cases: each worker fails; idleTimeout passes during a tool call; the gateway is drained; the gateway goes silent.

    \b
    Examples:
      kvfabric probe session lab --lab lab --case worker --case tool
      kvfabric probe session lab --lab lab --allow-disruptive
    """
    from functools import partial

    from validators.session.in_lab import run_session

    if not allow_disruptive and (not cases or _DISRUPTIVE & set(cases)):
        raise click.UsageError("cases drain and gateway disturb the lab: add --allow-disruptive, or name other cases")
    return run_in_lab(partial(run_session, cases=cases, sessions=sessions), asked)
