"""`kvfabric probe idle`: the idleTimeout truth table of an exposure, declared against measured."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import gateway_options, run_gateway_probe


@click.command()
@gateway_options
@click.option(
    "--scale", default=1.0, show_default=True, type=click.FloatRange(0.001, 1), help="Timers were rendered at."
)
def command(scale: float, **asked: Any) -> int:
    """Measure every idle timer of an exposure in one pass, by protocol and state, to 0.5 s or better.

    \b
    Example (ends as in `kvfabric probe nat --help`):
      kvfabric probe idle lab --tenant acme --exposure out --scale 0.05 --inside ... --outside ...
    """
    from validators.connections.command import probe_idle

    return run_gateway_probe(lambda target, testers: probe_idle(target, testers, scale=scale), asked)
