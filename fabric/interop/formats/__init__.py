"""What a plan's cables can be written as: one module a format, registered by being there.

A format module has `NAME` (what `--format` takes), `SUMMARY` (one line for the help) and
`write(plan, fabrics) -> dict[file name, text]`. `fabrics` is never empty and in plan order.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Protocol, cast

from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.plan import Plan


class Format(Protocol):
    """The contract of a format module."""

    NAME: str
    SUMMARY: str

    def write(self, plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
        """Return file names and their text."""


def formats() -> dict[str, Format]:
    """Return every format by name."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_"):
            continue
        module = cast("Format", importlib.import_module(f"{__name__}.{info.name}"))
        found[module.NAME] = module
    return dict(sorted(found.items()))


def write(plan: Plan, name: str, fabrics: tuple[str, ...] = ()) -> dict[str, str]:
    """Write the plan (of `fabrics`, else all) in format `name`; InputError for an unknown fabric or format."""
    known = formats()
    if name not in known:
        raise InputError([Problem("cables.format", name, "there is no such format", f"use one of {', '.join(known)}")])
    unknown = [fabric for fabric in fabrics if fabric not in plan.fabrics]
    if unknown:
        fix = f"use one of {', '.join(plan.fabrics)}"
        raise InputError([Problem("cables.fabric", f, f"site {plan.site} has no such fabric", fix) for f in unknown])
    wanted = tuple(f for f in plan.fabrics if f in fabrics) if fabrics else tuple(plan.fabrics)
    return known[name].write(plan, wanted)
