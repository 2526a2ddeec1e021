"""The site's drawing as data: made from the plan when a run starts, coloured by results when its report is written."""

# ruff: noqa: E501
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from validators.results import State, combine

if TYPE_CHECKING:
    from fabric.plan import Plan
    from validators.report.model import Run


def topology_of(plan: Plan) -> dict[str, Any]:
    """Return every fabric as boxes and curves with the devices and links that they stand for; JSON-ready."""
    from fabric.interop.diagram.layout import lay_out
    from fabric.interop.diagram.model import panels

    page = lay_out(panels(plan), 8.0)
    between: dict[tuple[str, str, str], list[str]] = {}
    for link in plan.links.values():
        between.setdefault((link.fabric, link.a.device, link.b.device), []).append(link.id)
    drawn = []
    for placed in page.panels:
        homes = {member: box.node.id for box in placed.boxes for member in box.node.members}
        links: dict[tuple[str, str], list[str]] = {}
        for (fabric, a, b), ids in between.items():
            if fabric == placed.panel.fabric and a in homes and b in homes:
                links.setdefault((homes[a], homes[b]), []).extend(ids)
        boxes = [
            {
                "x": round(box.x, 1), "y": round(box.y, 1), "w": round(box.width, 1), "h": round(box.height, 1),
                "title": box.node.title, "kind": box.node.kind, "line": next((one for one in box.node.lines if one), ""),
                "members": list(box.node.members),
            }
            for box in placed.boxes
        ]  # fmt: skip
        curves = [
            {"d": c.path, "w": c.stroke, "kind": c.bundle.kind, "links": links.get((c.bundle.low, c.bundle.high), []),
             "tip": c.bundle.tip}
            for c in placed.curves
        ]  # fmt: skip
        head = {"title": placed.panel.title, "subtitle": placed.panel.subtitle}
        drawn.append(head | {"y": round(placed.y, 1), "h": round(placed.height, 1), "boxes": boxes, "curves": curves})
    return {"width": round(page.width, 1), "height": round(page.height, 1), "panels": drawn}


def coloured(run: Run) -> dict[str, Any]:
    """Return the drawing with a state and a tip on each box and curve; empty when the run has no drawing."""
    if not run.topology:
        return {}
    links, devices = run.link_states(), run.device_states()
    panels = []
    for panel in run.topology["panels"]:
        curves = [curve | _sum(curve["links"], links, curve["tip"]) for curve in panel["curves"]]
        boxes = [box | _sum(box["members"], devices, box["title"]) for box in panel["boxes"]]
        # what is bad is drawn last, on top
        curves.sort(key=lambda curve: curve["state"] in {"fail", "error"})
        panels.append(panel | {"curves": curves, "boxes": boxes, "dense": len(curves) > 64})
    return run.topology | {"panels": panels}


def _sum(names: list[str], states: dict[str, tuple[State, str]], tip: str) -> dict[str, Any]:
    known = [(name, *states[name]) for name in names if name in states]
    if not known:
        return {"state": "none", "bad": 0, "tip": tip}
    bad = [(name, text) for name, state, text in known if state in {State.FAIL, State.ERROR, State.UNKNOWN}]
    lines = [tip, *(f"{name}: {text}" for name, text in bad[:6])]
    if len(bad) > 6:
        lines.append(f"and {len(bad) - 6} more")
    return {"state": combine(state for _, state, _ in known).value, "bad": len(bad), "tip": "\n".join(lines)}
