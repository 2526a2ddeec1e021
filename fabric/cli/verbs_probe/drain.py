"""`kvfabric probe drain`: drain a gateway under live flows, stop it, bring it back, undo."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import flow_options, run_in_lab
from fabric.cli.numbers import Finite


@click.command()
@flow_options
@click.option(
    "--deadline",
    default=60.0,
    show_default=True,
    type=Finite(0, 3600),
    help="Seconds that the drain may wait for open flows.",
)
@click.option("--allow-disruptive", is_flag=True, help="Yes, drain and stop a gateway of the lab, and bring it back.")
def command(flows: int, interval: float, deadline: float, *, allow_disruptive: bool, **asked: Any) -> int:
    """Drain the preferred gateway of a tenant with `gatewayctl`, stop it, let it return, and undo the drain.

    No established flow may be cut before the deadline, no new flow may land there, stopping it may cost nothing, and
    after the undo new flows must land there again.

    \b
    Example:
      kvfabric probe drain lab --lab lab --tenant acme --allow-disruptive
    """
    from functools import partial

    from validators.failover.drain_in_lab import run_drain
    from validators.failover.lanes import Rates

    if not allow_disruptive:
        raise click.UsageError("this drains and stops a gateway of the lab: add --allow-disruptive")
    return run_in_lab(partial(run_drain, rates=Rates(flows, interval), deadline_s=deadline), asked)
