"""Names of links, ports and nodes; tcpdump's arguments; slices of sites."""

from __future__ import annotations

import pytest

from fabric.build import load_plan
from fabric.problem import InputError
from labs import capture, model, targets
from labs import slice as slicing

pytestmark = pytest.mark.unit

LAB = model.Lab(
    "x",
    (model.Node("leaf-01", "leaf", dark=("Ethernet8",)), model.Node("spine-01", "spine")),
    (model.Link("l1", model.End("leaf-01", "Ethernet0"), model.End("spine-01", "Ethernet4")),),
)


@pytest.mark.parametrize("text", ["l1", "leaf-01:Ethernet0", "spine-01:Ethernet4"])
def test_a_link_goes_by_its_id_and_by_both_its_ends(text):
    found = targets.find(LAB, text)
    assert (found.name, len(found.ends), found.is_node) == ("l1", 2, False)


def test_a_node_means_its_own_ends():
    assert targets.find(LAB, "spine-01") == targets.Target("spine-01", (model.End("spine-01", "Ethernet4"),), True)


def test_a_port_is_one_end():
    assert targets.port(LAB, "spine-01:Ethernet4").node == "spine-01"
    assert targets.port(LAB, "l1").node == "leaf-01"
    with pytest.raises(targets.UnknownTargetError, match="say which of its ports: leaf-01:Ethernet0"):
        targets.port(LAB, "leaf-01")


def test_an_unknown_name_is_told_what_is_close_to_it():
    with pytest.raises(targets.UnknownTargetError, match="close to it: leaf-01"):
        targets.find(LAB, "leaf01")
    with pytest.raises(targets.UnknownTargetError, match="far end is not in this lab"):
        targets.find(LAB, "leaf-01:Ethernet8")
    assert targets.unknown_node(LAB, "spine01") == "has no node spine01; close to it: spine-01"
    assert targets.unknown_node(LAB, "x") == "has no node x; its nodes are leaf-01, spine-01"


def test_a_capture_ends_by_number_or_by_time():
    assert capture.command("Ethernet0", 5, 0, raw=False)[-2:] == ["-c", "5"]
    timed = capture.command("Ethernet0", 0, 2.5, raw=True, expression=("udp", "port", "4789"))
    assert timed[:5] == ["timeout", "--preserve-status", "-s", "INT", "2.5"]
    assert timed[-5:] == ["-w", "-", "udp", "port", "4789"]
    assert "-c" not in timed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("racks=2", "expected KIND=NUMBER"),
        ("leaves=x", "expected KIND=NUMBER"),
        ("leaves=-1", "expected KIND=NUMBER"),
        ("leaves=0", "no lab without leaves"),
        ("servers=0", "no lab without servers"),
        (",", "nothing before or after a comma"),
        ("leaves=1,,spines=1", "nothing before or after a comma"),
        ("leaves=" + "9" * 5000, "expected KIND=NUMBER"),
        ("leaves=1,leaves=2", "said twice"),
    ],
)
def test_a_slice_that_cannot_be_read_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        slicing.parse_counts(text)


@pytest.fixture(scope="module")
def production():
    return load_plan("xoc-256")


def test_a_slice_larger_than_the_site_is_refused(production):
    with pytest.raises(InputError) as caught:
        slicing.make(production, "x", slicing.parse_counts("leaves=9,servers=999,gateways=3"))
    fixes = [problem.fix for problem in caught.value.problems]
    assert fixes == ["leaves=4", "servers=36", "gateways=2"]


def test_a_slice_of_production_has_neighbours_strangers_and_a_way_out(production):
    lab = slicing.make(production, "x", slicing.parse_counts("leaves=2,spines=2,gateways=2,servers=4"))
    assert model.faults(lab) == []
    kinds = {node.name: node.kind for node in lab.nodes}
    assert list(kinds.values()).count("gateway") == 2
    assert list(kinds.values()).count("border-leaf") == 2
    tenants = [node.tenants for node in lab.nodes if node.kind == "server"]
    assert tenants.count(("acme",)) == 2
    assert len(set(tenants)) == 3
    pairs = [(link.a.node, link.b.node) for link in lab.links if link.b.node == "be-spine-01"]
    assert pairs.count(("be-leaf-01", "be-spine-01")) == 1
    # what is left out of the run is dark, not gone: the rendered files speak of it
    assert len(lab.node("be-leaf-01").dark) > 40
    assert lab.plan_digest == production.digest
    assert lab.site == "xoc-256"


def test_parallel_cables_can_be_asked_for(production):
    lab = slicing.make(production, "x", slicing.parse_counts("leaves=1,spines=1,servers=1,links=5"))
    assert sum({link.a.node, link.b.node} == {"be-leaf-01", "be-spine-01"} for link in lab.links) == 5
