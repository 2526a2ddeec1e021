"""`kvfabric probe ladder`: how many new connections a second a gateway takes, each one validated (RFC 9693)."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import gateway_options, run_gateway_probe
from fabric.cli.numbers import Finite


@click.command()
@gateway_options
@click.option("--protocol", type=click.Choice(["udp", "tcp", "icmp"]), default="udp", show_default=True)
@click.option("--connections", type=click.IntRange(1, 1 << 20), help="Per step; default 50,000, in a lab 400.")
@click.option("--start", type=Finite(above=True), help="First rate, connections/s; default 10,000, in a lab 100.")
@click.option(
    "--highest", type=Finite(above=True), help="Last rate to try, connections/s; default 400,000, in a lab 6,400."
)
@click.option("--wanted", type=Finite(above=True), help="Fail when the gateway ends below this rate.")
def command(
    protocol: str,
    connections: int | None,
    start: float | None,
    highest: float | None,
    wanted: float | None,
    **asked: Any,
) -> int:
    """Climb to the gateway's knee; a step that the tester could not offer is tester-limited, not a pass.

    \b
    Examples (ends as in `kvfabric probe nat --help`):
      kvfabric probe ladder lab --lab lab --protocol tcp
      kvfabric probe ladder lab --tenant acme --exposure masquerade --wanted 50000 --gateway "ssh gw-1" ...
    """
    from functools import partial

    from validators.connections.command import probe_ladder
    from validators.connections.in_lab import run_ladder

    if start and highest and start > highest:
        raise click.UsageError(f"--start {start:g} is above --highest {highest:g}: there would be no step")
    given = {"connections": connections, "start": start, "highest": highest}
    rates: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    site: dict[str, Any] = {"connections": 50_000, "start": 10_000.0, "highest": 400_000.0, **rates}
    return run_gateway_probe(
        partial(probe_ladder, protocol=protocol, wanted=wanted, **site),
        partial(run_ladder, protocols=(protocol,), wanted=wanted, **rates),
        asked,
    )
