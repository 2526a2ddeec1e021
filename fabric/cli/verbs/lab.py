"""`kvfabric lab`: the rendered fabric running for real, in a VM or in this host's namespaces."""

from __future__ import annotations

from typing import Any

import click

from fabric.cli import lab_export
from fabric.cli.exits import EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json, table

_NAME = click.option("--name", "-n", default="", help="Which lab, when more than one is running.")


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
    """


command.add_command(lab_export.command, "export")


@command.command()
@click.option("--engine", type=click.Choice(["uml", "containerlab"]), default="uml", show_default=True)
def build(engine: str) -> None:
    """Make what an engine needs, unless it is there already: kernel and Debian root; Docker, containerlab and image.

    \b
    Examples:
      kvfabric lab build
      kvfabric lab build --engine containerlab     needs Go 1.24 or newer; about 5 minutes more
    """
    from labs.containerlab import build as containerlab
    from labs.uml import kernel, root

    for path in containerlab.build() if engine == "containerlab" else [root.build(), kernel.build()]:
        click.echo(path)


def _start(options: dict[str, Any]) -> Any:
    from labs import site
    from labs.machine import Options

    machine = Options(memory_mb=options["memory"], rdma=options["rdma"])
    return site.start(options["site"], options["name"], options["counts"], options["engine"], machine, _say)


def _start_options(function: Any) -> Any:
    for option in (
        click.argument("site"),
        click.option("--slice", "counts", default="", help="leaves=2,spines=2,gateways=2,servers=4"),
        click.option("--engine", default="", help="native or uml; default: native where this kernel can, else uml."),
        click.option("--name", default="", help="Name of the lab; default: the site's."),
        click.option("--memory", default=4096, show_default=True, help="MB of the VM (engine uml)."),
        click.option("--rdma", type=click.Choice(["shared", "exclusive"]), default="shared", show_default=True),
    ):
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
    """Start the lab of SITE. Exit 1: it runs but is not what the plan says. Example: kvfabric lab up lab"""
    started = _start(options)
    started.running.commit()
    ctx.exit(_report(started))


@command.command()
@_start_options
@click.argument("argv", nargs=-1, required=True)
@click.pass_context
def run(ctx: click.Context, /, argv: tuple[str, ...], **options: Any) -> None:
    """Start a lab, run a command here with KVFABRIC_LAB set, stop it. Example: kvfabric lab run lab -- pytest"""
    import os
    import subprocess

    started = _start(options)
    try:
        _report(started)
        done = subprocess.run(argv, env={**os.environ, "KVFABRIC_LAB": started.running.name}, check=False)
    finally:
        started.running.stop()
    ctx.exit(done.returncode)


@command.command()
@_NAME
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def status(ctx: click.Context, name: str, form: str) -> None:
    """Sessions, BFD, EVPN, VNIs, router MACs, routes, RDMA; exit 1 when the lab is not what the plan says."""
    from labs.client import attach

    with attach(name) as lab:
        data = lab.call("status")
    if form == "json":
        print_json(data)
    else:
        _print_status(data)
    ctx.exit(EXIT_FAILED if data["missing"] else EXIT_PASS)


def _print_status(data: dict[str, Any]) -> None:
    rows = [
        [
            r["node"], *(f"{r[k]['up']}/{r[k]['all']}" for k in ("bgp", "bfd", "vni")),
            sum(len(v) for v in r["rmac"].values()), " ".join(f"{k}={v}" for k, v in r["routes"].items()),
            r.get("conntrack", ""),
        ]
        for r in data["routers"]
    ]  # fmt: skip
    click.echo(table(["router", "bgp", "bfd", "vni", "rmac", "bgp routes", "conntrack"], rows))
    servers = [[s["node"], ",".join(s["tenants"]), f"{len(s['rdma'])}/{s['rdma_wanted']}"] for s in data["servers"]]
    click.echo("\n" + table(["server", "tenants", "rdma"], servers))
    click.echo("\n" + table(["link", "a", "b"], [[k["id"], k["a"], k["b"]] for k in data["links"]]))
    for fault in data["faults"]:
        click.echo(f"fault: {fault['target']} {fault['kind']} {fault['text']}")
    for text in data["missing"] or ["the lab is what the plan says"]:
        click.echo(text)


@command.command(name="exec", context_settings={"ignore_unknown_options": True})
@_NAME
@click.argument("node")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def exec_(ctx: click.Context, name: str, node: str, argv: tuple[str, ...]) -> None:
    """Run a command in a node. Example: kvfabric lab exec compute-001 -- ping -c1 10.250.0.1"""
    from labs.client import attach
    from labs.terminal import relay

    with attach(name) as lab:
        ctx.exit(relay(lab.start(node, argv)))


@command.command()
@_NAME
@click.argument("node")
@click.pass_context
def shell(ctx: click.Context, name: str, node: str) -> None:
    """Open a shell in a node. Example: kvfabric lab shell leaf-01"""
    from labs.client import attach
    from labs.terminal import relay_terminal

    with attach(name) as lab:
        ctx.exit(relay_terminal(lab.start(node, ["bash", "-i"], tty=True)))


@command.command()
@_NAME
@click.argument("port", metavar="NODE:INTERFACE")
@click.option("-c", "count", default=100, show_default=True, help="Stop after this many packets.")
@click.option("-w", "target", type=click.Path(dir_okay=False), help="Write a pcap file instead of text.")
@click.pass_context
def capture(ctx: click.Context, name: str, port: str, count: int, target: str | None) -> None:
    """Show or keep what passes a port. Example: kvfabric lab capture spine-01:Ethernet0 -c 20 -w s.pcap"""
    from pathlib import Path

    from labs.client import attach
    from labs.terminal import relay

    node, _, interface = port.partition(":")
    argv = ["tcpdump", "-nnv", "-l", "-c", str(count), "-i", interface or "any"]
    with attach(name) as lab:
        code = relay(lab.start(node, [*argv, *(["-w", "/lab/results/capture.pcap"] if target else [])]))
        if target:
            lab.fetch("/lab/results/capture.pcap", Path(target))
    ctx.exit(code)


@command.command()
@_NAME
@click.argument("target")
@click.option("--loss", default=0.0, help="Per cent of packets lost, each way.")
@click.option("--delay", default=0.0, help="Milliseconds added, each way.")
@click.option("--rate", default=0.0, help="Mb/s at most, each way.")
@click.option("--for", "seconds", default=0.0, help="Seconds until it goes away by itself; 0: until `heal`.")
def impair(name: str, target: str, loss: float, delay: float, rate: float, seconds: float) -> None:
    """Make a link bad. Example: kvfabric lab impair leaf-01:Ethernet256 --loss 1 --for 30"""
    from labs.client import attach

    with attach(name) as lab:
        print_json(lab.call("impair", target=target, loss=loss, delay_ms=delay, rate_mbit=rate, seconds=seconds))


@command.command(name="break")
@_NAME
@click.argument("target")
@click.option("--how", type=click.Choice(["silent", "down", "daemons", "power"]), default="silent", show_default=True)
@click.option("--for", "seconds", default=0.0, help="Seconds until it heals by itself; 0: until `heal`.")
def break_(name: str, target: str, how: str, seconds: float) -> None:
    """Break a link or a node. Example: kvfabric lab break spine-01 --for 20"""
    from labs.client import attach

    with attach(name) as lab:
        print_json(lab.call("cut", target=target, how=how, seconds=seconds))


@command.command()
@_NAME
@click.argument("target", default="")
def heal(name: str, target: str) -> None:
    """Undo one fault, or all. Example: kvfabric lab heal"""
    from labs.client import attach

    with attach(name) as lab:
        print_json(lab.call("heal", target=target))


@command.command()
@_NAME
def down(name: str) -> None:
    """Stop a lab; nothing is left of it. Example: kvfabric lab down"""
    from labs import state
    from labs.client import attach

    for dead, why in state.deaths(name).items():
        _say(f"{dead} was dead already: {why}; what it left is removed")
    attach(name).stop()
    _say("stopped")
