"""The Jinja environment of the formats that are pages: strict about names, escaping HTML and SVG."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> Environment:
    """Return the environment over the templates folder."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from fabric.resources import data_folder

    return Environment(
        loader=FileSystemLoader(data_folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
