"""The 11-column connectivity map, as the OCP training-fabric repository generates it.

`plan_id` is the site's name here; `type` stays empty and `status` is `connected`, as published. `zone` is `oob` for
out-of-band cables, else empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.cable_map import of_plan
from fabric.interop.formats._csv_text import csv_text
from fabric.plan import BORDER_LEAF, LEAF

if TYPE_CHECKING:
    from fabric.plan import Plan

NAME = "connectivity-map"
SUMMARY = "CSV, 11 columns, as generated for the OCP reference sites"
HEADER = (
    "plan_id",
    "cable_id",
    "status",
    "type",
    "zone",
    "a_device",
    "a_interface",
    "a_role",
    "b_device",
    "b_interface",
    "b_role",
)


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `connectivity-map.csv`."""
    rows = []
    for cable in of_plan(plan, fabrics).cables:
        zone = "oob" if "oob" in plan.fabrics[cable.network].carries else ""
        a, b = cable.a, cable.b
        roles = [LEAF if role == BORDER_LEAF else role for role in (a.role, b.role)]
        rows.append(
            (plan.site, cable.id, "connected", "", zone, a.device, a.port, roles[0], b.device, b.port, roles[1])
        )
    return {"connectivity-map.csv": csv_text(HEADER, rows)}
