"""What an engine says about a kernel that lacks things, with kernels that are made up."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fabric.cli.main import _run
from fabric.problem import CouldNotRunError
from labs import engines
from labs.machine import Options
from labs.native import machine, preflight

pytestmark = pytest.mark.unit


def _kernel(monkeypatch, *lacking):
    tried = {
        feature.name: "Not supported" if any(word in feature.name for word in lacking) else ""
        for feature in preflight.FEATURES
    }
    monkeypatch.setattr(preflight, "results", lambda _tree: tried)
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
        "this kernel lacks netem: no `lab impair` (Not supported)",
        "this kernel lacks Soft-RoCE in namespaces (rdma_rxe, kernel 7): no RDMA between servers (Not supported)",
    ]


def test_each_feature_says_what_is_lost_without_it(monkeypatch):
    _kernel(monkeypatch, *(feature.name for feature in preflight.FEATURES))
    said = machine.lacks() + machine.limits()
    assert sorted(said) == sorted(
        f"this kernel lacks {f.name}: {f.without} (Not supported)" for f in preflight.FEATURES
    )


def test_lab_up_names_what_the_kernel_lacks_and_starts_nothing(monkeypatch, tmp_path, capsys):
    _kernel(monkeypatch, "VRF", "conntrack zones", "netem")
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path))
    assert _run(["lab", "up", "lab", "--engine", "native"]) == 3
    err = capsys.readouterr().err
    assert "lacks VRF devices (NET_VRF): no tenant VRFs" in err
    assert "lacks conntrack zones: tenants with the same prefixes" in err
    assert "netem" not in err  # that would only be a limit
    assert "`--engine uml` brings a kernel that has it all" in err
    assert list(tmp_path.iterdir()) == []


def test_an_ordinary_user_and_a_missing_root_are_told_and_the_kernel_is_not_blamed(monkeypatch):
    _kernel(monkeypatch, "VRF")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(machine.root, "cached", lambda: None)
    root, tree = machine.lacks()
    assert "run it as root" in root
    assert "kvfabric lab build --engine native" in tree
    assert machine.limits() == []


def test_the_rdma_mode_of_the_host_is_not_changed(tmp_path):
    with pytest.raises(CouldNotRunError, match="one for all of its namespaces"):
        machine.start(tmp_path, Options(rdma="exclusive"))


def _tree(tmp_path):
    """A root with one program and the libraries it wants."""
    tree = tmp_path / "root"
    for folder in ("bin", "proc", "sys"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tree / "bin" / "sh")
    needs = subprocess.run(["ldd", shutil.which("busybox")], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", needs):
        (tree / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, tree / library[1:])
    return tree


def test_trials_are_made_by_doing_in_the_labs_own_root(monkeypatch, tmp_path):
    if machine.os.geteuid() or not shutil.which("busybox"):
        pytest.skip("making a network namespace needs root, and a small root needs busybox")
    tree = _tree(tmp_path)
    trials = {
        "yes": "true",
        "no": "exit 3",
        "said": "echo no such >&2; false",
        "late": "while :; do :; done",
        "of the root": "test ! -e /etc/passwd",
        "proc": "test -r /proc/net/dev",
    }
    features = tuple(preflight.Feature(name, trial, "-") for name, trial in trials.items())
    monkeypatch.setattr(preflight, "FEATURES", features)
    monkeypatch.setattr(preflight, "_TRIAL_S", 1)
    assert preflight.results(tree) == {
        "yes": "",
        "no": "exit 3",
        "said": "no such",
        "late": "was not done within 1 s",
        "of the root": "",
        "proc": "",
    }
    assert str(tree) not in Path("/proc/mounts").read_text()


def test_where_nothing_can_be_tried_no_feature_is_blamed(tmp_path):
    with pytest.raises(CouldNotRunError, match="no namespace can be made here"):
        preflight.results(tmp_path)
