"""What an engine says about a kernel that lacks things, with kernels that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from labs import engines
from labs.machine import Options
from labs.native import machine, preflight

pytestmark = pytest.mark.unit


def _kernel(monkeypatch, *lacking):
    tried = {feature.name: not any(word in feature.name for word in lacking) for feature in preflight.FEATURES}
    monkeypatch.setattr(preflight, "results", lambda: tried)
    monkeypatch.setattr(machine.root, "cached", lambda: Path("/cache/root"))
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)


def test_a_kernel_with_everything_is_chosen(monkeypatch):
    _kernel(monkeypatch)
    assert machine.lacks() == machine.limits() == []
    assert engines.choose() == engines.choose("native") == "native"


def test_a_kernel_without_vrf_devices_is_refused_with_a_way_out(monkeypatch):
    _kernel(monkeypatch, "VRF")
    with pytest.raises(CouldNotRunError) as caught:
        engines.choose("native")
    assert "lacks VRF devices (NET_VRF): no tenant VRFs" in str(caught.value)
    assert "fix: `--engine uml`" in str(caught.value)


def test_what_is_merely_good_to_have_is_said_and_not_refused(monkeypatch):
    _kernel(monkeypatch, "netem", "Soft-RoCE")
    assert machine.lacks() == []
    assert machine.limits() == [
        "this kernel lacks netem: no `lab impair`",
        "this kernel lacks Soft-RoCE in namespaces (rdma_rxe, kernel 7): no RDMA between servers",
    ]


def test_an_ordinary_user_and_a_missing_root_are_told(monkeypatch):
    _kernel(monkeypatch)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine.root, "cached", lambda: None)
    assert len(machine.lacks()) == 2


def test_the_rdma_mode_of_the_host_is_not_changed(tmp_path):
    with pytest.raises(CouldNotRunError, match="one for all of its namespaces"):
        machine.start(tmp_path, Options(rdma="exclusive"))


def test_trials_are_made_by_doing(monkeypatch):
    monkeypatch.setattr(
        preflight, "FEATURES", (preflight.Feature("x", "true", "-"), preflight.Feature("y", "false", "-"))
    )
    preflight.results.cache_clear()
    if machine.os.geteuid():
        pytest.skip("making a network namespace needs root")
    assert preflight.results() == {"x": True, "y": False}
    preflight.results.cache_clear()
