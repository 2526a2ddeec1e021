"""The site's drawing as data: made from the plan when a run starts, coloured by results when its report is written."""

# ruff: noqa: E501
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from validators.results import BAD, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


_NUMBERS, _TEXTS = (int, float), str
_PANEL = {"title": _TEXTS, "subtitle": _TEXTS, "y": _NUMBERS, "h": _NUMBERS, "boxes": list, "curves": list}
_BOX = {**dict.fromkeys("xywh", _NUMBERS), "title": _TEXTS, "kind": _TEXTS, "line": _TEXTS, "members": list}
_CURVE = {"d": _TEXTS, "w": _NUMBERS, "kind": _TEXTS, "links": list, "tip": _TEXTS}


def is_drawing(data: Any) -> bool:
    """Whether data read from a file is what `topology_of` makes; an empty object is no drawing, which a run may have."""
    return data == {} or (
        _has(data, {"width": _NUMBERS, "height": _NUMBERS, "panels": list})
        and all(_has(panel, _PANEL) for panel in data["panels"])
        and all(_has(box, _BOX) for panel in data["panels"] for box in panel["boxes"])
        and all(_has(curve, _CURVE) for panel in data["panels"] for curve in panel["curves"])
        and all(isinstance(name, str) for name in _names(data))
    )


def _has(data: Any, kinds: Mapping[str, Any]) -> bool:
    return isinstance(data, dict) and all(isinstance(data.get(name), kind) for name, kind in kinds.items())


def _names(data: dict[str, Any]) -> Iterator[Any]:
    for panel in data["panels"]:
        for part in (*panel["boxes"], *panel["curves"]):
            yield from part.get("members", ())
            yield from part.get("links", ())


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
    bad = [(name, text) for name, state, text in known if state in BAD]
    lines = [tip, *(f"{name}: {text}" for name, text in bad[:6])]
    if len(bad) > 6:
        lines.append(f"and {len(bad) - 6} more")
    return {"state": combine(state for _, state, _ in known).value, "bad": len(bad), "tip": "\n".join(lines)}
