"""Options that the gateway probes share: which exposure, and where the agents of both sides sit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from validators.connections.command import Testers
    from validators.connections.from_plan import Target
    from validators.results import Result

_SIDES = (("inside", "10.1.0.10,10.1.0.11"), ("outside", "198.18.0.10,198.18.0.11"))


def gateway_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    options = [
        click.argument("site"),
        click.option("--tenant", default="", help="Tenant of the exposure."),
        click.option("--exposure", default="", help="Name of the exposure."),
        click.option("--gateway", help="Command in front of an agent on the gateway itself (counters, table)."),
        click.option("--python", default="python3", show_default=True, help="Interpreter on the test hosts."),
        click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True),
    ]
    for side, example in _SIDES:
        options += [
            click.option(
                f"--{side}", default="", help=f"Command in front of the {side} agent (ip netns exec, ssh ...)."
            ),
            click.option(f"--{side}-port", required=True, help="Its interface."),
            click.option(f"--{side}-hop", required=True, help="The next hop's address on that interface."),
            click.option(f"--{side}-network", required=True, help="Prefix that the agent answers ARP for."),
            click.option(f"--{side}-hosts", required=True, help=f"Two addresses of it, such as {example}."),
        ]
    for option in reversed(options):
        function = option(function)
    return function


def run_gateway_probe(probe: Callable[[Target, Testers], Result], asked: dict[str, Any]) -> int:
    """Plan the site, start the agents, run one probe, print its result, return the exit code."""
    from fabric.build import plan_site
    from validators.connections.command import Place, Testers, as_text, chosen, to_dict
    from validators.results import State

    target = chosen(plan_site(asked["site"]).plan, asked["tenant"], asked["exposure"])
    places = {}
    for side, _ in _SIDES:
        hosts = asked[f"{side}_hosts"].split(",")
        if len(hosts) != 2:
            raise click.UsageError(f"--{side}-hosts takes two addresses with a comma between them")
        place = (asked[side], asked[f"{side}_port"], asked[f"{side}_hop"], asked[f"{side}_network"])
        places[side] = Place(*place, (hosts[0], hosts[1]))
    with Testers(places["inside"], places["outside"], asked["gateway"], asked["python"]) as testers:
        result = probe(target, testers)
    if asked["form"] == "json":
        print_json(to_dict(result))
    else:
        click.echo(as_text(result))
    return {State.PASS: EXIT_PASS, State.FAIL: EXIT_FAILED}.get(result.state, EXIT_COULD_NOT_RUN)
