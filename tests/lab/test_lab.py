"""The lab site for real: tenants, NAT, spread, faults that undo themselves, and nothing left of a killed tool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labs import state
from tests.lab.traces import processes, works_in
from tests.lab.traffic import SPRAY, ask, packets_in, ping, serving

pytestmark = pytest.mark.lab

# ports on leaf-01 (compute-001 and, in another tenant, compute-002) and on leaf-02 (compute-003)
NEAR, ACME_FAR, STORAGE, INTERNET = "10.1.0.3", "10.1.0.19", "10.250.0.1", "198.51.100.1"


def test_same_tenant_reaches_across_leaves_at_full_mtu(lab):
    assert ping(lab, "compute-001", ACME_FAR, "-I", NEAR, "-M", "do", "-s", "9008")


def test_other_tenant_does_not(lab):
    assert not ping(lab, "compute-002", ACME_FAR, "-I", NEAR)
    assert not ping(lab, "compute-002", STORAGE)


def test_shared_storage_reaches_its_client(lab):
    assert ping(lab, "compute-001", STORAGE)
    assert not ping(lab, "storage-001", INTERNET)


def test_masquerade_and_static(lab):
    assert ping(lab, "compute-001", INTERNET)
    assert ping(lab, "compute-002", INTERNET)
    assert ping(lab, "edge-01", "203.0.113.30", "-I", INTERNET)
    assert ping(lab, "internet-01", "203.0.113.30")


def test_tenants_with_the_same_addresses_are_told_apart_from_outside(lab):
    with serving(lab, 8443, "compute-001", "compute-002"):
        # both forwards lead to 10.1.0.1:8443, one in each tenant
        assert ask(lab, "edge-01", "203.0.113.20", 443, INTERNET).split() == ["compute-001", INTERNET]
        assert ask(lab, "edge-01", "203.0.113.40", 443, INTERNET).split() == ["compute-002", INTERNET]


def test_traffic_spreads_over_both_spines(lab):
    before = {spine: packets_in(lab, spine) for spine in ("spine-01", "spine-02")}
    lab.run("compute-001", ["python3", "-c", SPRAY, NEAR, ACME_FAR, "64", "40"]).check()
    carried = {spine: packets_in(lab, spine) - count for spine, count in before.items()}
    assert sum(carried.values()) > 64 * 40 / 2
    assert min(carried.values()) > 0.2 * sum(carried.values()), carried


def test_a_fault_with_an_end_goes_away_by_itself(lab):
    lab.call("impair", target="leaf-01:Ethernet256", delay_ms=5, seconds=1)
    assert len(lab.call("faults")) == 1
    time.sleep(2)
    assert lab.call("faults") == []
    assert "netem" not in lab.run("leaf-01", ["tc", "qdisc", "show", "dev", "Ethernet256"]).out


def _vms(root):
    return [pid for pid in processes() if works_in(pid, root)]


def test_killed_tool_leaves_nothing(lab, tmp_path):
    mark = "kvk9"
    root = Path(f"/run/{mark}") if os.geteuid() == 0 else tmp_path
    code = "import time\nfrom labs import site\nsite.start('lab', name='kill')\ntime.sleep(60)"
    env = {**os.environ, "KVFABRIC_LAB_STATE": str(root)}
    tool = subprocess.Popen([sys.executable, "-c", code], env=env)
    deadline = time.monotonic() + 20
    while not _vms(root) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _vms(root)
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    deadline = time.monotonic() + 10
    while (root.exists() and list(root.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not list(root.iterdir())
    assert not _vms(root)
    assert state.is_alive(lab.folder)
