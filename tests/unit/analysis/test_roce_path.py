"""The proof holds on the lab, and names the first hop, file and key that do not agree."""

from __future__ import annotations

from typing import Any

import pytest

from fabric.analysis.rendered import Rendered
from fabric.analysis.roce_path import prove
from fabric.build import load_plan
from fabric.problem import InputError
from fabric.render.registry import render_site

pytestmark = pytest.mark.unit

ENDS = ("compute-001:be0-port0", "compute-003:be0-port0")


def test_holds_on_every_path(site: Any) -> None:
    proof = prove(site.plan, Rendered(site.files), *ENDS)
    assert proof.holds
    assert [h.way for h in proof.hops][:2] == ["out", "in"]
    assert all(v.key and v.file for h in proof.hops for v in h.values)


def test_names_the_spine_that_lost_its_class() -> None:
    from tests.unit.analysis.conftest import Site

    plan = load_plan("xoc-256")
    spoilt = Site(plan, dict(render_site(plan)))
    spoilt.db("be-spine-02", lambda d: d["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"].update({"3": "0"}))
    proof = prove(plan, Rendered(spoilt.files), "compute-001", "compute-016")
    assert proof.tunnelled
    assert proof.paths == 2 * 16 * 16
    assert not proof.holds
    assert {h.device for h in proof.wrong} == {"be-spine-02"}
    value = proof.wrong[0].wrong[0]
    assert (value.name, value.value, value.want) == ("priority group", "0", "3")
    assert value.line


def test_names_the_nic(site: Any) -> None:
    site.text("compute-001", "roce.sh", "DSCP=26", "DSCP=0")
    proof = prove(site.plan, Rendered(site.files), *ENDS)
    assert proof.wrong[0].device == "compute-001"
    assert proof.wrong[0].wrong[0].key == "DSCP"


def test_linux_switches_are_unknown_not_good(linux_site: Any) -> None:
    proof = prove(linux_site.plan, Rendered(linux_site.files), *ENDS)
    assert not proof.holds
    assert proof.unknown


def test_packet_headers_on_each_hop(site: Any) -> None:
    proof = prove(site.plan, Rendered(site.files), *ENDS)
    assert proof.tunnelled
    assert proof.hops[0].packet == "DSCP 26, ECT(0)"
    inside = [h.packet for h in proof.hops if "spine" in h.device]
    assert inside == ["outer DSCP 26, ECT(0) and inner alike, 50 bytes of VXLAN"] * 2
    site.text("compute-001", "roce.sh", "TOS=106", "TOS=104")
    spoilt = prove(site.plan, Rendered(site.files), *ENDS)
    assert spoilt.hops[0].packet == "DSCP 26, not ECN-capable"


def test_asic_hash_is_unknown_with_fields_and_set(site: Any) -> None:
    ecmp = prove(site.plan, Rendered(site.files), *ENDS, source_port=49153).ecmp
    assert not ecmp.certain
    assert ecmp.path == ()
    assert ecmp.flow["source_port"] == 49153
    assert {c.device for c in ecmp.choices} == {"leaf-01", "spine-01", "spine-02"}
    leaf = next(c for c in ecmp.choices if c.device == "leaf-01")
    assert "L4_SRC_PORT" in leaf.fields
    assert leaf.by_source_port
    assert leaf.key == "SWITCH_HASH|GLOBAL|ecmp_hash"
    assert "not published" in leaf.why
    spine = next(c for c in ecmp.choices if c.device == "spine-01")
    assert spine.chosen  # one cable to each leaf of the lab


def test_a_hash_without_the_source_port_is_said(site: Any) -> None:
    site.db("leaf-01", lambda d: d["SWITCH_HASH"]["GLOBAL"].update(ecmp_hash=["SRC_IP", "DST_IP"]))
    ecmp = prove(site.plan, Rendered(site.files), *ENDS).ecmp
    assert "do not spread QPs at leaf-01" in ecmp.verdict


def test_linux_hash_is_keyed_at_boot(linux_site: Any) -> None:
    ecmp = prove(linux_site.plan, Rendered(linux_site.files), *ENDS).ecmp
    leaf = next(c for c in ecmp.choices if c.device == "leaf-01")
    assert leaf.key == "net.ipv4.fib_multipath_hash_policy"
    assert leaf.by_source_port
    assert "boot" in leaf.why


def test_one_leaf_has_one_certain_path() -> None:
    plan = load_plan("xoc-256")
    ecmp = prove(plan, Rendered(dict(render_site(plan))), "compute-001", "compute-002").ecmp
    assert ecmp.certain
    assert len(ecmp.path) == 2


def test_a_server_that_is_none_is_told_what_is_close(site: Any) -> None:
    with pytest.raises(InputError) as caught:
        prove(site.plan, Rendered(site.files), "compute-01", "compute-002")
    assert "did you mean compute-001?" in caught.value.problems[0].fix


def test_tenants_that_are_not_peers_have_no_path(site: Any) -> None:
    with pytest.raises(InputError) as caught:
        prove(site.plan, Rendered(site.files), "compute-001", "compute-002")
    assert caught.value.problems[0].rule == "path.tenants"


@pytest.mark.parametrize("name", ["nobody", "compute-001:eth9", "compute-003:be0-port0"])
def test_unknown_ends(site: Any, name: str) -> None:
    with pytest.raises(InputError):
        prove(site.plan, Rendered(site.files), name, "compute-003:be0-port0")


def test_a_server_without_rdma_is_sent_to_what_answers_for_it() -> None:
    plan = load_plan("xoc-256")
    with pytest.raises(InputError) as raised:
        prove(plan, Rendered({}), "compute-001", "storage-001")
    problem = raised.value.problems[0]
    assert problem.text == "is in frontend only, without RDMA: there is no lossless class to prove"
    assert "`kvfabric show SITE storage-001 OTHER`" in problem.fix
