"""Plots as numbers that a template draws: heat map, ladder curve, idle table, failover timeline.

They come from results whose `evidence` has a key of the plot's name:
`matrix` {rows, columns, values, unit, promised}; `ladder` {points: [{x, y, ok}], x, y, knee, limit, ideal};
`idle` {rows: [{protocol, state, plan_s, declared_s, measured_s, verdict}]}, `declared_s` as the gateway was given it;
`timeline` {start_ms, end_ms, budget_ms, note, events: [{at_ms, text}], flows: [{name, gaps: [[from_ms, to_ms], ...]}]}.
"""

# ruff: noqa: E501  rows of geometry read better whole
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validators.report.model import Run
    from validators.results import Result

_CELL, _LEFT = 26, 150
_LETTER, _SLOPE = 6.4, 0.82  # the width of a letter, and the rise of a name that is turned by 55 degrees
_WIDTH, _HEIGHT, _PAD = 860, 300, 56
_LANE = 20


def plots_of(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Return the plots of a run by kind, in the order of their results."""
    found: dict[str, list[dict[str, Any]]] = {"matrix": [], "ladder": [], "idle": [], "timeline": []}
    makers = {"matrix": heat_map, "ladder": ladder, "idle": idle_table, "timeline": timeline}
    for record in run.records:
        for result in (record.result, *record.result.parts):
            for kind, make in makers.items():
                data = result.evidence.get(kind)
                if isinstance(data, dict):
                    found[kind].append(
                        {"title": f"{result.check} {result.subject}", "state": result.state.value}
                        | _try(make, data, result)
                    )
    return found


def _try(make: Any, data: dict[str, Any], result: Result) -> dict[str, Any]:
    """A plot must never cost the report: data of another shape is said, not raised."""
    try:
        return dict(make(data, result))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return {"broken": f"cannot be drawn: {type(error).__name__} {error}"}


def heat_map(data: dict[str, Any], _result: Result) -> dict[str, Any]:
    """Place the cells of a matrix; a cell's level is its share of what was promised, in tenths."""
    rows, columns, values = data["rows"], data["columns"], data["values"]
    known = [v for line in values for v in line if isinstance(v, int | float)]
    top = float(data.get("promised") or (max(known) if known else 1.0))
    cell = max(9, min(_CELL, 900 // max(1, len(columns))))
    longest = max((len(str(name)) for name in (*rows, *columns)), default=0)
    left, top_y = round(max(60, 16 + _LETTER * longest)), round(max(40, 18 + _LETTER * _SLOPE * longest))
    cells = [
        {
            "x": left + j * cell, "y": top_y + i * cell, "level": level(v, top),
            "text": f"{v:.3g}" if isinstance(v, int | float) and cell >= 24 else "",
            "tip": f"{rows[i]} -> {columns[j]}: " + (f"{v:.4g} {data.get('unit', '')}" if isinstance(v, int | float) else "not measured"),
        }
        for i, line in enumerate(values)
        for j, v in enumerate(line)
    ]  # fmt: skip
    return {
        "cells": cells, "cell": cell, "rows": [{"y": top_y + i * cell + cell / 2, "text": t} for i, t in enumerate(rows)],
        "columns": [{"x": left + j * cell + cell / 2, "text": t} for j, t in enumerate(columns)],
        "width": left + cell * len(columns) + round(0.6 * _LETTER * longest) + 12, "height": top_y + cell * len(rows) + 12, "left": left, "top": top_y,
        "colours": "promised" if data.get("promised") else "the largest of them", "unit": data.get("unit", ""), "promised": data.get("promised"),
        "least": min(known) if known else None, "most": max(known) if known else None,
        "unmeasured": sum(
            1 for row, line in zip(rows, values, strict=True) for column, v in zip(columns, line, strict=True)
            if not isinstance(v, int | float) and not _within(row, column)
        ),
    }  # fmt: skip


def _within(row: str, column: str) -> bool:
    """Whether both are NICs (`SERVER:PORT`) of one server, or the same: nothing goes over the fabric between them."""
    return row.partition(":")[0] == column.partition(":")[0]


def level(value: Any, promised: float) -> str:
    """Return the colour class of a value: `none`, or 0 (nothing) to 10 (as promised or better)."""
    if not isinstance(value, int | float):
        return "none"
    return str(max(0, min(10, math.floor(10 * value / promised + 1e-9))))


def ladder(data: dict[str, Any], _result: Result) -> dict[str, Any]:
    """Place a curve with its steps; the knee is the last step that held."""
    points = [p for p in data["points"] if isinstance(p.get("x"), int | float) and isinstance(p.get("y"), int | float)]
    if not points:
        return {"broken": "no step was measured"}
    right, top = nice(max(p["x"] for p in points)), nice(max(1e-9, *(p["y"] for p in points)))
    span_x, span_y = _WIDTH - 2 * _PAD, _HEIGHT - 2 * _PAD

    def place(point: dict[str, Any]) -> dict[str, Any]:
        x = _PAD + span_x * point["x"] / right
        y = _HEIGHT - _PAD - span_y * point["y"] / top
        return {
            "x": round(x, 1),
            "y": round(y, 1),
            "ok": bool(point.get("ok", True)),
            "tip": f"{point['x']:g} -> {point['y']:g}",
        }

    placed = [place(p) for p in points]
    knee = data.get("knee")
    return {
        "points": placed, "path": "M" + " L".join(f"{p['x']} {p['y']}" for p in placed), "width": _WIDTH, "height": _HEIGHT,
        "pad": _PAD, "xs": [{"at": round(_PAD + span_x * i / 5, 1), "text": short(right * i / 5)} for i in range(6)],
        "ys": [{"at": round(_HEIGHT - _PAD - span_y * i / 4, 1), "text": short(top * i / 4)} for i in range(5)],
        "x_name": data.get("x", "offered"), "y_name": data.get("y", "achieved"),
        "knee": round(_PAD + span_x * knee / right, 1) if isinstance(knee, int | float) else None,
        "knee_text": _knee(knee, data.get("limit", "")) if isinstance(knee, int | float) else "", "ideal": bool(data.get("ideal")),
    }  # fmt: skip


def _knee(value: float, limit: str) -> str:
    """Say what ended the climb: a rate that nothing failed at is no knee."""
    if limit == "ladder":
        return f"{value:,.0f}, the highest tried"
    return f"knee at {value:,.0f}" + (", by the tester" if limit == "tester" else "")


def nice(value: float) -> float:
    """Round an axis up to 1, 2, 2.5 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10 ** math.floor(math.log10(value))
    steps = [float(step * power) for step in (1, 2, 2.5, 5, 10)]
    return next(step for step in steps if step >= value * (1 - 1e-9))


def short(value: float) -> str:
    """Return a number with k and M."""
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.4g}{letter}"
    return f"{value:.4g}"


def idle_table(data: dict[str, Any], _result: Result) -> dict[str, Any]:
    """Return rows with a bar of measured against declared time."""
    rows = data["rows"]
    longest = max([float(row.get(k) or 0) for row in rows for k in ("declared_s", "measured_s")] or [1.0]) or 1.0
    return {
        "rows": [
            {"plan_s": row.get("declared_s")} | row | {"declared_bar": 100 * float(row.get("declared_s") or 0) / longest,
                   "measured_bar": 100 * float(row.get("measured_s") or 0) / longest}
            for row in rows
        ]
    }  # fmt: skip


def timeline(data: dict[str, Any], _result: Result) -> dict[str, Any]:
    """Place flows as lanes with their gaps, and events as marks."""
    start, end = float(data["start_ms"]), float(data["end_ms"])
    span = _WIDTH - _LEFT - 20
    flows = data["flows"][:40]

    def x(at: float) -> float:
        return round(_LEFT + span * (min(max(at, start), end) - start) / (end - start), 1)

    lanes = [
        {
            "y": 40 + _LANE * i, "name": flow["name"],
            "gaps": [{"x": x(a), "w": max(1.5, round(x(b) - x(a), 1)), "tip": f"{b - a:.1f} ms without a packet"} for a, b in flow["gaps"]],
            "longest": max((b - a for a, b in flow["gaps"]), default=0.0),
        }
        for i, flow in enumerate(flows)
    ]  # fmt: skip
    step = nice((end - start) / 8)
    ticks = [step * i for i in range(math.ceil(start / step), math.floor(end / step) + 1)]
    marks = [{"x": x(e["at_ms"]), "text": e["text"]} for e in data.get("events", ())]
    return {
        "lanes": lanes, "marks": marks, "width": _WIDTH + _LANE, "note": data.get("note", ""), "left": _LEFT, "span": span, "height": 40 + _LANE * len(flows) + 34,
        "more": len(data["flows"]) - len(flows), "budget_ms": data.get("budget_ms"),
        "ticks": [{"x": x(at), "text": f"{at / 1e3:g} s" if step >= 1e3 else f"{at:.0f} ms"} for at in ticks],
    }  # fmt: skip
