"""What containerlab leaves behind, compared with what was exported: equal, and each way in which it can differ."""

from __future__ import annotations

import json

import pytest
import yaml

from fabric.build import load_plan
from labs import slice as slicing
from labs.containerlab import readback
from labs.containerlab.kinds import Settings
from labs.containerlab.topology import topology

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def exported():
    plan = load_plan("lab")
    return topology(plan, slicing.make(plan, "lab"), Settings())


def left_by(exported, folder, prefix=""):
    """Write what a deploy of the topology leaves, in the form of containerlab's own templates."""
    nodes, groups, free = {}, {}, 200
    for index, (name, spec) in enumerate(sorted(exported["topology"]["nodes"].items())):
        free += 1
        address = spec.get("mgmt-ipv4", f"172.30.0.{free}")
        nodes[name] = {
            "index": str(index), "shortname": name, "longname": prefix + name, "fqdn": f"{name}.lab.io",
            "group": spec["group"], "labdir": f"/x/clab-lab/{name}", "kind": spec["kind"], "image": "kvfabric/node:latest",
            "mgmt-net": "lab-mgmt", "mgmt-intf": "", "mgmt-ipv4-address": address, "mgmt-ipv4-prefix-length": 21,
            "mgmt-ipv6-address": "", "mgmt-ipv6-prefix-length": 0, "mac-address": "", "labels": spec["labels"], "port-bindings": [],
        }  # fmt: skip
        for group in (spec["kind"], spec["labels"]["ansible-group"]):
            groups.setdefault(group, {"hosts": {}})["hosts"][prefix + name] = {"ansible_host": address}
    links = [
        {side: {"node": n, "interface": i, "mac": "aa:c1:ab:00:00:01", "peer": peer} for side, peer, (n, i) in ends}
        for link in exported["topology"]["links"]
        for ends in [[(s, p, e.split(":")) for s, p, e in zip("az", "za", reversed(link["endpoints"]), strict=True)]]
    ]
    data = {
        "name": "lab",
        "type": "clab",
        "clab": {"config": {"prefix": "", "mgmt": {}}},
        "nodes": nodes,
        "links": links,
    }
    (folder / readback.DATA).write_text(json.dumps(data))
    (folder / readback.INVENTORY).write_text(yaml.safe_dump({"all": {"vars": {}, "children": groups}}))
    return data, groups


def inspected(exported, **states):
    rows = [{"name": name, "state": states.get(name, "running")} for name in exported["topology"]["nodes"]]
    return json.dumps({"containers": rows})


def test_a_deployed_lab_is_what_was_exported(exported, tmp_path):
    left_by(exported, tmp_path)
    left = readback.read(tmp_path, inspected(exported))
    assert (len(left.nodes), len(left.links)) == (
        len(exported["topology"]["nodes"]),
        len(exported["topology"]["links"]),
    )
    assert set(left.groups) == {"linux", "spine", "leaf", "gateway", "server", "edge", "internet", "loadbalancer"}
    assert readback.differences(exported, left) == []


def changed(exported, folder, change):
    data, groups = left_by(exported, folder)
    change(data, groups)
    (folder / readback.DATA).write_text(json.dumps(data))
    (folder / readback.INVENTORY).write_text(yaml.safe_dump({"all": {"vars": {}, "children": groups}}))
    return " | ".join(readback.differences(exported, readback.read(folder)))


WAYS = {
    "node leaf-02 is planned and not there": lambda d, g: d["nodes"].pop("leaf-02"),
    "node x is there and not planned": lambda d, g: d["nodes"].update(x=d["nodes"]["leaf-01"]),
    "leaf-01: image is other:1, not kvfabric/node:latest": lambda d, g: d["nodes"]["leaf-01"].update(image="other:1"),
    "leaf-01: container name is clab-lab-leaf-01, not leaf-01": lambda d, g: d["nodes"]["leaf-01"].update(longname="clab-lab-leaf-01"),
    "gw-01: group is empty, not gateway": lambda d, g: d["nodes"]["gw-01"].update(group=""),
    "spine-01: management address is 172.30.0.9, not 172.30.0.5": lambda d, g: d["nodes"]["spine-01"].update({"mgmt-ipv4-address": "172.30.0.9"}),
    "link leaf-01:Ethernet256 to spine-01:Ethernet0 is planned and not there": lambda d, g: d["links"].__setitem__(slice(None), [k for k in d["links"] if k["a"]["interface"] != "Ethernet0" or k["a"]["node"] != "spine-01"]),
    "the lab is called other, not lab": lambda d, g: d.update(name="other"),
    "Ansible group leaf is planned and not there": lambda d, g: g.pop("leaf"),
    "Ansible group leaf: host leaf-02 is planned and not there": lambda d, g: g["leaf"]["hosts"].pop("leaf-02"),
    "Ansible reaches leaf-01 at 10.0.0.1, containerlab gave it 172.30.0.3": lambda d, g: g["leaf"]["hosts"]["leaf-01"].update(ansible_host="10.0.0.1"),
    "topology-data.json names no node": lambda d, g: d.update(nodes={}, links=[]),
}  # fmt: skip


@pytest.mark.parametrize("words", WAYS)
def test_each_difference_is_named(exported, tmp_path, words):
    assert words in changed(exported, tmp_path, WAYS[words])


def test_a_stopped_container_is_named(exported, tmp_path):
    left_by(exported, tmp_path)
    text = inspected(exported, **{"gw-02": "exited"})
    assert readback.differences(exported, readback.read(tmp_path, text)) == ["container gw-02 is exited"]


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
def test_what_cannot_be_read_is_never_equal(exported, tmp_path, name, text, words):
    left_by(exported, tmp_path)
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    found = readback.differences(exported, readback.read(tmp_path))
    assert len(found) == 1
    assert words in found[0]


def test_inspect_that_says_something_else_is_a_difference(exported, tmp_path):
    left_by(exported, tmp_path)
    found = readback.differences(exported, readback.read(tmp_path, "no containers found"))
    assert any("inspect" in text for text in found)
    assert any("container leaf-01 is planned and not there" in text for text in found)
