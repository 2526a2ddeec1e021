"""A restore burst as tables and a plot: how many nodes are done by when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.flows.restore import LEFT_OUT, MODEL
from fabric.charts.page import Page
from fabric.charts.svg import Mark, Series, curves

if TYPE_CHECKING:
    from fabric.analysis.flows.restore import Restore

Rows = list[tuple[str, ...]]


def figures(answer: Restore) -> Rows:
    """Return the figures of a burst as (what, value)."""
    times = (answer.p50_s, answer.p95_s, answer.p99_s, answer.max_s)
    needed = f"{answer.pool_ports} of {answer.port_gbps}G, {answer.pool_ports_needed} needed for the demand"
    return [
        ("demand", f"{answer.demand_gb_s:.1f} GB/s ({answer.demand_gb_s * 8:.0f} Gb/s payload), one way"),
        ("pool ports", needed),
        ("done p50 / p95 / p99 / max", " / ".join(f"{t:.3f}" for t in times) + " s"),
        ("all done", f"{answer.all_done_s:.3f} s after the first start ({answer.burst.arrivals.value})"),
        ("late", f"{answer.late} of {answer.burst.nodes} after {answer.burst.window_s:g} s"),
        ("binding link", f"{answer.binding} ({answer.binding_tier})"),
    ]


def fixes(answer: Restore) -> tuple[tuple[str, ...], Rows]:
    """Return header and rows of what would help, best first."""
    rows: Rows = [(f.change, f"{f.max_s:.3f}", f"{f.late} of {answer.burst.nodes}") for f in answer.fixes]
    return ("with one thing changed", "slowest s", "late"), rows


def page_of(answer: Restore, site: str) -> Page:
    """Return the page: nodes done over time, the figures, and what would help."""
    nodes = answer.burst.nodes
    steps = [((t, float(k - 1)), (t, float(k))) for k, t in enumerate(answer.done_s, 1)]
    points = ((0.0, 0.0), *(point for step in steps for point in step))
    title = f"{site} {answer.fabric}: {nodes} nodes restore {answer.burst.size_bytes / 1e9:g} GB each"
    window = Mark(answer.burst.window_s, f"window {answer.burst.window_s:g} s")
    plot = curves(title, "seconds from a node's own start", "nodes done", [Series("nodes done", points)], [window])
    header: tuple[str, ...] = ("what", "value")
    tables = ("Figures", header, figures(answer)), ("What would help", *fixes(answer))
    return Page(title, (plot,), tables[: 2 if answer.fixes else 1], MODEL, LEFT_OUT)
