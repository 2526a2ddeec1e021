"""`kvfabric probe ladder`: how many new connections a second a gateway takes, each one validated (RFC 9693)."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import gateway_options, run_gateway_probe


@click.command()
@gateway_options
@click.option("--protocol", type=click.Choice(["udp", "tcp", "icmp"]), default="udp", show_default=True)
@click.option("--connections", default=50_000, show_default=True, type=click.IntRange(1, 1 << 20), help="Per step.")
@click.option("--start", default=10_000.0, show_default=True, help="First rate, connections/s.")
@click.option("--highest", default=400_000.0, show_default=True, help="Last rate to try, connections/s.")
@click.option("--wanted", type=float, help="Fail when the gateway ends below this rate.")
def command(protocol: str, connections: int, start: float, highest: float, wanted: float | None, **asked: Any) -> int:
    """Climb to the gateway's knee; a step that the tester could not offer is tester-limited, not a pass.

    \b
    Example (ends as in `kvfabric probe nat --help`):
      kvfabric probe ladder lab --tenant acme --exposure out --wanted 50000 --gateway "ssh gw-1" ...
    """
    from validators.connections.command import probe_ladder

    rates: dict[str, Any] = {"start": start, "highest": highest, "wanted": wanted}
    return run_gateway_probe(
        lambda target, testers: probe_ladder(target, testers, protocol=protocol, connections=connections, **rates),
        asked,
    )
