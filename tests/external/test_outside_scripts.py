"""Shell and nftables over every shipped site, and network.sh run for real, twice, in a namespace of its own."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.outside import ask, run_all
from fabric.outside.run import validators
from fabric.problem import Severity
from tests.conftest import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.external


@pytest.mark.parametrize("name", ["shell", "nft"])
@pytest.mark.parametrize("site", SHIPPED)
def test_every_script_is_accepted(site: str, name: str, rendered: Callable[..., Path]) -> None:
    if reason := validators()[name].available():
        pytest.skip(reason)
    folder = rendered(site, "frr")
    report = ask(folder, sorted(path.name for path in folder.iterdir() if path.is_dir()), [name])
    assert report.asked[name] > 0
    assert [str(problem) for problem in report.problems] == []


def test_bash_only_words_and_broken_rules_are_found(tmp_path: Path) -> None:
    (tmp_path / "network.sh").write_text("#!/bin/sh\nif true; then\n")
    (tmp_path / "nftables.conf").write_text("table inet t {\n chain fwd-1 { nonsense }\n}\n")
    for name in ("shell", "nft"):
        if not validators()[name].available():
            found = validators()[name].validate(tmp_path, "x")
            assert found
            assert found[0].line in (2, 3)


_TWICE = """
set -e
mount -t sysfs sysfs /sys
for port in $2; do ip link add "$port" type veth peer name "p$port"; done
sh "$1"; ip -d addr > "$3/first"; ip route show table all >> "$3/first"; ip rule >> "$3/first"
sh "$1"; ip -d addr > "$3/second"; ip route show table all >> "$3/second"; ip rule >> "$3/second"
"""


@pytest.mark.parametrize("device", ["spine-01", "leaf-01"])
def test_network_sh_twice_changes_nothing(device: str, rendered: Callable[..., Path], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    if (
        device == "leaf-01"
        and subprocess.run(
            ["unshare", "-n", "ip", "link", "add", "v", "type", "vrf", "table", "9"], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("this kernel has no VRF device")
    plan = load_plan("lab")
    ports = " ".join(link.end(device).interface for link in plan.links_of[device])
    script = rendered("lab", "frr", switches=True) / device / "network.sh"
    command = ["unshare", "-n", "-m", "sh", "-c", _TWICE, "twice", str(script), ports, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "first").read_text()
    assert plan.switches[device].router_id in first
    assert first == (tmp_path / "second").read_text()


def test_a_validator_that_is_not_there_is_said_to_be_skipped(
    rendered: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KVFABRIC_EXTERNAL_DATA", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    validators()["nft"].available.cache_clear()  # type: ignore[attr-defined]
    validators()["live"].available.cache_clear()  # type: ignore[attr-defined]
    found = run_all(load_plan("lab"), rendered("lab", switches=True))
    validators()["nft"].available.cache_clear()  # type: ignore[attr-defined]
    validators()["live"].available.cache_clear()  # type: ignore[attr-defined]
    skipped = {problem.rule for problem in found if problem.severity is Severity.INFO}
    assert {"outside.yang.skipped", "outside.vtysh.skipped", "outside.nft.skipped", "outside.ports.skipped"} <= skipped


def test_run_all_is_quiet_about_a_good_site(rendered: Callable[..., Path]) -> None:
    found = run_all(load_plan("lab"), rendered("lab", switches=True))
    assert [str(problem) for problem in found if problem.severity is not Severity.INFO] == []
