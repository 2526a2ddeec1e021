"""Cables as NetBox's bulk import wants them (dcim.interface to dcim.interface, one row a cable).

Interface names are the NOS-neutral ones (`E1/7/2`), which is what device types for these switches use in NetBox.
Ref: NetBox documentation, models/dcim/cable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.cable_map import of_plan
from fabric.interop.formats._csv_text import csv_text

if TYPE_CHECKING:
    from fabric.plan import Plan

NAME = "netbox"
SUMMARY = "CSV for NetBox's bulk import of cables"
HEADER = (
    "side_a_device",
    "side_a_type",
    "side_a_name",
    "side_b_device",
    "side_b_type",
    "side_b_name",
    "type",
    "status",
    "label",
    "color",
    "length",
    "length_unit",
    "description",
    "tags",
)
# NetBox's own choices for `type`
_TYPES = {
    "dac": "dac-passive",
    "acc": "dac-active",
    "aec": "dac-active",
    "aoc": "aoc",
    "smf": "smf-os2",
    "mmf": "mmf-om4",
    "cat6": "cat6",
}
_COLOURS = {"backend": "ff6600", "frontend": "2196f3", "storage": "4caf50", "inband": "9e9e9e", "oob": "9e9e9e"}


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `netbox-cables.csv`."""
    rows = []
    for cable in of_plan(plan, fabrics).cables:
        carries = plan.fabrics[cable.network].carries
        rows.append(
            (
                cable.a.device,
                "dcim.interface",
                cable.a.port,
                cable.b.device,
                "dcim.interface",
                cable.b.port,
                cable_type(cable.medium),
                "planned",
                cable.id,
                next((_COLOURS[network] for network in carries if network in _COLOURS), ""),
                cable.length_m or "",
                "m" if cable.length_m else "",
                f"{cable.network} {cable.speed}G",
                "",
            )
        )
    return {"netbox-cables.csv": csv_text(HEADER, rows)}


def cable_type(medium: str) -> str:
    """NetBox's choice for a medium; empty when NetBox has none, which it accepts."""
    return _TYPES.get(medium.lower(), "")
