"""What the containerlab engine says of bad surroundings and of containerlab's words; where it deploys."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from labs import state
from labs.containerlab import build, host, inside, machine
from labs.machine import Options

pytestmark = pytest.mark.unit

LOG = [
    'time="2026-01-01T00:00:00Z" level=info msg="Creating container: \\"leaf-01\\""\n',
    'time="2026-01-01T00:00:00Z" level=warning msg="Unable to load kernel module \\"ip_tables\\" automatically"\n',
    'time="2026-01-01T00:00:00Z" level=info msg="Executed command \\"sh /kvfabric/node.sh up\\" on the node \\"leaf-01\\". stdout:\\n! sysctl a=1 was refused\\n"\n',
    'time="2026-01-01T00:00:00Z" level=error msg="Failed to execute command \\"sh /kvfabric/node.sh up\\" on the node \\"spine-01\\". rc=1,\\nstdout:\\n\\nstderr:\\nnetwork.sh failed"\n',
    'time="2026-01-01T00:00:00Z" level=error msg="something else"\n',
    "+---+\n",
]


def test_complaints_are_those_of_nodes_and_of_containerlab():
    found = inside.complaints_in(LOG)
    assert found[0] == "leaf-01: sysctl a=1 was refused"
    assert found[1].startswith("spine-01: ")
    assert "network.sh failed" in found[1]
    assert found[2:] == ["containerlab: something else"]


def test_messages_of_a_line_that_is_no_log_line():
    assert inside.messages("+----+\n") == []
    assert inside.messages("level=info msg=short") == [("info", "short")]


def _fake(tmp_path: Path, monkeypatch, script: str, name: str = "docker") -> None:
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_docker_without_rights_is_one_line(tmp_path, monkeypatch):
    _fake(tmp_path, monkeypatch, "echo permission denied while trying to connect >&2; exit 1")
    _fake(tmp_path, monkeypatch, "exit 0", "containerlab")
    assert host.used()
    assert machine.lacks() == [host.DENIED]


def test_a_silent_docker_engine_means_the_vm(tmp_path, monkeypatch):
    _fake(tmp_path, monkeypatch, "echo Cannot connect to the Docker daemon >&2; exit 1")
    _fake(tmp_path, monkeypatch, "exit 0", "containerlab")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not host.used()
    assert all("not built yet" in text for text in machine.lacks())


def test_on_this_host_the_lab_is_destroyed_with_its_folder(tmp_path, monkeypatch):
    _fake(tmp_path, monkeypatch, f"echo $* >> {tmp_path}/calls", "containerlab")
    _fake(tmp_path, monkeypatch, "exit 0")
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path / "labs"))
    folder, alive = state.create("lab")
    topology = folder / "share/nodes/lab.clab.yml"
    topology.parent.mkdir(parents=True)
    topology.write_text("name: lab\n")
    started = machine.start(folder, Options())
    try:
        started.channel.settimeout(30)
        assert json.loads(started.channel.recv(4096).splitlines()[0])["op"] == "ready"
    finally:
        started.kill()
        os.close(alive)
    # nobody removed it: the supervisor was killed, and the next who looks for labs does its work
    assert "lab" in state.deaths()
    assert (tmp_path / "calls").read_text().split() == ["destroy", "-t", str(topology), "--cleanup"]
    assert not folder.exists()


def test_a_refusal_is_one_line_with_what_to_do(tmp_path, monkeypatch):
    said = "level=error msg=\"Error: the 'lab' lab has already been deployed. Destroy the lab\""
    _fake(tmp_path, monkeypatch, f"cat <<'END'\n{said}\nEND\nexit 1", "containerlab")
    monkeypatch.setattr(inside, "FOLDER", tmp_path)
    monkeypatch.setattr(inside.nodes, "SHARE", tmp_path)
    with pytest.raises(inside.DeployError) as caught:
        inside.containerlab(["deploy"], print)
    text = str(caught.value)
    assert text.startswith("containerlab deploy refused: a lab called lab is running already: ")
    assert "\n" not in text


def test_a_container_that_does_not_run_is_named(tmp_path, monkeypatch):
    topology = {"name": "lab", "prefix": "", "topology": {"nodes": {"leaf-01": {}, "leaf-02": {}}}}
    _fake(tmp_path, monkeypatch, "echo /leaf-01 17; echo /leaf-02 0")
    kept = {}
    monkeypatch.setattr(inside.nodes, "remember", kept.update)
    with pytest.raises(inside.DeployError, match="leaf-02"):
        inside.remember(topology, ["leaf-01", "leaf-02"])
    inside.remember(topology, ["leaf-01"])
    assert kept == {"leaf-01": 17}


def test_an_rdma_mode_that_containers_cannot_have_is_refused(tmp_path):
    with pytest.raises(CouldNotRunError, match="--engine uml for --rdma exclusive"):
        machine.start(tmp_path, Options(rdma="exclusive"))


def test_on_this_host_the_image_is_imported_once(tmp_path, monkeypatch):
    _fake(tmp_path, monkeypatch, f'echo $* >> {tmp_path}/calls; [ "$1" != image ] || [ -e {tmp_path}/there ]')
    _fake(tmp_path, monkeypatch, "exit 0", "containerlab")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(host.root, "build", lambda: tmp_path)
    assert any("lab build --engine containerlab" in text for text in machine.lacks())
    assert build.build() == [tmp_path]
    imported = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("import ")]
    assert imported[0].endswith("node.tar kvfabric/node:latest")
    (tmp_path / "there").touch()
    build.build()
    assert (tmp_path / "calls").read_text().count("import ") == 1


def test_a_node_that_could_not_be_made_is_a_refusal_though_containerlab_ends_well(tmp_path, monkeypatch):
    said = (
        'level=error msg="failed deploy stage for node \\"n1\\": listen tcp4 0.0.0.0:80: bind: address already in use"'
    )
    _fake(tmp_path, monkeypatch, f"cat <<'END'\n{said}\nEND", "containerlab")
    monkeypatch.setattr(inside, "FOLDER", tmp_path)
    monkeypatch.setattr(inside.nodes, "SHARE", tmp_path)
    with pytest.raises(inside.DeployError, match=r"port 0\.0\.0\.0:80 is in use: stop what listens there"):
        inside.containerlab(["deploy"], print)


def test_a_container_that_docker_did_not_remove_is_removed_once_more(tmp_path, monkeypatch):
    (tmp_path / "lab.clab.yml").write_text("name: lab\nprefix: ''\ntopology: {nodes: {}}\n")
    _fake(tmp_path, monkeypatch, f"echo $1 >> {tmp_path}/calls", "containerlab")
    _fake(tmp_path, monkeypatch, f'[ "$1" = ps ] && [ "$(wc -l < {tmp_path}/calls)" -lt 2 ] && echo gw-02; exit 0')
    monkeypatch.setattr(inside, "FOLDER", tmp_path)
    monkeypatch.setattr(inside.nodes, "SHARE", tmp_path)
    assert inside.destroy(print) == []
    assert (tmp_path / "calls").read_text().split() == ["destroy", "destroy"]
