"""A picture of the site: one panel a fabric, spines over leaves over servers, gateways and edge routers.

`model` groups devices and bundles links, `layout` gives them places, `draw` fills the templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.diagram.draw import draw_html, draw_svg

if TYPE_CHECKING:
    from fabric.plan import Plan


def diagram(plan: Plan, *, html: bool = False) -> str:
    """Return the picture as SVG text, or as an HTML page with zoom and highlighting around it."""
    return draw_html(plan) if html else draw_svg(plan)
