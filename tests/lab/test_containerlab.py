"""The exported lab site, deployed by the real containerlab on a real Docker engine, and destroyed again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from fabric.build import load_plan
from fabric.problem import CouldNotRunError
from labs import engines, site
from labs import slice as slicing
from labs.client import Running
from labs.containerlab import binary, build, export, trouble
from labs.containerlab.machine import binds
from tests.lab.traffic import Reading, ask, ping, serving, wait_until

pytestmark = pytest.mark.lab

ACME_FAR, STORAGE, INTERNET = "10.1.0.17", "10.250.0.1", "198.51.100.1"
NAME = f"clab-{os.getpid()}"


@pytest.fixture(scope="module")
def clab() -> Iterator[Running]:
    """The lab site in containers; the last tests of this file destroy it and use its machine for another."""
    try:
        if engines.load("containerlab").lacks():
            build.build()
        engines.choose("containerlab")
    except CouldNotRunError as error:
        pytest.skip(f"no containerlab here: {error}")
    said: list[str] = []
    started = site.start("lab", name=NAME, engine="containerlab", say=said.append)
    print(f"\ncontainerlab: {started.seconds}")
    try:
        assert started.complaints == (), said
        if started.missing:  # a busy machine: sessions flap for longer
            assert started.running.call("converge", timeout_s=300)["missing"] == [], started.missing
        yield started.running
    finally:
        started.running.stop()


def test_it_is_the_real_containerlab_of_this_version(clab):
    assert binary.VERSION in clab.run("", ["containerlab", "version"]).check().out


def test_what_containerlab_left_is_what_the_plan_says(clab):
    assert wait_until(lambda: clab.call("status")["missing"] == [], 180)
    status = clab.call("status")
    assert {row["state"] for row in status["containers"]} == {"running"}
    assert [row["node"] for row in status["containers"]] == [node.name for node in clab.lab.nodes]
    assert all(router["bgp"]["all"] > 0 for router in status["routers"])


def test_a_container_that_is_not_as_planned_is_told(clab):
    clab.run("", ["docker", "pause", "storage-001"]).check()
    try:
        status = clab.call("status")
    finally:
        clab.run("", ["docker", "unpause", "storage-001"]).check()
    assert not status["as_planned"]
    assert "container storage-001 is paused" in status["missing"]


def _reaches(clab: Running, node: str, target: str, *more: str) -> bool:
    return wait_until(lambda: ping(clab, node, target, *more), 90)


def test_tenant_matrix(clab):
    assert _reaches(clab, "compute-001", ACME_FAR, "-M", "do", "-s", "9008")
    assert _reaches(clab, "compute-001", STORAGE)
    assert not ping(clab, "compute-002", ACME_FAR)
    assert not ping(clab, "compute-002", STORAGE)
    assert not ping(clab, "storage-001", INTERNET)


def test_nat_modes(clab):
    assert _reaches(clab, "compute-001", INTERNET)  # masquerade
    assert _reaches(clab, "compute-002", INTERNET)
    assert _reaches(clab, "edge-01", "203.0.113.30", "-I", INTERNET)  # static
    with serving(clab, 8443, "compute-001"):  # port forward
        wanted = ["compute-001", INTERNET]
        assert wait_until(lambda: ask(clab, "edge-01", "203.0.113.20", 443, INTERNET).split() == wanted, 90)


def test_one_rdma_read_between_two_servers(clab):
    owner, reader = ("compute-003", "10.1.0.19"), ("compute-001", "10.1.0.3")
    reading = Reading(clab, owner, reader, timeout=18, retry_cnt=6)
    reading.started()
    row = reading.row()
    assert (row["status"], row["same"]) == ("SUCCESS", True)


def test_a_server_has_the_device_files_of_its_own_rdma_devices_only(clab):
    files = clab.run("compute-001", ["ls", "/dev/infiniband"]).check().out.split()
    assert len([name for name in files if name.startswith("uverbs")]) == len(clab.lab.node("compute-001").rdma)


def test_a_program_in_a_node_lives_in_the_container(clab):
    # its own process numbers too: /proc/self is there, and the first process is the container's
    script = "readlink /proc/self/ns/pid /proc/1/ns/pid; hostname; tr '\\0' ' ' < /proc/1/cmdline"
    own, first, name, line = clab.run("compute-001", ["sh", "-c", script]).check().out.split("\n")
    assert own == first
    assert name == "compute-001"
    assert "node.sh" in line
    assert clab.run("compute-001", ["sh", "-c", "exit 7"]).rc == 7


def test_a_program_in_a_node_is_killed_with_all_that_it_started(clab):
    process = clab.start("compute-001", ["sh", "-c", "echo up; sleep 4321 & wait"])
    process.wait_for("up")
    process.kill()
    assert wait_until(lambda: clab.run("compute-001", ["pgrep", "-f", "sleep 4321"]).rc == 1, 10)


def test_a_terminal_in_a_node_has_job_control(clab):
    shell = clab.start("compute-001", ["bash", "-i"], tty=True)
    shell.write(b"tty; exit\n")
    said = shell.wait(30).out
    assert "/dev/pts/" in said or "not a tty" in said
    assert "no job control" not in said


def test_a_link_made_bad_gets_well_by_itself(clab):
    show = ["tc", "qdisc", "show", "dev", "Ethernet256"]
    clab.call("impair", target="leaf-01:Ethernet256", delay_ms=5, seconds=20)
    assert "netem" in clab.run("leaf-01", show).out
    assert wait_until(lambda: clab.call("faults") == [] and "netem" not in clab.run("leaf-01", show).out, 90)


@pytest.mark.parametrize("how", ["silent", "daemons"])
def test_a_spine_is_broken_and_healed(clab, how):
    clab.call("cut", target="spine-01", how=how)
    try:
        assert wait_until(lambda: any("spine-01: " in text for text in clab.call("status")["missing"]), 90)
        assert _reaches(clab, "compute-001", ACME_FAR)
    finally:
        assert clab.call("heal") == ["spine-01"]
    assert clab.call("converge", timeout_s=300)["missing"] == []


def test_two_engines_one_truth(clab, lab):
    def settled() -> bool:
        return all(one.call("converge", timeout_s=300)["missing"] == [] for one in (lab, clab))

    assert settled()
    # on a busy machine a session may flap between two looks
    assert wait_until(lambda: clab.call("observe") == lab.call("observe"), 180), _first_difference(clab, lab)
    routers = clab.call("observe")
    assert sum(len(table) for router in routers.values() for table in router["routes"].values()) > 50


def _first_difference(clab: Running, lab: Running) -> Any:
    here, there = clab.call("observe"), lab.call("observe")
    if here.keys() != there.keys():
        return sorted(here), sorted(there)
    for router in here:
        for subject in here[router]:
            if here[router][subject] != there[router][subject]:
                return router, subject, here[router][subject], there[router][subject]
    return None


def test_a_name_that_is_taken_is_told_with_what_to_do(clab):
    with pytest.raises(CouldNotRunError, match=r"there already: .*: destroy that lab") as caught:
        clab.call("deploy")
    assert "\n" not in str(caught.value)


def test_an_image_that_is_missing_is_told_with_what_to_do(clab):
    _deploy_one(clab, "image: absent:1", r"image absent:1 .*: `docker build")


def test_a_port_in_use_is_told_with_what_to_do(clab):
    with serving(clab, 8099, ""):
        _deploy_one(
            clab,
            "image: kvfabric/node:latest\n      cmd: sleep 9\n      ports: ['8099:80']",
            "8099 is in use: stop what",
        )


def _deploy_one(clab: Running, node: str, words: str) -> None:
    """Deploy a lab of one node that cannot be deployed, and destroy what came of it."""
    folder = clab.share / "one"
    folder.mkdir(exist_ok=True)
    (folder / "one.clab.yml").write_text(
        f"name: one\ntopology:\n  nodes:\n    n1:\n      kind: linux\n      image-pull-policy: Never\n      {node}\n"
    )
    done = clab.run("", ["containerlab", "deploy", "-t", "/lab/one/one.clab.yml"], timeout_s=120)
    clab.run("", ["containerlab", "destroy", "-t", "/lab/one/one.clab.yml", "--cleanup"], timeout_s=120)
    text = trouble.explain(done.out + done.err)
    assert done.rc or "failed deploy stage" in done.out + done.err
    assert "\n" not in text
    assert re.search(words, text), done.out + done.err


def test_destroy_leaves_nothing_also_of_a_lab_whose_container_died(clab):
    clab.run("", ["docker", "kill", "storage-001"]).check()
    status = clab.call("status")
    assert "container storage-001 is exited" in status["missing"]
    assert clab.run("storage-001", ["true"]).rc != 0
    assert clab.call("destroy") == []
    assert clab.run("", ["docker", "ps", "-aq"]).check().out == ""
    assert clab.run("", ["sh", "-c", f"ls /run/netns; ls -d /lab/nodes/clab-{NAME} 2>/dev/null"]).out == ""
    assert json.loads(clab.run("", ["ip", "-j", "link", "show", "type", "veth"]).out or "[]") == []


HOST = """
import json, os, shutil, signal, sys
from pathlib import Path
from labs import state
from labs.containerlab import host
from labs.launch import launch
from labs.model import Lab
lab = Lab.from_json(Path("/lab/host/lab.json").read_text())
files = lambda out: shutil.copytree("/lab/host/files", out)
started = launch(lab, files, "containerlab", say=lambda text: print(text, file=sys.stderr, flush=True))
running = started.running
running.commit()
facts = state.facts_of(running.folder)
found = {
    "used": host.used(), "complaints": started.complaints, "undo": facts["undo"],
    "first": running.run("leaf-01", ["cat", "/proc/1/cmdline"]).out,
    "states": [row["state"] for row in running.call("status")["containers"]],
    "share": running.run("leaf-01", ["cat", "/lab/lab.json"]).out == Path("/lab/host/lab.json").read_text(),
}
os.kill(facts["supervisor"], signal.SIGKILL)
while state.is_alive(running.folder):
    pass
