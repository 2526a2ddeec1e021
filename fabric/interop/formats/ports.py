"""Every port of every switch, used or spare, with what is plugged in: the sheet for the person at the rack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.formats._csv_text import csv_text

if TYPE_CHECKING:
    from fabric.plan import Plan, Port, Switch

NAME = "ports"
SUMMARY = "CSV, every switch port, used or spare, and its peer"
HEADER = (
    "device",
    "port",
    "interface",
    "alias",
    "lanes",
    "cage",
    "subport",
    "speed_gbps",
    "fec",
    "zone",
    "use",
    "peer",
    "peer_port",
    "peer_interface",
    "address",
    "tenant",
    "cable",
)


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `ports.csv`."""
    switches = [switch for switch in plan.switches.values() if switch.fabric in fabrics]
    return {"ports.csv": csv_text(HEADER, (_row(plan, s, p) for s in switches for p in s.ports))}


def _row(plan: Plan, switch: Switch, port: Port) -> list[object]:
    names = [switch.name, port.name, port.interface, port.alias]
    own = [*names, port.lanes, port.cage, port.subport, port.speed, port.fec, port.zone]
    if not port.link:
        return [*own, "spare", "", "", "", "", "", ""]
    link = plan.links[port.link]
    far = link.far(switch.name)
    near = link.end(switch.name)
    return [*own, link.kind, far.device, far.port, far.interface, near.address, link.tenant, link.cable]
