"""Switches of a lab played by SONiC's virtual switch: its ports, and the SONiC files rendered for them.

The virtual switch has ports of its own: the container's `ethN` becomes `Ethernet<4(N-1)>`, whatever the planned switch
calls its ports. So the N-th cabled port of the planned switch, in natural order, is played by `ethN`, and the files are
rendered from a plan in which the switch has those ports.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.hardware.profiles import switch_profile
from fabric.hardware.ranges import natural_key
from fabric.problem import InputError, Problem
from fabric.render import sonic
from fabric.render.sonic_json import config_db_text
from labs.containerlab.kinds import SONIC_VS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import End, Link, Plan, Switch
    from fabric.render.sonic_json import Tables
    from labs import model

MODEL = "sonic-vs"
_MODE = "1x40G"

# the management port is the lab's, and what counts and hashes is software
_LEFT_OUT = ("BUFFER_", "CABLE_LENGTH", "DNS_", "FLEX_COUNTER", "MGMT_", "NTP", "SWITCH_HASH", "SYSLOG")
# the container's tables are loaded on top of its own, which know better what the image is
_CONTAINER_TABLES = ("FEATURE",)
_CONTAINER_METADATA = ("platform", "hwsku", "mac", "buffer_model", "frr_mgmt_framework_config")


def wires(lab: model.Lab, name: str) -> dict[str, str]:
    """Return the container's interface by planned interface of a switch: the N-th in natural order is `ethN`."""
    ports = sorted((end.interface for k in lab.links for end in k.ends() if end.node == name), key=natural_key)
    return {port: f"eth{n}" for n, port in enumerate(ports, 1)}


def port_of(wire: str) -> str:
    """Return SONiC's name of the port behind a wire: `eth3` is `Ethernet8`."""
    return f"Ethernet{4 * (int(wire.removeprefix('eth')) - 1)}"


def too_many(lab: model.Lab, names: Iterable[str]) -> list[Problem]:
    """Return a problem for each switch with more cables than a virtual switch has ports."""
    most = len(switch_profile(MODEL).cages)
    return [
        Problem(
            "lab.sonic-ports",
            name,
            f"has {count} cables in this lab, SONiC's virtual switch has {most} ports",
            fix="take fewer servers with --slice, or play it with FRR: --kind ROLE=frr",
        )
        for name in names
        if (count := len(wires(lab, name))) > most
    ]


def files(plan: Plan, lab: model.Lab, kinds: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return `config_db.json` and `frr.conf` by switch; `kinds` says whether it is a container or a VM.

    Raises InputError when a switch has more cables than ports.
    """
    if problems := too_many(lab, kinds):
        raise InputError(problems)
    seen = reshaped(plan, lab, kinds)
    found = {}
    for name, kind in kinds.items():
        rendered = sonic.render(seen, name)
        tables = _lab_tables(json.loads(rendered["config_db.json"]), kind)
        found[name] = {"config_db.json": config_db_text(tables), "frr.conf": rendered["frr.conf"]}
    return found


def reshaped(plan: Plan, lab: model.Lab, names: Iterable[str]) -> Plan:
    """Return the plan with the lab's links only, in which the named switches are virtual switches."""
    chosen = list(names)
    ports = {name: {planned: port_of(wire) for planned, wire in wires(lab, name).items()} for name in chosen}
    inside = {link.id for link in lab.links}
    links = {key: _link(link, ports) for key, link in plan.links.items() if key in inside}
    switches = {name: _switch(s, links) if name in ports else s for name, s in plan.switches.items()}
    # neither buffers nor queues, so no RoCE
    fabrics = {name: replace(fabric, qos=None) for name, fabric in plan.fabrics.items()}
    return replace(plan, links=links, switches=switches, fabrics=fabrics)


def _link(link: Link, ports: dict[str, dict[str, str]]) -> Link:
    a, b = (_end(end, ports) for end in (link.a, link.b))
    # the virtual switch can end a tunnel on a routed port, so a gateway's address needs no VLAN
    virtual = link.a.device in ports or link.b.device in ports
    return replace(link, a=a, b=b, vlan=0 if virtual else link.vlan)


def _end(end: End, ports: dict[str, dict[str, str]]) -> End:
    if end.device not in ports:
        return end
    return replace(end, interface=ports[end.device][end.interface])


def _switch(switch: Switch, links: dict[str, Link]) -> Switch:
    at = {k.end(switch.name).interface: key for key, k in links.items() if switch.name in {k.a.device, k.b.device}}
    profile = switch_profile(MODEL)
    every = (port for cage in profile.cages for port in profile.expand(cage, _MODE)[1])
    ports = tuple(replace(port, link=at[port.interface]) for port in every if port.interface in at)
    return replace(switch, model=MODEL, ports=ports, breakouts=())


def _lab_tables(tables: Tables, kind: str) -> Tables:
    left_out = (*_LEFT_OUT, *(_CONTAINER_TABLES if kind == SONIC_VS else ()))
    kept = {name: rows for name, rows in tables.items() if not name.startswith(left_out)}
    if kind == SONIC_VS:
        row = kept["DEVICE_METADATA"]["localhost"]
        kept["DEVICE_METADATA"] = {"localhost": {k: v for k, v in row.items() if k not in _CONTAINER_METADATA}}
    return kept
