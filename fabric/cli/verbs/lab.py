"""`kvfabric lab`: the rendered fabric running for real, in a VM or in this host's namespaces."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli import lab_export, lab_faults, lab_list
from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.numbers import Finite, count
from fabric.cli.output import print_json
from fabric.cli.paths import Folder
from fabric.cli.words import NAME_OF_LAB, not_blank


def _say(text: str) -> None:
    click.echo(f"lab: {text}", err=True)


@click.group()
def command() -> None:
    """Run the rendered files of a site as a lab: FRR routers, nftables gateways, servers with Soft-RoCE.

    \b
    Examples:
      kvfabric lab build                       once: kernel and Debian root (as root, about 8 minutes)
      kvfabric lab up lab                      start it and wait until it is what the plan says
      kvfabric lab up xoc-256 --slice leaves=2,spines=2,servers=4
      kvfabric lab exec leaf-01 -- vtysh -c 'show bgp summary'
      kvfabric lab break spine-01 && kvfabric lab status && kvfabric lab heal
      kvfabric lab down
      kvfabric lab export lab --out lab.d      a folder for containerlab on any machine
      kvfabric lab run lab --results out/lab -- kvfabric accept lab
    """


command.add_command(lab_export.command, "export")
command.add_command(lab_list.command, "list")
command.add_command(lab_faults.impair)
command.add_command(lab_faults.break_)
command.add_command(lab_faults.heal)


@command.command()
@click.option("--engine", type=click.Choice(["uml", "native", "containerlab"]), default="uml", show_default=True)
def build(engine: str) -> None:
    """Make what an engine needs, unless it is there already; prints where it is.

    uml: a kernel and a Debian root. native: the root only. containerlab: both, Docker, containerlab and an image.

    \b
    Examples:
      kvfabric lab build                           about 8 minutes on two cores, once
      kvfabric lab build --engine native           20 seconds
      kvfabric lab build --engine containerlab     needs Go 1.24 or newer; about 5 minutes more
    """
    from labs.containerlab import build as containerlab
    from labs.uml import kernel, root

    makers = {"native": [root.build], "uml": [root.build, kernel.build]}
    for path in containerlab.build() if engine == "containerlab" else [make() for make in makers[engine]]:
        click.echo(path)


def _start(options: dict[str, Any]) -> Any:
    from labs import site
    from labs.machine import Options

    machine = Options(memory_mb=options["memory"], rdma=options["rdma"])
    return site.start(options["site"], options["name"], options["counts"], options["engine"], machine, _say)


def _start_options(function: Any) -> Any:
    for option in reversed((
        click.argument("site"),
        click.option(
            "--slice",
            "counts",
            default="",
            callback=not_blank,
            help="Part of the site: leaves=2,spines=2,gateways=2,servers=4,links=2; default: all.",
        ),
        click.option(
            "--engine",
            default="",
            callback=not_blank,
            help="native, uml, containerlab; default: native where this kernel can, else uml.",
        ),
        click.option("--name", "-n", default="", callback=not_blank, help="Name of the lab; default: the site's."),
        click.option(
            "--memory", default=4096, show_default=True, type=count(512, 1 << 20), help="MB of the VM (engine uml)."
        ),
        click.option(
            "--rdma",
            type=click.Choice(["shared", "exclusive"]),
            default="shared",
            show_default=True,
            help="Whether a server's programs see the RDMA devices of all servers, or its own only (engine uml).",
        ),
    )):  # fmt: skip
        function = option(function)
    return function


def _report(started: Any) -> int:
    for text in (*started.complaints, *started.missing):
        _say(text)
    _say(", ".join(f"{name} {value:g} s" for name, value in started.seconds.items()))
    return EXIT_PASS if started.ok else EXIT_FAILED


@command.command()
@_start_options
@click.pass_context
def up(ctx: click.Context, /, **options: Any) -> None:
    """Start the lab of SITE, wait until it is what the plan says, and let it run.

    Exit 1: it runs but is not what the plan says. Where the time went is the last line on stderr.

    \b
    Examples:
      kvfabric lab up lab
      kvfabric lab up xoc-256 --slice leaves=2,spines=2,gateways=2,servers=4
      kvfabric lab up lab --engine native      on this host's own kernel, as root
    """
    started = _start(options)
    started.running.commit()
    ctx.exit(_report(started))


@command.command()
@_start_options
@click.option("--results", type=Folder(), help="Folder for /lab/results, logs and status.")
@click.argument("argv", metavar="CMD...", nargs=-1, required=True)
@click.pass_context
def run(ctx: click.Context, /, argv: tuple[str, ...], results: str | None, **options: Any) -> None:
    """Start a lab, run a command here with KVFABRIC_LAB set, take the results out, stop it.

    Its exit code is the command's, or 1 when the lab was not what the plan says.

    \b
    Examples:
      kvfabric lab run lab -- pytest -q
      kvfabric lab run xoc-256 --slice leaves=1,servers=2 --results out/lab -- ./probe.sh
    """
    import os
    import shutil
    import subprocess
    from pathlib import Path

    from labs.machine import die_with_parent
    from labs.results import take

    if not shutil.which(argv[0]):
        raise click.BadParameter(f"{argv[0]} is not a program that can be found here", param_hint="CMD")
    started = _start(options)
    try:
        code = _report(started)
        environment = {**os.environ, "KVFABRIC_LAB": started.running.name}
        done = subprocess.run(argv, env=environment, check=False, preexec_fn=die_with_parent)
        if results:
            take(started.running, Path(results))
            _say(f"results are in {results}")
    finally:
        started.running.stop()
    ctx.exit(_exit_code(done.returncode) or code)


def _exit_code(returned: int) -> int:
    """A program ended by a signal counts as a shell counts it."""
    return returned if returned >= 0 else 128 - returned


@command.command()
@NAME_OF_LAB
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(ctx: click.Context, name: str, form: str) -> None:
    """Sessions, BFD, EVPN, VNIs, router MACs, routes, NAT, RDMA, VIPs; exit 1: not what the plan says.

    \b
    Examples:
      kvfabric lab status
      kvfabric lab status --name lab --format json
    """
    from labs.client import attach

    with attach(name) as lab:
        data = lab.call("status")
    if form == "json":
        print_json(data)
    else:
        from fabric.cli import lab_status

        click.echo(lab_status.text(data))
    ctx.exit(EXIT_PASS if data["as_planned"] else EXIT_FAILED)


def _node(lab: Any, name: str) -> str:
    """Return the name of a node, or stop with what is close to it."""
    if not lab.lab.has(name):
        from labs.targets import unknown_node

        _wrong_target(lab, unknown_node(lab.lab, name))
    return name


def _wrong_target(lab: Any, text: str) -> None:
    from fabric.problem import InputError, Problem

    raise InputError(
        [Problem("lab.target", f"lab {lab.name}", text, fix="`kvfabric lab status` lists nodes and links")]
    )


@command.command(name="exec", context_settings={"ignore_unknown_options": True})
@NAME_OF_LAB
@click.argument("node")
@click.argument("argv", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def exec_(ctx: click.Context, name: str, node: str, argv: tuple[str, ...]) -> None:
    """Run a command in a node, with its input and output here; exits as it does.

    \b
    Examples:
      kvfabric lab exec compute-001 -- ping -c1 10.250.0.1
      kvfabric lab exec gw-01 -- gatewayctl status
    """
    from labs.client import attach
    from labs.terminal import relay

    if not argv[0].strip():
        raise click.BadParameter("is empty: name a program", param_hint="CMD")
    with attach(name) as lab:
        ctx.exit(relay(lab.start(_node(lab, node), argv, paced=True)))


@command.command()
@NAME_OF_LAB
@click.argument("node")
@click.pass_context
def shell(ctx: click.Context, name: str, node: str) -> None:
    """Open a shell in a node; from a pipe, run the commands in it. Example: kvfabric lab shell leaf-01"""
    import os

    from labs.client import attach
    from labs.terminal import relay_terminal

    with attach(name) as lab:
        tty = os.isatty(0)
        argv = ["bash", "-i"] if tty else ["bash"]
        environment = {"TERM": os.environ.get("TERM", "dumb"), "HOME": "/root"}
        process = lab.start(_node(lab, node), argv, tty=tty, env=environment, paced=True)
        ctx.exit(relay_terminal(process))


@command.command(context_settings={"ignore_unknown_options": True})
@NAME_OF_LAB
@click.argument("port", metavar="LINK|NODE:INTERFACE")
@click.argument("expression", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-c", "--count", type=click.IntRange(min=0), help="Stop after this many packets, 0: never; 100 without --for."
)
@click.option("--for", "seconds", type=Finite(0, 86_400), default=0.0, help="Stop after this many seconds.")
@click.option(
    "-w",
    "target",
    type=click.Path(dir_okay=False),
    callback=not_blank,
    help="Write a pcap file (- for stdout), not text.",
)
@click.pass_context
def capture(
    ctx: click.Context, name: str, port: str, expression: tuple[str, ...], count: int | None, seconds: float,
    target: str | None,
) -> None:  # fmt: skip
    """Show or keep what passes a port; EXPRESSION is tcpdump's.

    \b
    Examples:
      kvfabric lab capture spine-01:Ethernet0 -c 20 -w spine.pcap
      kvfabric lab capture leaf-01:Ethernet256 --for 10 udp port 4789
      kvfabric lab capture spine-01:Ethernet0 -c 0 -w - | wireshark -k -i -      live, until Ctrl-C
    """
    import os
    from pathlib import Path

    from labs import capture as capturing
    from labs import targets
    from labs.client import attach
    from labs.terminal import relay

    if target == "-" and os.isatty(1):
        raise click.UsageError("a pcap file would spoil this terminal: redirect it, or give -w a file")
    if count is None:
        count = 0 if seconds else 100
    with attach(name) as lab:
        try:
            end = targets.port(lab.lab, port)
        except targets.UnknownTargetError as error:
            _wrong_target(lab, str(error))
        argv = capturing.command(end.interface, count, seconds, bool(target), expression)
        process = lab.start(end.node, argv, paced=True)
        if target in {None, "-"}:
            ctx.exit(relay(process, reads=False))
        path = Path(str(target))
        with path.open("wb") as file:
            code = relay(process, file.fileno(), reads=False)
        if code and path.is_file() and not path.stat().st_size:
            path.unlink()  # tcpdump refused, and an empty file is no capture
        ctx.exit(code)


@command.command()
@NAME_OF_LAB
def down(name: str) -> None:
    """Stop a lab, also one that died; nothing is left of it. Example: kvfabric lab down"""
    from labs import state
    from labs.client import attach

    dead = state.deaths(name)
    for gone, why in dead.items():
        _say(f"{gone} was dead already: {why}; what it left is removed")
    running = [path.name for path in state.running() if name in {"", path.name}]
    if dead and not running:
        return
    lab = attach(name)
    left = []
    try:
        if state.facts_of(lab.folder).get("engine") == "containerlab":
            left = lab.call("destroy", on_note=_say)
    finally:
        lab.stop()
    for text in left:
        _say(f"containerlab left {text}")
    _say("stopped")
