"""`kvfabric probe idle`: the idleTimeout truth table of an exposure, declared against measured."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import gateway_options, run_gateway_probe
from fabric.cli.numbers import Finite


@click.command()
@gateway_options
@click.option(
    "--scale",
    type=Finite(0.001, 1),
    help="Timers are rendered at; default: 1, in a lab such that the longest is 12 s.",
)
def command(scale: float | None, **asked: Any) -> int:
    """Measure every idle timer of an exposure in one pass, by protocol and state, to 0.5 s or better.

    \b
    Examples (ends as in `kvfabric probe nat --help`):
      kvfabric probe idle lab --lab lab
      kvfabric probe idle lab --tenant acme --exposure masquerade --scale 0.05 --inside ... --outside ...
    """
    from functools import partial

    from validators.connections.command import probe_idle
    from validators.connections.in_lab import run_idle

    probe = partial(probe_idle, scale=scale or 1.0)
    return run_gateway_probe(probe, partial(run_idle, scale=scale or 0.0), asked)
