"""`kvfabric probe nat`: what an exposure's NAT really does, from both sides."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.gateway_options import gateway_options, run_gateway_probe


@click.command()
@gateway_options
def command(**asked: Any) -> int:
    """Ask an exposure's NAT case by case: reach and no reach, ends, mapping, filtering, hairpin, RST, errors.

    In a lab, of every exposure; testers stand on its servers and outside, and leave nothing behind.

    \b
    Examples:
      kvfabric probe nat lab --lab lab
      kvfabric probe nat lab --lab lab --tenant acme --exposure static --format json
      kvfabric probe nat lab --tenant acme --exposure masquerade --inside "ip netns exec in" --inside-port eth1 \\
        --inside-hop 10.1.0.1 --inside-network 10.1.0.0/28 --inside-hosts 10.1.0.10,10.1.0.11 \\
        --outside "ssh edge-host" --outside-port eth1 --outside-hop 198.18.0.1 \\
        --outside-network 198.18.0.8/29 --outside-hosts 198.18.0.10,198.18.0.11
    """
    from validators.connections.command import probe_nat
    from validators.connections.in_lab import run_nat

    return run_gateway_probe(probe_nat, run_nat, asked)
