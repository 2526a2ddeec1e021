"""The 12-column connectivity map of the OCP inference-fabric repository.

Node types are `server`, `switch`, `gateway` and `border`; network types `frontend`, `storage`, `inband`, `oob` and
`backend`. A row is written once, from the lower tier upwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.cable_map import of_plan
from fabric.interop.formats._csv_text import csv_text
from fabric.plan import BORDER_LEAF, EDGE, GATEWAY, SERVER

if TYPE_CHECKING:
    from fabric.plan import Plan

NAME = "ocp12"
SUMMARY = "CSV, 12 columns, the OCP inference repository's form"
HEADER = (
    "node_type",
    "node_id",
    "port",
    "peer_type",
    "peer_id",
    "peer_port",
    "speed",
    "media_type",
    "network_type",
    "lag_id",
    "plane",
    "comments",
)
_NODE_TYPE = {SERVER: "server", GATEWAY: "gateway", BORDER_LEAF: "border", EDGE: "border"}
_NETWORKS = ("backend", "oob", "inband", "frontend", "storage")


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `connectivity-map-12.csv`."""
    rows = []
    for cable in of_plan(plan, fabrics).cables:
        a, b = cable.a, cable.b
        ends = [_NODE_TYPE.get(a.role, "switch"), a.device, a.port, _NODE_TYPE.get(b.role, "switch"), b.device, b.port]
        comment = f"cable {cable.id}, {cable.length_m} m" if cable.length_m else f"cable {cable.id}"
        rows.append([*ends, f"{cable.speed}G", cable.medium, network_type(plan, cable.network), "", "", comment])
    return {"connectivity-map-12.csv": csv_text(HEADER, rows)}


def network_type(plan: Plan, fabric: str) -> str:
    """The form's word for a fabric: the first of backend, oob, inband, frontend, storage that it carries."""
    carries = plan.fabrics[fabric].carries
    return next((network for network in _NETWORKS if network in carries), fabric)
