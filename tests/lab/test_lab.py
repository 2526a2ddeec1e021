"""The lab site for real: tenants, NAT, spread, RDMA, spine loss, and nothing left afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from labs import engines, site, state

pytestmark = pytest.mark.lab

ACME_FAR, GLOBEX_NEAR, STORAGE, INTERNET = "10.1.0.17", "10.1.0.1", "10.250.0.1", "198.51.100.1"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = Path("/run/kvfabric-test") if os.geteuid() == 0 else tmp_path_factory.mktemp("lab")
    before = os.environ.get("KVFABRIC_LAB_STATE")
    os.environ["KVFABRIC_LAB_STATE"] = str(folder)
    try:
        engines.choose()
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    started = site.start("lab", name="pytest")
    assert started.ok, (started.complaints, started.missing)
    yield started.running
    started.running.stop()
    assert not list(folder.iterdir())
    if before is None:
        del os.environ["KVFABRIC_LAB_STATE"]
    else:
        os.environ["KVFABRIC_LAB_STATE"] = before


def _ping(lab, node, target, *more):
    argv = ["ping", "-n", "-c3", "-i0.2", "-W1", *more, target]
    return lab.run(node, argv).rc == 0


def test_same_tenant_reaches_across_leaves_at_full_mtu(lab):
    assert _ping(lab, "compute-001", ACME_FAR, "-M", "do", "-s", "9008")


def test_other_tenant_does_not(lab):
    assert not _ping(lab, "compute-002", ACME_FAR)
    assert not _ping(lab, "compute-002", STORAGE)


def test_shared_storage_reaches_its_client(lab):
    assert _ping(lab, "compute-001", STORAGE)
    assert not _ping(lab, "storage-001", INTERNET)


def test_masquerade_and_static(lab):
    assert _ping(lab, "compute-001", INTERNET)
    assert _ping(lab, "compute-002", INTERNET)
    assert _ping(lab, "edge-01", "203.0.113.30", "-I", INTERNET)


def _read_bw(lab, client, port):
    common = ["-F", "-m", "4096", "-s", "65536", "-n", "200", "-p", port]
    server = lab.start("compute-003", ["timeout", "15", "ib_read_bw", "-d", "compute-003.be0-port0", *common])
    listening = ["ss", "-ltnH", f"sport = :{port}"]
    while not lab.run("compute-003", listening).out.strip() and server.poll() is None:
        time.sleep(0.2)
    done = lab.run(client, ["timeout", "10", "ib_read_bw", "-d", f"{client}.be0-port0", *common, "10.1.0.19"])
    server.kill()
    return done.rc


def test_rdma_read_across_leaves_but_not_across_tenants(lab):
    assert _read_bw(lab, "compute-001", "18801") == 0
    assert _read_bw(lab, "compute-002", "18802") != 0


def test_port_forward_reaches_the_private_port(lab):
    server = lab.start("compute-001", ["sh", "-c", "echo hello | timeout 15 nc -l -p 8443 -q 1"])
    time.sleep(0.5)
    done = lab.run("edge-01", ["nc", "-s", INTERNET, "-w", "3", "203.0.113.20", "443"])
    assert "hello" in done.out
    server.kill()


def test_spine_loss_is_found_and_healed(lab):
    lab.call("cut", target="spine-01", how="silent")
    try:
        time.sleep(2)
        assert _ping(lab, "compute-001", ACME_FAR)
        assert any("BFD" in text for text in lab.call("status")["missing"])
    finally:
        assert lab.call("heal") == ["spine-01"]
    assert lab.call("converge", timeout_s=40)["missing"] == []


def test_a_fault_with_an_end_goes_away_by_itself(lab):
    lab.call("impair", target="leaf-01:Ethernet256", delay_ms=5, seconds=1)
    assert len(lab.call("faults")) == 1
    time.sleep(2)
    assert lab.call("faults") == []
    assert "netem" not in lab.run("leaf-01", ["tc", "qdisc", "show", "dev", "Ethernet256"]).out


def _vms(mark):
    return [p for p in Path("/proc").glob("[0-9]*/cmdline") if mark in _read(p)]


def _read(path):
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_killed_tool_leaves_nothing(lab, tmp_path):
    mark = "kvk9"
    root = Path(f"/run/{mark}") if os.geteuid() == 0 else tmp_path
    code = "import time\nfrom labs import site\nsite.start('lab', name='kill')\ntime.sleep(60)"
    env = {**os.environ, "KVFABRIC_LAB_STATE": str(root)}
    tool = subprocess.Popen([sys.executable, "-c", code], env=env)
    deadline = time.monotonic() + 20
    while not _vms(f"lab.share={root}") and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _vms(f"lab.share={root}")
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    deadline = time.monotonic() + 10
    while (root.exists() and list(root.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not list(root.iterdir())
    assert not _vms(f"lab.share={root}")
    assert state.is_alive(lab.folder)
