"""The failures of a site as a page: a square for each single failure, green (nothing is lost) to red, and the worst."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from fabric.analysis.failures import LEFT_OUT, MODEL
from fabric.charts.page import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.analysis.failures import Impact
    from fabric.plan import Plan

HEADER = (
    "what", "alike", "servers cut", "tenants", "leaves split", "worst leaf", "fabric", "skew", "gateways left",
    "groups dead",
)  # fmt: skip
_CELL, _LEFT = 14, 130


def severity_of(impact: Impact) -> float:
    """Return 0 (nothing lost) to 1 (servers cut, a group dead or leaves split); else the worst loss, up to 0.9."""
    if impact.cut or impact.groups_dead or impact.split:
        return 1.0
    return min(0.9, max(1 - impact.residual, 1 - impact.joint))


def rows_of(impacts: Sequence[Impact]) -> list[tuple[str, ...]]:
    """Return a row for each impact, in the order of `HEADER`."""
    return [
        (
            " and ".join(f"{k} {n}" for k, n in zip(i.kinds, i.parts, strict=True)),
            str(i.alike),
            str(len(i.cut)),
            ", ".join(f"{t} {n}" for t, n in i.tenants.items()) or "-",
            str(i.split),
            f"{i.residual:.0%}",
            f"{i.joint:.1%}",
            f"{i.skew:.2f}",
            str(i.gateways_left),
            ", ".join(i.groups_dead) or "-",
        )
        for i in impacts
    ]


def page_of(plan: Plan, singles: Sequence[Impact], doubles: Sequence[Impact], worst: int) -> Page:
    """Return the page: the heat map, and the worst single and double failures."""
    tables = [(f"The worst {len(singles[:worst])} of {len(singles)} single failures", HEADER, rows_of(singles[:worst]))]
    if doubles:
        count = sum(i.alike for i in doubles)
        title = f"The worst {len(doubles[:worst])} classes of {count} double failures"
        tables.append((title, HEADER, rows_of(doubles[:worst])))
    title = f"{plan.site}: every single failure"
    return Page(title, (heat_map(title, singles),), tuple(tables), MODEL, LEFT_OUT)


def heat_map(title: str, impacts: Sequence[Impact], width: int = 1000) -> str:
    """Return the squares as SVG, kind by kind; each has a title that says what the failure leaves."""
    by_kind: dict[str, list[Impact]] = {}
    for impact in impacts:
        by_kind.setdefault(impact.kinds[0], []).append(impact)
    columns = (width - _LEFT) // _CELL
    drawn, y = [], 46
    for kind, found in by_kind.items():
        drawn.append(f'<text x="8" y="{y + 11}">{escape(kind)} ({len(found)})</text>')
        for k, impact in enumerate(sorted(found, key=lambda i: i.parts)):
            drawn.append(_square(impact, _LEFT + k % columns * _CELL, y + k // columns * _CELL))
        y += (-(-len(found) // columns)) * _CELL + 12
    head = f'<text x="8" y="18" font-weight="600">{escape(title)}</text>'
    legend = "green: nothing is lost; red: servers cut off, leaves split or a gateway group without gateway"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
            'font-family="system-ui,sans-serif" font-size="12" fill="#222">',
            f'<rect width="{width}" height="{y}" fill="#fff"/>{head}<text x="8" y="34">{legend}</text>',
            *drawn,
            "</svg>\n",
        ]
    )


def _square(impact: Impact, x: int, y: int) -> str:
    hue = round(120 * (1 - severity_of(impact)))
    text = (
        f"{impact.parts[0]}: {len(impact.cut)} servers cut, {impact.split} leaf pairs split, worst leaf at "
        f"{impact.residual:.0%}, fabric at {impact.joint:.1%}, {impact.gateways_left} gateways left"
    )
    side = _CELL - 2
    return (
        f'<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="2" fill="hsl({hue} 65% 50%)">'
        f"<title>{escape(text)}</title></rect>"
    )
