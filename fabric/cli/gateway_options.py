"""Options that the gateway probes share: which exposure, and a lab, or where the agents of both sides sit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_NOTHING_RAN, EXIT_PASS
from fabric.cli.numbers import Finite
from fabric.cli.output import print_json
from fabric.cli.words import LAB, not_blank

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.plan import Plan
    from fabric.problem import Problem
    from labs.client import Running
    from validators.connections.command import Testers
    from validators.connections.from_plan import Target
    from validators.results import Result

_FORMS = ["text", "json", "prometheus"]
_ENDS = ("_port", "_hop", "_network", "_hosts")
_SIDES = (("inside", "10.1.0.10,10.1.0.11"), ("outside", "198.18.0.10,198.18.0.11"))


def site_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every gateway probe takes: site, tenant, exposure, output."""
    options = [
        click.argument("site"),
        click.option("--tenant", default="", callback=not_blank, help="Tenant of the exposure."),
        click.option("--exposure", default="", callback=not_blank, help="Name of the exposure."),
        click.option("--format", "form", type=click.Choice(_FORMS), default="text", show_default=True),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def flow_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what the probes take that watch long flows through a gateway of a lab."""
    options = [
        LAB,
        click.option(
            "--flows", default=10, show_default=True, type=click.IntRange(1, 100), help="Long flows of each mode."
        ),
        click.option(
            "--interval",
            default=0.05,
            show_default=True,
            type=Finite(0.001, 60),
            help="Seconds between two frames of a flow.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return site_options(function)


def gateway_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the probes that run in a lab and on a real site."""
    options = [
        LAB,
        click.option("--gateway", help="Command in front of an agent on the gateway itself (counters, table)."),
        click.option(
            "--python", default="python3", callback=not_blank, show_default=True, help="Interpreter on the test hosts."
        ),
    ]
    for side, example in _SIDES:
        options += [
            click.option(
                f"--{side}", default="", help=f"Command in front of the {side} agent (ip netns exec, ssh ...)."
            ),
            click.option(f"--{side}-port", default="", help="Its interface."),
            click.option(f"--{side}-hop", default="", help="The next hop's address on that interface."),
            click.option(f"--{side}-network", default="", help="Prefix that the agent answers ARP for."),
            click.option(f"--{side}-hosts", default="", help=f"Two addresses of it, such as {example}."),
        ]
    for option in reversed(options):
        function = option(function)
    return site_options(function)


def run_gateway_probe(
    probe: Callable[[Target, Testers], Result],
    in_lab: Callable[..., list[Result]],
    asked: dict[str, Any],
) -> int:
    """Plan the site, run one probe (on given hosts, else in a lab), print its results, return the exit code."""
    if not any(asked[f"{side}{end}"] for side, _ in _SIDES for end in ("", *_ENDS)):
        return run_in_lab(in_lab, asked)
    if asked["lab"]:
        raise click.UsageError("one place to measure is enough: --lab, or --inside-... and --outside-...")
    from fabric.build import plan_site
    from validators.connections.command import chosen

    target = chosen(plan_site(asked["site"]).plan, asked["tenant"], asked["exposure"])
    with _testers(asked) as testers:
        result = probe(target, testers)
    return show([result], asked["form"])


def _testers(asked: dict[str, Any]) -> Testers:
    from fabric.problem import InputError
    from validators.connections.command import Place, Testers
    from validators.connections.programs import CommandHost

    missing = [f"-{side}{end}" for side, _ in _SIDES for end in _ENDS if not asked[f"{side}{end}"]]
    if missing:
        words = ", ".join(f"-{name.replace('_', '-')}" for name in missing)
        raise click.UsageError(f"say where both agents sit: {words} (a running lab needs none of these)")
    if problems := [problem for side, _ in _SIDES for problem in _place_faults(asked, side)]:
        raise InputError(problems)
    places = {}
    for side, _ in _SIDES:
        first, second = (host.strip() for host in asked[f"{side}_hosts"].split(","))
        host = CommandHost(_command(asked, side), asked["python"])
        place = (asked[f"{side}_port"], asked[f"{side}_hop"], asked[f"{side}_network"])
        places[side] = Place(host, *place, (first, second))
    on_gateway = None if asked["gateway"] is None else CommandHost(_command(asked, "gateway"), asked["python"])
    return Testers(places["inside"], places["outside"], on_gateway)


def _command(asked: dict[str, Any], side: str) -> list[str]:
    import shlex

    try:
        return shlex.split(asked[side])
    except ValueError as error:
        raise click.BadParameter(f"{asked[side]!r}: {error}", param_hint=f"--{side}") from None


def _place_faults(asked: dict[str, Any], side: str) -> list[Problem]:
    """What is wrong with the addresses that an agent is to speak for, before it is started."""
    from fabric.problem import Problem
    from validators.devices.hosts import address_faults

    hosts = [host.strip() for host in asked[f"{side}_hosts"].split(",")]
    faults = address_faults(asked[f"{side}_hop"], asked[f"{side}_network"], hosts)
    return [Problem("probe.place", f"--{side}-{name}", text, fix) for name, text, fix in faults]


def run_in_lab(run: Callable[..., list[Result]], asked: dict[str, Any]) -> int:
    """Attach to the lab, check that it is one of the site, run, print, return the exit code."""
    from fabric.build import plan_site

    plan = plan_site(asked["site"], two_tiers_for="a lab").plan
    with attach(plan, asked["lab"]) as lab:
        results = run(
            plan,
            lab,
            tenant=asked["tenant"],
            exposure=asked["exposure"],
            say=lambda text: click.echo(text, err=True),
        )
    return show(results, asked["form"])


def attach(plan: Plan, name: str) -> Running:
    """Connect to a lab of the plan's site; raises InputError when it is a lab of something else."""
    from fabric.problem import InputError, Problem
    from labs.client import attach as connect

    lab = connect(name)
    if lab.lab.site != plan.site:
        text = f"is a lab of site {lab.lab.site or 'nothing'}, not of {plan.site}"
        raise InputError([Problem("probe.lab", name, text, "name the lab's own site, or start one of this site")])
    return lab


def show(results: Sequence[Result], form: str) -> int:
    """Print results and return the exit code of them all."""
    from validators.connections.command import as_text, to_dict
    from validators.connections.metrics import prometheus
    from validators.results import State

    if form == "json":
        print_json([to_dict(result) for result in results])
    elif form == "prometheus":
        click.echo(prometheus(results), nl=False)
    else:
        for result in results:
            click.echo(as_text(result))
    states = {result.state for result in results}
    if State.FAIL in states:
        return EXIT_FAILED
    if states & {State.ERROR, State.UNKNOWN}:
        return EXIT_COULD_NOT_RUN
    return EXIT_PASS if State.PASS in states else EXIT_NOTHING_RAN