found["dead"] = state.deaths()
print(json.dumps(found))
"""


def test_on_a_host_with_docker_and_containerlab_the_lab_is_deployed_there(clab):
    """That host is the VM here. The supervisor is killed: who looks next destroys the containers."""
    plan = load_plan("lab")
    small = slicing.make(plan, "host", {"leaves": 1, "spines": 1, "gateways": 0, "servers": 1})
    folder = clab.share / "host"
    export.write(plan, small, folder / "files", export.Settings(binds=binds()))
    (folder / "lab.json").write_text(small.to_json())
    done = clab.run("", ["python3", "-c", HOST], timeout_s=300).check()
    found = json.loads(done.out.splitlines()[-1])
    assert found["used"]
    assert found["complaints"] == []
    assert found["states"] == ["running"] * len(small.nodes)
    assert "node.sh" in found["first"]
    assert found["share"]
    assert found["undo"][:2] == ["containerlab", "destroy"]
    assert "host" in found["dead"]
    assert clab.run("", ["docker", "ps", "-aq"]).check().out == ""
    assert clab.run("", ["ls", "/run/netns"]).out == ""


def _interfaces(clab: Running, node: str) -> dict[str, dict[str, Any]]:
    rows = json.loads(clab.run("", ["ip", "-n", node, "-j", "link"]).check().out)
    return {row["ifname"]: row for row in rows}


def test_part_of_the_whole_xoc_256_with_its_uplinks_in_order(clab):
    """Exported whole, deployed in part by `--node-filter`: 16 uplinks to one spine, each cable on its planned ports."""
    plan = load_plan("xoc-256")
    folder = clab.share / "xoc"
    whole = slicing.make(plan, "xoc-256")
    export.write(plan, whole, folder, export.Settings(binds=binds()))
    part = ["be-spine-01", "be-leaf-01", "compute-001"]
    command = ["containerlab", "deploy", "-t", "/lab/xoc/xoc-256.clab.yml", "--node-filter", ",".join(part)]
    done = clab.run("", command, timeout_s=600)
    try:
        assert done.rc == 0, done.out + done.err
        assert sorted(clab.run("", ["docker", "ps", "--format", "{{.Names}}"]).out.split()) == sorted(part)
        ports = {node: _interfaces(clab, node) for node in part}
        cables = [link for link in whole.links if {link.a.node, link.b.node} <= set(part)]
        assert sum("be-spine-01" in {link.a.node, link.b.node} for link in cables) == 16
        for link in cables:
            near, far = ports[link.a.node][link.a.interface], ports[link.b.node][link.b.interface]
            assert near["link_index"] == far["ifindex"], link.id
            if "be-spine-01" in {link.a.node, link.b.node}:
                assert (near["mtu"], far["mtu"]) == (link.mtu, link.mtu)
        show = ["docker", "exec", "be-leaf-01", "vtysh", "-c", "show bgp ipv4 unicast summary json"]

        def established() -> bool:
            peers = json.loads(clab.run("", show).out or "{}").get("peers", {})
            return sum(peer["state"] == "Established" for peer in peers.values()) == 16

        assert wait_until(established, 300)
    finally:
        clab.run("", ["containerlab", "destroy", "-t", "/lab/xoc/xoc-256.clab.yml", "--cleanup"], timeout_s=300)
    assert clab.run("", ["docker", "ps", "-aq"]).out == ""
