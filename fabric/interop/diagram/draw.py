"""Fill the templates: the picture as SVG, and an HTML page around it that needs nothing from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.interop.diagram.layout import GUTTER, MARGIN, lay_out
from fabric.interop.diagram.model import panels, tera
from fabric.interop.templates import environment

if TYPE_CHECKING:
    from fabric.plan import Plan

# told apart by people who see colours differently, on white and on black
_COLOURS = (
    "#2f6fde",
    "#e07b00",
    "#1a9c74",
    "#b0479b",
    "#b58f00",
    "#5b5bd6",
    "#d1495b",
    "#4c8c2b",
    "#0e8fb3",
    "#8a5a2b",
)
_HEADER = 92
_LEGEND_ROW = 24
_CHIP = 7.4


def draw_svg(plan: Plan) -> str:
    """Return the site as one SVG document."""
    return environment().get_template("diagram/site.svg.j2").render(**_view(plan), standalone=True)


def draw_html(plan: Plan) -> str:
    """Return an HTML page with the picture, zoom, and highlighting of what a device is joined to."""
    svg = environment().get_template("diagram/site.svg.j2").render(**_view(plan), standalone=False)
    from markupsafe import Markup

    # our own template made this text, and it escaped every name in it
    return environment().get_template("diagram/page.html.j2").render(site=plan.site, svg=Markup(svg))  # noqa: S704


def _view(plan: Plan) -> dict[str, Any]:
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(plan.tenants)}
    drawn = panels(plan)
    probe = lay_out(drawn, 0.0)
    legend, rows = _legend(plan, colours, probe.width)
    page = lay_out(drawn, _HEADER + rows * _LEGEND_ROW)
    return {
        "site": plan.site,
        "summary": _summary(plan),
        "page": page,
        "colours": colours,
        "legend": legend,
        "gutter": GUTTER,
        "margin": MARGIN,
    }


def _summary(plan: Plan) -> str:
    xpus = sum(server.xpus for server in plan.servers.values())
    rate = sum(link.speed for link in plan.links.values())
    parts = [
        f"{plan.profile} profile",
        f"{len(plan.switches)} switches",
        f"{len(plan.servers)} servers",
        f"{xpus} accelerators" if xpus else "",
        f"{len(plan.gateways)} gateways" if plan.gateways else "",
        f"{len(plan.tenants)} tenants" if plan.tenants else "",
        f"{len(plan.links)} links, {tera(rate)}",
    ]
    return " · ".join(part for part in parts if part)


def _legend(plan: Plan, colours: dict[str, str], width: float) -> tuple[list[dict[str, Any]], int]:
    """Chips of tenants in rows: place, colour and text of each, and how many rows there are."""
    chips, x, row = [], float(MARGIN), 0
    for tenant in plan.tenants.values():
        text = f"{tenant.name} VNI {tenant.vni}" + (" (shared service)" if tenant.service else "")
        wide = 34 + _CHIP * len(text)
        if x + wide > width - MARGIN and x > MARGIN:
            x, row = float(MARGIN), row + 1
        chips.append(
            {"x": round(x, 1), "y": _HEADER - 20 + row * _LEGEND_ROW, "colour": colours[tenant.name], "text": text}
        )
        x += wide
    return chips, row + 1 if chips else 0
