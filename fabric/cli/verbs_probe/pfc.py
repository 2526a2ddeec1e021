"""`kvfabric probe pfc`: prove in a lab that a PFC frame on a link is counted at its other end."""

from __future__ import annotations

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_PASS
from fabric.cli.output import print_json
from fabric.cli.words import LAB, not_blank


@click.command()
@click.argument("site")
@LAB
@click.option(
    "--from", "sender", required=True, callback=not_blank, metavar="DEVICE:PORT", help="The end of a link that sends."
)
@click.option("--frames", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Per lossless priority.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(*, site: str, lab: str, sender: str, frames: int, form: str) -> int:
    """Send 802.1Qbb pause frames over a lab's link; both ends must count every one, by priority.

    In a lab only: on a real link these frames stop traffic.

    \b
    Examples:
      kvfabric probe pfc lab --lab lab --from compute-001:be0-port0
      kvfabric probe pfc lab --lab lab --from spine-01:Ethernet0 --format json
    """
    from fabric.build import load_plan
    from fabric.problem import InputError, Problem
    from validators.counters.proof import Frames, prove_counting
    from validators.rdma.places import lab_places
    from validators.rdma.report import as_text, to_dict

    plan = load_plan(site, two_tiers_for="a lab")
    device, _, port = sender.partition(":")
    link = plan.link_at.get((device, port))
    if link is None:
        raise InputError([Problem("probe.link", sender, "is no port with a cable", "see `kvfabric cables SITE`")])
    qos = plan.fabrics[link.fabric].qos
    lossless = tuple(c.priority for c in qos.lossless) if qos else ()
    if not lossless:
        raise InputError([Problem("probe.class", f"fabric {link.fabric}", "has no lossless class to pause")])
    places = lab_places(lab, plan)
    sent = Frames(dict.fromkeys(lossless, frames), dict.fromkeys(lossless, 2))
    result = prove_counting(plan, link, device, places.agent, sent)
    if form == "json":
        print_json(to_dict(result))
    else:
        click.echo(as_text([result]))
    return {"pass": EXIT_PASS, "fail": EXIT_FAILED}.get(result.state.value, EXIT_COULD_NOT_RUN)
