"""Lab model, messages, slices and FRR readings, without a lab."""

from __future__ import annotations

import pytest

from fabric.build import load_plan
from fabric.problem import InputError
from labs import converge, model, outside, wire
from labs import slice as slicing
from labs.native import bringup

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def plan():
    return load_plan("lab")


def test_a_lab_survives_json(plan):
    lab = slicing.make(plan, "lab")
    assert model.Lab.from_json(lab.to_json()) == lab
    assert model.faults(lab) == []
    assert len(lab.expect.sessions) == 20


def test_a_slice_keeps_names_and_darkens_the_rest(plan):
    lab = slicing.make(plan, "lab", slicing.parse_counts("spines=1,servers=1"))
    assert [n.name for n in lab.nodes if n.kind == "spine"] == ["spine-01"]
    assert "Ethernet264" in lab.node("leaf-01").dark
    with pytest.raises(InputError):
        slicing.parse_counts("racks=2,leaves=x")


def test_faults_of_a_lab_are_found():
    nodes = (model.Node("a", "leaf"), model.Node("a", "toaster"))
    link = model.Link("l", model.End("a", "averylonginterfacename"), model.End("b", "x"))
    text = " ".join(model.faults(model.Lab("x", nodes, (link,))))
    assert "twice" in text
    assert "unknown kind" in text
    assert "longer than" in text
    assert "not in the lab" in text


def test_messages_survive_noise_and_splitting():
    splitter = wire.Splitter()
    line = b"kernel says\n" + wire.encode({"id": 1, "data": wire.pack(b"\x00\n")})
    found = [m for byte in line for m in splitter.feed(bytes([byte]))]
    assert found == [{"id": 1, "data": wire.pack(b"\x00\n")}]
    assert splitter.noise == 1


def test_missing_says_what_is_absent():
    expect = model.Expectation(
        sessions=(model.Session("leaf", "Ethernet0"),),
        vteps=(model.Vtep("leaf", "10.0.0.1", {"100": "Vrf-a"}, {"100": ("10.0.0.2",)}),),
        routes=(model.Route("leaf", "Vrf-a", "10.1.0.0/31"),),
    )
    found = converge.missing(expect, {"leaf": converge.Observation("leaf")})
    assert len(found) == 6
    assert converge.missing(expect, {}) == []


def test_json_documents_are_split():
    assert converge.parse_documents('{"a":1}\n% none\n[2]') == [{"a": 1}, [2]]


def test_daemons_and_sysctls_are_read():
    assert list(bringup.wanted_daemons("bgpd=yes\nbfdd=no\n")) == ["mgmtd", "zebra", "bgpd"]
    assert bringup.sysctl_lines("# x\n-net.ipv4.a = 1\nnet/ipv4/b=2") == [("net/ipv4/a", "1"), ("net/ipv4/b", "2")]


def test_the_outside_gets_files(plan, tmp_path):
    outside.write(plan, tmp_path, ["edge-01"])
    assert "router bgp 64999" in (tmp_path / "edge-01" / "frr.conf").read_text()
