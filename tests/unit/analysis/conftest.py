"""The lab site, rendered once, and a way to plant one fault in a copy of its files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fabric.analysis.check import run_rules
from fabric.analysis.rendered import Rendered
from fabric.build import load_plan
from fabric.render.registry import render_site

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan
    from fabric.problem import Problem


@pytest.fixture(scope="session")
def lab() -> Plan:
    return load_plan("lab")


@pytest.fixture(scope="session")
def lab_files(lab: Plan) -> dict[str, dict[str, str]]:
    return dict(render_site(lab))


@pytest.fixture(scope="session")
def lab_linux_files(lab: Plan) -> dict[str, dict[str, str]]:
    return dict(render_site(lab, target="frr"))


class Site:
    """Files that a test may spoil."""

    def __init__(self, plan: Plan, files: dict[str, dict[str, str]]) -> None:
        self.plan = plan
        self.files = {device: dict(names) for device, names in files.items()}

    def db(self, device: str, change: Callable[[dict[str, Any]], object]) -> Site:
        data = json.loads(self.files[device]["config_db.json"])
        change(data)
        self.files[device]["config_db.json"] = json.dumps(data, indent=4)
        return self

    def text(self, device: str, name: str, old: str, new: str, count: int = -1) -> Site:
        before = self.files[device][name]
        assert old in before, f"{old!r} is not in {device}/{name}"
        self.files[device][name] = before.replace(old, new, count)
        return self

    def found(self, rule: str) -> list[Problem]:
        return run_rules(self.plan, Rendered(self.files), [rule])


@pytest.fixture
def site(lab: Plan, lab_files: dict[str, dict[str, str]]) -> Site:
    return Site(lab, lab_files)


@pytest.fixture
def linux_site(lab: Plan, lab_linux_files: dict[str, dict[str, str]]) -> Site:
    return Site(lab, lab_linux_files)
