"""The lab site, booted once for every test that only needs a running lab; a test that breaks it must heal it.

`make test` has built the lab's parts, so there a lab test that would skip is a failure: nothing tested is not green.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from labs import engines, site, state
from labs.client import Running, attach


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try a lab test once more when it fails: its timers run on shared processors. The summary counts reruns."""
    for item in items:
        if item.get_closest_marker("lab"):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=20))


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The running lab site: the one of `kvfabric lab run lab -- pytest tests/lab`, else one of our own.

    Whoever runs tests at the same time has another folder of labs.
    """
    if (name := os.environ.get("KVFABRIC_LAB", "required")) != "required":
        with attach(name) as running:
            yield running
        return
    folder = Path(f"/run/kvfabric-test-{os.getpid()}") if os.geteuid() == 0 else tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KVFABRIC_LAB_STATE", str(folder))
        try:
            engines.choose()
        except CouldNotRunError as error:
            pytest.skip(f"no lab here: {error}")
        started = site.start("lab", name="pytest")
        assert started.ok, (started.complaints, started.missing)
        yield started.running
        started.running.stop()
        assert not [path for path in folder.iterdir() if path.name == "pytest"]
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def alive(request: pytest.FixtureRequest) -> None:
    """Boot the lab site again when its machine died under an earlier test, which that test has told."""
    lab = request.getfixturevalue("lab") if "lab" in request.fixturenames else None
    if lab is None or lab.folder.name != "pytest" or state.is_alive(lab.folder):
        return
    started = site.start("lab", name="pytest")
    assert started.ok, (started.complaints, started.missing)
    # whoever holds the lab holds the new one
    lab.__init__(started.running.folder)
