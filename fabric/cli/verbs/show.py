"""`kvfabric show`: one thing of the site and all that touches it."""

from __future__ import annotations

import click

_EPILOG = """\b
Examples:
  kvfabric show xoc-256 be-leaf-01
  kvfabric show xoc-256 "be-leaf-01 E1/33"
  kvfabric show xoc-256 acme --format json
  kvfabric show xoc-256 203.0.113.129               an address: whose it is, or free in which range
  kvfabric show xoc-256 "VNI 100"                   also "AS 65101", a route target, a prefix
  kvfabric show xoc-256 compute-001 compute-017     the way between two devices
  kvfabric show xoc-256 compute-001 203.0.113.129   whether a server reaches an address, and how it leaves and comes in
"""


@click.command("show", epilog=_EPILOG)
@click.argument("site")
@click.argument("name")
@click.argument("other", required=False, default="")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(site: str, name: str, other: str, form: str) -> None:
    """Show one thing of SITE and all that touches it: ports, peers, addresses, sessions.

    NAME is a device, tenant, gateway group, link, port, address, prefix, VNI, AS number or route target.

    With OTHER, show the way between two devices, or whether server NAME reaches the address OTHER by the plan.
    """
    from fabric.build import load_plan
    from fabric.cli.output import print_json
    from fabric.interop.showing import show

    card = show(load_plan(site), name, other)
    if form == "json":
        print_json(card.to_dict())
    else:
        click.echo(card.text())
