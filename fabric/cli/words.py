"""Words of options: one that is given empty is a slip (an unset variable), and never means the default."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource


def not_blank(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return an option's text or texts; fails for one that is given and empty. A callback for click."""
    texts = value if isinstance(value, tuple) else (value,)
    given = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
    if given and any(isinstance(text, str) and not text.strip() for text in texts):
        raise click.BadParameter("is empty: say what it is, or leave the option out", ctx=ctx, param=param)
    return value


def words(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of an option that may be said again, with commas between words. A callback for click."""
    said = [[word.strip() for word in value.split(",") if word.strip()] for value in values]
    if not all(said):
        raise click.BadParameter("is empty: name something, or leave the option out")
    return tuple(word for found in said for word in found)


NAME_OF_LAB = click.option(
    "--name", "-n", default="", callback=not_blank, help="Which lab, when more than one is running."
)

LAB = click.option("--lab", default="", callback=not_blank, help="A lab that runs already; needed when several run.")
