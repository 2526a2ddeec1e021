"""A page with a square for each single failure, from green (nothing is lost) to red (servers are cut)."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fabric.files import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.analysis.failures import Impact
    from fabric.plan import Plan

_STYLE = (
    "body{font:14px system-ui;margin:2em;color:#222;background:#fff}h2{font-size:1em;margin:1em 0 .3em}"
    ".g{display:flex;flex-wrap:wrap;gap:2px}.g i{width:14px;height:14px;border-radius:2px}"
)


def severity_of(impact: Impact) -> float:
    """Return 0 (nothing lost) to 1 (servers cut, a group dead or leaves split); else the worst loss, up to 0.9."""
    if impact.cut or impact.groups_dead or impact.split:
        return 1.0
    return min(0.9, max(1 - impact.residual, 1 - impact.joint))


def write_heat_map(path: Path, plan: Plan, impacts: list[Impact]) -> None:
    """Write the page; the file appears at once. Each square's title says what the failure leaves."""
    by_kind: dict[str, list[Impact]] = {}
    for impact in impacts:
        by_kind.setdefault(impact.kinds[0], []).append(impact)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(plan.site)}: single failures</title>"
        f"<style>{_STYLE}</style><h1>{escape(plan.site)}: every single failure</h1>"
        "<p>Green: nothing is lost. Red: servers cut off, leaves split or a gateway group without gateway.</p>"
    ]
    for kind, found in by_kind.items():
        squares = "".join(_square(i) for i in sorted(found, key=lambda i: i.parts))
        parts.append(f"<h2>{escape(kind)} ({len(found)})</h2><div class=g>{squares}</div>")
    replace_file(path, "\n".join(parts) + "</html>\n")


def _square(impact: Impact) -> str:
    hue = round(120 * (1 - severity_of(impact)))
    text = (
        f"{impact.parts[0]}: {len(impact.cut)} servers cut, {impact.split} leaf pairs split, worst leaf at "
        f"{impact.residual:.0%}, fabric at {impact.joint:.1%}, {impact.gateways_left} gateways left"
    )
    return f'<i style="background:hsl({hue} 65% 50%)" title="{escape(text, quote=True)}"></i>'
