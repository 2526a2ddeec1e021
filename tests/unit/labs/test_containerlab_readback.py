"""What containerlab leaves behind, compared with what was exported: equal, and each way in which it can differ.

The files in `containerlab-0.60/` are what a real deploy of the lab site left.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from labs.containerlab import readback

pytestmark = pytest.mark.unit

RECORDED = Path(__file__).with_name("containerlab-0.60")


@pytest.fixture(scope="module")
def exported():
    return yaml.safe_load((RECORDED / "topology.clab.yml").read_text())


@pytest.fixture
def folder(tmp_path):
    for name in (readback.DATA, readback.INVENTORY):
        shutil.copy(RECORDED / name, tmp_path)
    return tmp_path


def inspected(**states):
    said = json.loads((RECORDED / "inspect.json").read_text())
    for row in said["containers"]:
        row["state"] = states.get(row["name"].replace("-", "_"), row["state"])
    return json.dumps(said)


def test_a_deployed_lab_is_what_was_exported(exported, folder):
    left = readback.read(folder, inspected())
    assert (len(left.nodes), len(left.links)) == (14, 27)
    assert left.groups.keys() >= {"linux", "spine", "leaf", "gateway", "server", "internet"}
    assert left.nodes["leaf-01"].address == "172.30.0.3"
    assert readback.differences(exported, left) == []


def changed(exported, folder, change):
    data = json.loads((folder / readback.DATA).read_text())
    inventory = yaml.safe_load((folder / readback.INVENTORY).read_text())
    change(data, inventory["all"]["children"])
    (folder / readback.DATA).write_text(json.dumps(data))
    (folder / readback.INVENTORY).write_text(yaml.safe_dump(inventory))
    return " | ".join(readback.differences(exported, readback.read(folder)))


WAYS = {
    "node leaf-02 is planned and not there": lambda d, g: d["nodes"].pop("leaf-02"),
    "node x is there and not planned": lambda d, g: d["nodes"].update(x=d["nodes"]["leaf-01"]),
    "leaf-01: image is other:1, not kvfabric/node:latest": lambda d, g: d["nodes"]["leaf-01"].update(image="other:1"),
    "leaf-01: container name is clab-export-leaf-01, not leaf-01": lambda d, g: d["nodes"]["leaf-01"].update(longname="clab-export-leaf-01"),
    "gw-01: group is empty, not gateway": lambda d, g: d["nodes"]["gw-01"].update(group=""),
    "spine-01: management address is 172.30.0.9, not 172.30.0.5": lambda d, g: d["nodes"]["spine-01"].update({"mgmt-ipv4-address": "172.30.0.9"}),
    "link leaf-01:Ethernet256 to spine-01:Ethernet0 is planned and not there": lambda d, g: d.update(links=[k for k in d["links"] if k["z"]["node"] != "spine-01"]),
    "the lab is called other, not export": lambda d, g: d.update(name="other"),
    "Ansible group leaf is planned and not there": lambda d, g: g.pop("leaf"),
    "Ansible group leaf: host leaf-02 is planned and not there": lambda d, g: g["leaf"]["hosts"].pop("leaf-02"),
    "Ansible reaches leaf-01 at 10.0.0.1, containerlab gave it 172.30.0.3": lambda d, g: g["leaf"]["hosts"]["leaf-01"].update(ansible_host="10.0.0.1"),
    "topology-data.json names no node": lambda d, g: d.update(nodes={}, links=[]),
}  # fmt: skip


@pytest.mark.parametrize("words", WAYS)
def test_each_difference_is_named(exported, folder, words):
    assert words in changed(exported, folder, WAYS[words])


def test_a_stopped_container_is_named(exported, folder):
    text = inspected(gw_02="exited")
    assert readback.differences(exported, readback.read(folder, text)) == ["container gw-02 is exited"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (readback.DATA, None, "not deployed"),
        (readback.DATA, '{"name": "lab", "type": "clab"}', "could not export"),
        (readback.DATA, "{", "not what containerlab writes"),
        (readback.INVENTORY, None, "not deployed"),
        (readback.INVENTORY, "all: [1]", "not what containerlab writes"),
    ],
)
def test_what_cannot_be_read_is_never_equal(exported, folder, name, text, words):
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    found = readback.differences(exported, readback.read(folder))
    assert len(found) == 1
    assert words in found[0]


def test_inspect_that_says_something_else_is_a_difference(exported, folder):
    found = readback.differences(exported, readback.read(folder, "no containers found"))
    assert any("inspect" in text for text in found)
    assert any("container leaf-01 is planned and not there" in text for text in found)
