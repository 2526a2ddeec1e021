"""`kvfabric probe rdma`: KV-shaped transfers between the servers of a lab or a site."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_NOTHING_RAN, EXIT_PASS
from fabric.cli.numbers import Finite, count
from fabric.cli.output import print_json, print_problems
from fabric.cli.words import not_blank

if TYPE_CHECKING:
    from fabric.plan import Plan

_SETS = ["pair", "matrix", "cover", "bisection", "incast", "restore"]
_SCENARIOS = ["transfer", "access", "stale", "peer-dies", "link-lost", "wrong-gid", "overrun"]


@click.command()
@click.argument("site")
@click.option(
    "--lab", callback=not_blank, help="A lab that runs already; else $KVFABRIC_LAB, else servers are reached by SSH."
)
@click.option("--ssh-user", default="", callback=not_blank, help="User for SSH (else what ssh itself would use).")
@click.option(
    "--hosts",
    default="",
    callback=not_blank,
    help="Hosts file of `kvfabric accept`: how each server and switch is reached.",
)
@click.option("--set", "kind", type=click.Choice(_SETS), default="pair", show_default=True)
@click.option("--from", "owner", default="", callback=not_blank, help="SERVER or SERVER:PORT where blocks lie (pair).")
@click.option(
    "--to", "reader", default="", callback=not_blank, help="SERVER or SERVER:PORT where blocks arrive (pair, incast)."
)
@click.option("--count", default=2, show_default=True, type=count(1, 100_000), help="Senders of an incast.")
@click.option("--pool", multiple=True, callback=not_blank, help="SERVER[:PORT] of a restore's pool; repeat.")
@click.option("--readers", multiple=True, callback=not_blank, help="SERVER[:PORT] that a restore fills; repeat.")
@click.option(
    "--size",
    default="",
    callback=not_blank,
    help="What each reader of a restore gets: 20GB, 8GiB  [one pass over the pieces]",
)
@click.option(
    "--deadline", default=0.0, type=Finite(0, 86_400), help="Seconds in which every reader of a restore must have it."
)
@click.option("--tenant", default="", callback=not_blank, help="Only NICs of this tenant (matrix, cover, bisection).")
@click.option(
    "--class",
    "traffic_class",
    default="",
    callback=not_blank,
    help="Lossless class  [the first; every one for an incast]",
)
@click.option("--scenario", type=click.Choice(_SCENARIOS), default="transfer", show_default=True)
@click.option("--allow-disruptive", is_flag=True, help="Let link-lost take a server's link down for some seconds.")
@click.option("--verb", type=click.Choice(["read", "write"]), default="read", show_default=True)
@click.option("--backend", type=click.Choice(["auto", "pyverbs", "ibverbs", "tcp"]), default="auto", show_default=True)
@click.option("--model", callback=not_blank, help="Take the pieces from this model (see `kvfabric kv models`).")
@click.option("--tokens", default=2048, show_default=True, type=click.IntRange(1))
@click.option("--tp", default=8, show_default=True, type=click.IntRange(1))
@click.option("--dtype", default="fp16", callback=not_blank, show_default=True)
@click.option("--block-tokens", default=16, show_default=True, type=click.IntRange(1))
@click.option("--layout", type=click.Choice(["layer", "contiguous"]), default="layer", show_default=True)
@click.option(
    "--prefill-tokens-per-s", type=Finite(above=True), help="With --model: say whether to move or to compute again."
)
@click.option(
    "--piece", default=65_536, show_default=True, type=count(1, 1 << 30), help="Bytes of a piece, without --model."
)
@click.option("--pieces", default=64, show_default=True, type=count(1, 1 << 30), help="Pieces, without --model.")
@click.option("--max-bytes", default=64 << 20, show_default=True, type=count(1, 1 << 40), help="Most memory a flow may hold on each end.")  # noqa: E501  # fmt: skip
@click.option("--qps", default=4, show_default=True, type=click.IntRange(1, 1024))
@click.option(
    "--depth", default=64, show_default=True, type=click.IntRange(2, 8192), help="Requests outstanding per QP."
)
@click.option("--repeats", default=20, show_default=True, type=count(1, 1_000_000), help="Measured transfers per flow.")
@click.option("--duration", default=0.0, type=Finite(0, 86_400), help="Measure at least this many seconds.")
@click.option("--timeout-exponent", type=click.IntRange(8, 20), help="QP timeout: 4.096 us x 2^N  [14]")
@click.option(
    "--least-share", default=0.0, type=Finite(0, 1), help="Fail below this share of the MTU's payload ceiling."
)
@click.option("--most-p99-ms", type=Finite(), help="Fail when a transfer's p99 is above this.")
@click.option("--no-retransmissions", is_flag=True, help="Fail when a retransmission counter grew.")
@click.option("--counters/--no-counters", default=True, show_default=True, help="Read every NIC and switch on the way.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, site: str, lab: str | None, ssh_user: str, hosts: str, form: str, **asked: Any) -> int:
    """Move KV-cache-shaped data between servers with verbs, and check every block where it arrives.

    READ is decode pulling from prefill, WRITE is prefill pushing. Every block carries its identity; damaged, stale and
    foreign blocks fail by name. Access scenarios prove that wrong, foreign and revoked keys open nothing.

    \b
    Examples:
      kvfabric probe rdma lab --lab lab --from compute-001 --to compute-003 --model llama-3.1-70b --tokens 256
      kvfabric probe rdma lab --lab lab --from compute-001 --to compute-003 --scenario access
      kvfabric probe rdma xoc-256 --set incast --to compute-001:be0-port0 --count 8 --verb write
      kvfabric probe rdma xoc-256 --set restore --pool compute-016 --readers compute-001 --size 20GB --deadline 1
    """
    from fabric.build import plan_site
    from validators.rdma.command import run
    from validators.rdma.places import lab_places, ssh_places
    from validators.rdma.report import as_text, to_dict

    if asked["scenario"] == "link-lost" and not asked.pop("allow_disruptive"):
        raise click.UsageError("--scenario link-lost takes a link down: add --allow-disruptive")
    asked.pop("allow_disruptive", None)
    lab = lab or ("" if hosts or ssh_user else os.environ.get("KVFABRIC_LAB", ""))
    if lab and (hosts or ssh_user):
        raise click.UsageError("one way to reach servers is enough: --lab, or --hosts or --ssh-user")
    if hosts and ssh_user:
        raise click.UsageError("--hosts says whom to log in as (`username`): leave --ssh-user out")
    planned = plan_site(site)
    print_problems(planned.problems)
    if not lab and not hosts:
        _say_where(planned.plan)
    places = lab_places(lab, planned.plan) if lab else ssh_places(planned.plan, ssh_user, hosts)
    results, note = run(planned.plan, places, asked, lambda text: click.echo(text, err=True))
    click.echo(f"workload: {note}", err=True)
    if form == "json":
        print_json([to_dict(result) for result in results])
    else:
        click.echo(as_text(results))
    return exit_code({result.state.value for result in results})


def _say_where(plan: Plan) -> None:
    from validators.rdma.endpoints import endpoints
    from validators.rdma.places import management

    first = next((end.server for end in endpoints(plan)), "")
    such = f", such as {first} at {management(plan, first)}" if first else ""
    text = f"no --lab and no --hosts: servers of the real site are asked over SSH at the plan's addresses{such}"
    click.echo(text, err=True)


def exit_code(states: set[str]) -> int:
    """Return the exit code of a set of states: what could not be judged is never a pass."""
    if "fail" in states:
        return EXIT_FAILED
    if states & {"error", "unknown"}:
        return EXIT_COULD_NOT_RUN
    return EXIT_PASS if "pass" in states else EXIT_NOTHING_RAN
