"""Finds every check: a module of `validators.<subject>` whose name is `checks` or starts with `check_`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from validators.catalog import rank
from validators.check import known_checks

if TYPE_CHECKING:
    from validators.check import Check


@cache
def all_checks() -> dict[str, type[Check]]:
    """Return all checks by name, in the order in which they run."""
    root = Path(__file__).parent
    for subject in pkgutil.iter_modules([str(root)]):
        if not subject.ispkg:
            continue
        for module in pkgutil.iter_modules([str(root / subject.name)]):
            if module.name == "checks" or module.name.startswith("check_"):
                importlib.import_module(f"validators.{subject.name}.{module.name}")
    shipped = {name: check for name, check in known_checks().items() if check.__module__.startswith("validators.")}
    return dict(sorted(shipped.items(), key=lambda item: rank(item[1])))
