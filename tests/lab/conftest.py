"""`make test` has built the lab's parts, so there a lab test that would skip is a failure: nothing tested is not green."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get("KVFABRIC_REQUIRE_LAB") == "yes" and item.get_closest_marker("lab"):
        report.outcome = "failed"
        where = call.excinfo.value if call.excinfo else "skipped"
        report.longrepr = f"{item.nodeid} must run here (KVFABRIC_REQUIRE_LAB=yes), but: {where}"
    return report
