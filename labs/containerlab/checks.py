"""What can be told to be wrong with an export before anything is written or Docker is asked."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, ip_interface, ip_network
from typing import TYPE_CHECKING

from fabric.problem import Problem
from labs import model
from labs.containerlab.topology import planned_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan
    from labs.containerlab.kinds import Settings

# containerlab's own management network, and what Docker needs of a network: its address, broadcast, bridge
OWN_NETWORK = ip_network("172.20.20.0/24")
_TAKEN = 3

# Docker's rule for container names, of which the prefix becomes part; as long as a lab's name may be
_PREFIX = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,30}")


def problems(plan: Plan, lab: model.Lab, settings: Settings) -> list[Problem]:
    """Return all that would make containerlab or Docker refuse the lab, or the lab be another one than planned."""
    return [
        *_names(lab, settings),
        *(_model_problem(lab, text) for text in model.faults(lab)),
        *_management(plan, lab, settings),
    ]


def _names(lab: model.Lab, settings: Settings) -> Iterator[Problem]:
    if not model.LAB_NAME.fullmatch(lab.name):
        yield Problem("lab.name", f"--name {lab.name}", model.LAB_NAME_WORDS, fix="choose another --name")
    if settings.prefix and not _PREFIX.fullmatch(settings.prefix):
        text = "becomes part of container names: 1 to 31 letters, digits, `_`, `.` and `-`, the first no sign"
        yield Problem("lab.name", f"--prefix {settings.prefix}", text, fix="choose another --prefix")


def _model_problem(lab: model.Lab, text: str) -> Problem:
    fix = ""
    if "longer than" in text:
        fix = "give the NIC (or switch port) a shorter name in the inventory; Linux takes no longer one"
    elif "used twice" in text:
        fix = "a port takes one cable: correct the inventory's port ranges"
    return Problem("lab.model", f"lab {lab.name}", text, fix)


def _management(plan: Plan, lab: model.Lab, settings: Settings) -> Iterator[Problem]:
    network = _network(plan, lab, settings)
    room = network.num_addresses - _TAKEN
    if len(lab.nodes) > room:
        yield Problem(
            "lab.management",
            f"network {network}",
            f"has room for {room} nodes, the lab has {len(lab.nodes)}",
            fix=f"a smaller --slice, or --management {_other(settings)}",
        )
    for name, prefix in _prefixes(plan):
        if prefix.overlaps(network):
            yield Problem(
                "lab.management",
                f"network {network}",
                f"overlaps {name} {prefix}, which the nodes must reach through the fabric",
                fix=f"--management {_other(settings)}, or another range in the inventory",
            )


def _network(plan: Plan, lab: model.Lab, settings: Settings) -> IPv4Network:
    addresses = [a for node in lab.nodes if (a := planned_address(plan, node.name))]
    chosen = ip_interface(addresses[0]).network if addresses and settings.management == "plan" else OWN_NETWORK
    return IPv4Network(chosen)


def _other(settings: Settings) -> str:
    return "containerlab" if settings.management == "plan" else "plan"


def _prefixes(plan: Plan) -> Iterator[tuple[str, IPv4Network]]:
    """Everything that is routed in the site: its pools, its tenants' subnets, what it shows outside."""
    for pool in plan.pools:
        if "/" in pool.range and pool.name != "management":
            yield f"pool {pool.name}", IPv4Network(pool.range)
    for tenant in plan.tenants.values():
        for subnet in tenant.subnets:
            yield f"tenant {tenant.name}'s subnet", IPv4Network(subnet.prefix)
        for exposure in tenant.exposures:
            yield from ((f"tenant {tenant.name}'s public addresses", IPv4Network(p)) for p in exposure.public)
