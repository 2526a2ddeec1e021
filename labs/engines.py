"""The engines by name, and which one a machine gets when nobody chose."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from fabric.problem import CouldNotRunError, InputError, Problem

if TYPE_CHECKING:
    from labs.machine import Engine

_MODULES = {
    "native": "labs.native.machine",
    "uml": "labs.uml.machine",
    "containerlab": "labs.containerlab.machine",
}


def names() -> list[str]:
    """Return the engines there are."""
    return list(_MODULES)


def load(name: str) -> Engine:
    """Return an engine by name. Raises InputError for a name that is none."""
    if name not in _MODULES:
        fix = f"one of {', '.join(_MODULES)}"
        raise InputError([Problem("lab.engine", f"engine {name}", "there is no such engine", fix)])
    return cast("Engine", importlib.import_module(_MODULES[name]))


def choose(name: str = "") -> str:
    """Return the engine to use: the one asked for, else native where this kernel can do it all, else uml.

    Raises CouldNotRunError with what the chosen engine lacks.
    """
    chosen = name or ("native" if not load("native").lacks() else "uml")
    if missing := load(chosen).lacks():
        words = "\n  ".join(missing)
        fix = "\n  fix: `--engine uml` brings a kernel that has it all (once: `kvfabric lab build`)"
        raise CouldNotRunError(f"engine {chosen} cannot run here:\n  {words}{fix if chosen == 'native' else ''}")
    return chosen


def bring_up(name: str) -> str:
    """Return the lab's function that builds the nodes in a machine of this engine."""
    return str(getattr(load(name), "BRING_UP", "up"))
