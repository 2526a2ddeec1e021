"""`kvfabric lab impair`, `break` and `heal`: faults on purpose, and their end."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli.numbers import Finite
from fabric.cli.output import print_json
from fabric.cli.words import NAME_OF_LAB

_SECONDS = click.option(
    "--for", "seconds", type=Finite(0, 86_400), default=0.0, help="Seconds it lasts; 0: until `heal`."
)
_FORM = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.command()
@NAME_OF_LAB
@click.argument("target", metavar="LINK|NODE")
@click.option("--loss", type=Finite(0, 100), default=0.0, help="Per cent of packets lost, each way.")
@click.option("--delay", type=Finite(0, 60_000), default=0.0, help="Milliseconds added, each way.")
@click.option("--rate", type=Finite(0, 1_000_000), default=0.0, help="Mb/s at most, each way.")
@_SECONDS
@_FORM
def impair(name: str, target: str, loss: float, delay: float, rate: float, seconds: float, form: str) -> None:
    """Make a link bad. Example: kvfabric lab impair leaf-01:Ethernet256 --loss 1 --for 30"""
    from labs.client import attach

    if not (loss or delay or rate):
        raise click.UsageError("say at least one of --loss, --delay, --rate")
    with attach(name) as lab:
        _show(lab.call("impair", target=target, loss=loss, delay_ms=delay, rate_mbit=rate, seconds=seconds), form)


@click.command(name="break")
@NAME_OF_LAB
@click.argument("target", metavar="LINK|NODE")
@click.option("--how", type=click.Choice(["silent", "down", "daemons", "power"]), default="silent", show_default=True)
@_SECONDS
@_FORM
def break_(name: str, target: str, how: str, seconds: float, form: str) -> None:
    """Break a link or a node.

    silent: its ports stay up and every packet is lost. down: its ports lose their light. daemons: FRR is killed, the
    kernel goes on forwarding (nodes only). power: daemons and down (nodes only).

    \b
    Examples:
      kvfabric lab break spine-01 --for 20
      kvfabric lab break leaf-01:Ethernet256 --how down
    """
    from labs.client import attach

    with attach(name) as lab:
        _show(lab.call("cut", target=target, how=how, seconds=seconds), form)


@click.command()
@NAME_OF_LAB
@click.argument("target", metavar="[LINK|NODE]", default="")
@_FORM
def heal(name: str, target: str, form: str) -> None:
    """Undo one fault, or all of them; prints what was healed. Example: kvfabric lab heal"""
    from labs.client import attach

    with attach(name) as lab:
        healed = lab.call("heal", target=target)
    if form == "json":
        print_json(healed)
    elif healed:
        click.echo("\n".join(f"{what}: healed" for what in healed))
    else:
        click.echo("no fault to heal", err=True)


def _show(fault: dict[str, Any], form: str) -> None:
    """Print a fault that was made: what of what, and when it ends."""
    if form == "json":
        print_json(fault)
        return
    end = f"for {fault['for_s']:g} s" if fault["for_s"] else "until `kvfabric lab heal`"
    click.echo(f"{fault['target']}: {fault['kind']} {fault['text']}, {end}")
