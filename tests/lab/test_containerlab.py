"""The exported lab site, deployed by the real containerlab on a real Docker engine, and destroyed again."""

from __future__ import annotations

import json
import time

import pytest

from fabric.problem import CouldNotRunError
from labs import engines, site, state
from labs.containerlab import binary, build

pytestmark = pytest.mark.lab

ACME_FAR, STORAGE, INTERNET = "10.1.0.17", "10.250.0.1", "198.51.100.1"


@pytest.fixture(scope="module")
def lab():
    try:
        if engines.load("containerlab").lacks():
            build.build()
        engines.choose("containerlab")
    except CouldNotRunError as error:
        pytest.skip(f"no containerlab here: {error}")
    said = []
    started = site.start("lab", name="pytest-clab", engine="containerlab", say=said.append)
    print(started.seconds)
    assert started.ok, (started.complaints, started.missing, said)
    yield started.running
    if state.is_alive(started.running.folder):
        started.running.stop()


def _ping(lab, node, target, *more):
    return lab.run(node, ["ping", "-n", "-c3", "-i0.2", "-W1", *more, target]).rc == 0


def test_it_is_the_real_containerlab_of_this_version(lab):
    done = lab.run("", ["containerlab", "version"])
    assert done.rc == 0
    assert binary.VERSION in done.out


def test_what_containerlab_left_is_what_the_plan_says(lab):
    status = lab.call("status")
    assert status["missing"] == []
    assert {row["state"] for row in status["containers"]} == {"running"}
    assert [row["node"] for row in status["containers"]] == [node.name for node in lab.lab.nodes]
    assert all(row["up"] == row["all"] > 0 for router in status["routers"] for row in [router["bgp"]])


def test_a_container_that_stopped_is_told(lab):
    lab.run("", ["docker", "pause", "storage-001"]).check()
    try:
        missing = lab.call("status")["missing"]
    finally:
        lab.run("", ["docker", "unpause", "storage-001"]).check()
    assert any("storage-001: container storage-001 is paused" in text for text in missing)


def test_tenant_matrix(lab):
    assert _ping(lab, "compute-001", ACME_FAR, "-M", "do", "-s", "9008")
    assert _ping(lab, "compute-001", STORAGE)
    assert not _ping(lab, "compute-002", ACME_FAR)
    assert not _ping(lab, "compute-002", STORAGE)
    assert not _ping(lab, "storage-001", INTERNET)


def test_nat_modes(lab):
    assert _ping(lab, "compute-001", INTERNET)  # masquerade
    assert _ping(lab, "compute-002", INTERNET)
    assert _ping(lab, "edge-01", "203.0.113.30", "-I", INTERNET)  # static
    server = lab.start("compute-001", ["sh", "-c", "echo hello | timeout 15 nc -l -p 8443 -q 1"])
    time.sleep(1)
    done = lab.run("edge-01", ["nc", "-s", INTERNET, "-w", "3", "203.0.113.20", "443"])  # port forward
    server.kill()
    assert "hello" in done.out


def test_one_rdma_read_between_two_servers(lab):
    common = ["-F", "-m", "4096", "-s", "65536", "-n", "100", "-p", "18801"]
    server = lab.start("compute-003", ["timeout", "30", "ib_read_bw", "-d", "compute-003.be0-port0", *common])
    listening = ["ss", "-ltnH", "sport = :18801"]
    while not lab.run("compute-003", listening).out.strip() and server.poll() is None:
        time.sleep(0.2)
    done = lab.run("compute-001", ["timeout", "20", "ib_read_bw", "-d", "compute-001.be0-port0", *common, "10.1.0.19"])
    server.kill()
    assert done.rc == 0, done.out + done.err
    assert float(done.out.strip().splitlines()[-2].split()[3]) > 0, done.out


def test_a_program_in_a_node_lives_in_the_container(lab):
    # its own process numbers too: /proc/self is there, and the first process is the container's
    done = lab.run(
        "compute-001", ["sh", "-c", "readlink /proc/self/ns/pid /proc/1/ns/pid; hostname; cat /proc/1/cmdline"]
    )
    own, first, name, line = done.out.split("\n")
    assert own == first
    assert name == "compute-001"
    assert "node.sh" in line
    assert lab.run("compute-001", ["sh", "-c", "exit 7"]).rc == 7


def test_a_link_made_bad_gets_well_by_itself(lab):
    lab.call("impair", target="leaf-01:Ethernet256", delay_ms=5, seconds=2)
    assert "netem" in lab.run("leaf-01", ["tc", "qdisc", "show", "dev", "Ethernet256"]).out
    time.sleep(4)
    assert lab.call("faults") == []
    assert "netem" not in lab.run("leaf-01", ["tc", "qdisc", "show", "dev", "Ethernet256"]).out


@pytest.mark.parametrize("how", ["silent", "daemons"])
def test_spine_loss_is_found_and_healed(lab, how):
    lab.call("cut", target="spine-01", how=how)
    try:
        time.sleep(2)
        assert _ping(lab, "compute-001", ACME_FAR)
        assert any("BFD" in text or "BGP" in text for text in lab.call("status")["missing"])
    finally:
        assert lab.call("heal") == ["spine-01"]
    assert lab.call("converge", timeout_s=60)["missing"] == []


def test_a_name_that_is_taken_is_told_with_what_to_do(lab):
    with pytest.raises(
        CouldNotRunError, match=r"are taken by lab pytest-clab.*containerlab destroy --name pytest-clab"
    ):
        lab.call("deploy")


def test_destroy_leaves_nothing(lab):
    assert lab.call("destroy") == []
    assert lab.run("", ["docker", "ps", "-aq"]).out == ""
    assert lab.run("", ["sh", "-c", "ls /run/netns; ls /lab/nodes | grep clab-"]).out == ""
    assert json.loads(lab.run("", ["ip", "-j", "link", "show", "type", "veth"]).out or "[]") == []
