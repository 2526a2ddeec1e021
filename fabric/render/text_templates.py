"""The Jinja environment of every text target. Templates state; what needs deciding is decided before them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fabric.resources import data_folder

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@cache
def _environment() -> Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_folder("templates")),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - router configuration, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )


@cache
def template(name: str) -> Template:
    """Return a compiled template by its path below `templates/`."""
    return _environment().get_template(name)
