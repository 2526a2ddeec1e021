"""Shared fixtures: the shipped sites as plans, the outside data folder, and a way to run the command line."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fabric.build import load_plan
from fabric.plan import Plan
from fabric.resources import data_folder

# how fast examples are made says how busy the machine is, not whether the code is right
settings.register_profile("kvfabric", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kvfabric")

ROOT = Path(__file__).resolve().parents[1]
# pods-100k has three tiers, which are planned and counted but not rendered
SHIPPED = sorted(p.name for p in data_folder("inventories").iterdir() if p.is_dir() and p.name != "pods-100k")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why a test was tried once more: that the second try passed does not explain the first."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"tried once more: {report.nodeid} ({report.when})")
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder of outside data; skips the test, with the reason, where it is absent."""
    folder = Path(os.environ.get("KVFABRIC_EXTERNAL_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no outside data at {folder} (set KVFABRIC_EXTERNAL_DATA)")
    return folder


@pytest.fixture(scope="session")
def xoc_256() -> Plan:
    return load_plan("xoc-256")


@pytest.fixture(scope="session")
def lab_plan() -> Plan:
    return load_plan("lab")


def run_cli(*args: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run kvfabric as a user does, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from fabric.cli.main import main; main()", *args],
        capture_output=True,
        text=True,
        cwd=cwd or ROOT,
        env={**os.environ, **(env or {})},
        timeout=120,
        check=False,
    )


def read_until(master: int, text: bytes, timeout_s: float = 90) -> bytes:
    """Read a terminal's master side until `text` came, it closed, or `timeout_s` seconds passed; return what came."""
    seen, deadline = b"", time.monotonic() + timeout_s
    while text not in seen and (left := deadline - time.monotonic()) > 0:
        if not select.select([master], [], [], left)[0]:
            break
        try:
            seen += os.read(master, 4096)
        except OSError:
            break
    return seen
