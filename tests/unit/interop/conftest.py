"""Plans of shipped sites, built once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan

if TYPE_CHECKING:
    from fabric.plan import Plan


@pytest.fixture(scope="session")
def lab() -> Plan:
    return load_plan("lab")


@pytest.fixture(scope="session")
def xoc64() -> Plan:
    return load_plan("xoc-64")


@pytest.fixture(scope="session")
def xoc256() -> Plan:
    return load_plan("xoc-256")
