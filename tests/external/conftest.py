"""Rendered sites on disk for the outside validators, each written once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.outside.run import validators
from fabric.render.registry import render_site
from fabric.render.writer import write_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.outside import Validator


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function: (site, target, only) -> the folder of the site's rendered devices."""
    known: dict[tuple[str, str | None, bool], Path] = {}

    def write(site: str, target: str | None = None, *, switches: bool = False) -> Path:
        key = (site, target, switches)
        if key not in known:
            plan = load_plan(site)
            limit = [name for name, switch in plan.switches.items() if switch.managed] if switches else None
            known[key] = tmp_path_factory.mktemp(Path(site).name) / "configs"
            write_tree(known[key], render_site(plan, limit, target))
        return known[key]

    return write


@pytest.fixture
def validator(request: pytest.FixtureRequest) -> Validator:
    """The outside validator that the test module names in `VALIDATOR`; skips, with the reason, where it is not."""
    found = validators()[request.module.VALIDATOR]
    if reason := found.available():
        pytest.skip(reason)
    return found
