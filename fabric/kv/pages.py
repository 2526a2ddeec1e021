"""Answers of `fabric.kv` as pages with plots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.charts.page import Page
from fabric.charts.svg import Mark, Series, curves
from fabric.kv import benefit, move
from fabric.kv.report import buckets_table, case_lines, case_table, move_lines, placements_table

if TYPE_CHECKING:
    from fabric.kv.benefit import BucketBenefit, MeasuredCase
    from fabric.kv.model import KvModel
    from fabric.kv.move import Decision
    from fabric.kv.placement import PlacementOutcome


def move_page(model: KvModel, decision: Decision, tokens: int | None, gbps: float | None) -> Page:
    """Return the page of a move: T_move and T_recompute over the length of the context."""
    lengths = _lengths(decision.tokens)
    decided = [move.decide(model, n, decision.conditions) for n in lengths]
    series = [
        Series("move", tuple((float(d.tokens), d.move_s) for d in decided)),
        Series("compute again", tuple((float(d.tokens), d.recompute_s) for d in decided)),
    ]
    marks = [Mark(float(decision.tokens), f"asked: {decision.tokens}")]
    if tokens is not None:
        marks.append(Mark(float(tokens), f"moving wins from {tokens}"))
    title = f"{decision.model}: move the cache or compute it again"
    plot = curves(title, "tokens", "seconds", series, marks, logarithmic=True)
    lines = [(line[:10].strip(), line[10:].strip()) for line in move_lines(decision, tokens, gbps)[1:]]
    return Page(title, (plot,), (("Decision", ("what", "value"), lines),), move.METHOD, move.LEFT_OUT)


def _lengths(asked: int) -> list[int]:
    """Lengths from a block to eight times what is asked, evenly on a logarithmic axis."""
    low, high = 16, max(8 * asked, 4096)
    steps = 40
    found = {round(low * (high / low) ** (k / steps)) for k in range(steps + 1)}
    return sorted(found | {asked})


def benefit_page(
    case: MeasuredCase, buckets: dict[str, list[BucketBenefit]], placements: dict[str, list[PlacementOutcome]]
) -> Page:
    """Return the page of a measured case: benefit over output length, and the sets where they were asked for."""
    longest = case.longest_worth()
    high = max(128, 3 * (longest or 0))
    points = tuple((float(n), case.benefit_s(n)) for n in range(1, high + 1, max(1, high // 64)))
    marks = [Mark(float(longest), f"worth it up to {longest} tokens")] if longest else []
    title = f"Splitting prefill and decode: {benefit.verdict(case)}"
    plot = curves(title, "output tokens", "seconds gained", [Series("benefit", points)], marks)
    lines = [tuple(line.split("  ", 1)) if "  " in line else (line, "") for line in case_lines(case)]
    tables = [("Case", ("term", "value"), lines), ("Benefit", *case_table(case))]
    if buckets:
        tables += [("Per bucket", *buckets_table(buckets)), ("Placement rules", *placements_table(placements))]
    return Page(title, (plot,), tuple(tables), benefit.METHOD, benefit.LEFT_OUT)
