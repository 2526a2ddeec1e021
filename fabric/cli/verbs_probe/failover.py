"""`kvfabric probe failover`: a gateway dies and returns while long flows of every NAT mode talk through it."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import flow_options, run_in_lab
from fabric.cli.numbers import Finite

_CASES = ["process", "link", "silent", "node", "power"]


@click.command()
@flow_options
@click.option("--case", "cases", multiple=True, type=click.Choice(_CASES), help="Default: all; repeat.")
@click.option(
    "--within",
    default=3.0,
    show_default=True,
    type=Finite(0, 3600),
    help="Seconds until new connections must work again.",
)
@click.option("--allow-disruptive", is_flag=True, help="Yes, break a gateway of the lab, and bring it back.")
def command(
    cases: tuple[str, ...], flows: int, interval: float, within: float, *, allow_disruptive: bool, **asked: Any
) -> int:
    """Break the preferred gateway of a tenant in each way in which gateways die, and let it return.

    Stateful flows must die and be made again on the next gateway, static flows must survive, new connections must work
    again in time. Of each flow: last good, first good, outage, reset or silence, public address before and after.

    \b
    Examples:
      kvfabric probe failover lab --lab lab --allow-disruptive
      kvfabric probe failover lab --lab lab --tenant acme --case silent --case power --allow-disruptive
    """
    from functools import partial

    from validators.failover.in_lab import run_failover
    from validators.failover.lanes import Rates

    if not allow_disruptive:
        raise click.UsageError("this breaks a gateway of the lab for some seconds: add --allow-disruptive")
    rates = Rates(flows, interval)
    return run_in_lab(partial(run_failover, cases=cases, rates=rates, within_ms=1000 * within), asked)
