"""`--rdma exclusive`: each server has its own Soft-RoCE devices and nobody else's, and they work across leaves."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from labs import engines, site
from labs.machine import Options

pytestmark = pytest.mark.lab

MINE, FAR = "compute-001.be0-port0", "compute-003.be0-port0"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    root = Path(f"/run/kvexcl-{os.getpid()}") if os.geteuid() == 0 else tmp_path_factory.mktemp("s")
    patch.setenv("KVFABRIC_LAB_STATE", str(root))
    try:
        engines.choose("uml")
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    counts = "leaves=2,spines=1,gateways=0,servers=3"
    started = site.start("lab", name="excl", counts=counts, engine="uml", options=Options(rdma="exclusive"))
    assert started.ok, (started.complaints, started.missing)
    yield started.running
    started.running.stop()
    root.rmdir()
    patch.undo()


def test_a_server_sees_its_own_devices_only(lab):
    for server in ("compute-001", "compute-003"):
        said = lab.run(server, ["ibv_devices"]).check().out.split()
        named = {word for word in said if word.startswith("compute-")}
        assert named == {f"{server}.be0-port0", f"{server}.be1-port0"}
    assert lab.call("status")["missing"] == []


def test_another_servers_device_cannot_be_opened(lab):
    done = lab.run("compute-001", ["timeout", "10", "ib_read_bw", "-d", FAR, "-p", "18900"])
    assert done.rc != 0
    assert "not found" in done.out + done.err


def test_read_across_leaves(lab):
    common = ["-F", "-m", "4096", "-s", "65536", "-n", "100", "-p", "18901"]
    server = lab.start("compute-003", ["timeout", "40", "ib_read_bw", "-d", FAR, *common])
    while not lab.run("compute-003", ["ss", "-ltnH", "sport = :18901"]).out.strip() and server.poll() is None:
        time.sleep(0.2)
    done = lab.run("compute-001", ["timeout", "40", "ib_read_bw", "-d", MINE, *common, "10.1.0.19"])
    assert done.rc == 0, done.out + done.err
    assert server.wait(60).rc == 0
