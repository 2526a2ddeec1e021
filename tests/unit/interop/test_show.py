"""Show finds a thing by any of its names and says what touches it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fabric.interop.showing import show
from fabric.problem import InputError

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def test_everything_with_a_name_can_be_shown(lab: Plan) -> None:
    for name in (*lab.kind_of, *lab.tenants, *lab.groups, *lab.links):
        card = show(lab, name)
        assert card.text().startswith(f"{name}: ")
        assert json.loads(json.dumps(card.to_dict()))["name"] == name


@pytest.mark.parametrize("name", ["leaf-01 E1/33", "leaf-01:E1/33", "leaf-01/E1/33", "leaf-01 Ethernet256"])
def test_a_link_is_found_by_its_port(lab: Plan, name: str) -> None:
    assert show(lab, name).facts["a end"] == "leaf-01 E1/33 (Ethernet256)"


def test_a_link_is_found_by_cable_number_and_a_vrf_by_its_name(lab: Plan) -> None:
    link = next(iter(lab.links.values()))
    assert show(lab, f"#{link.cable}").name == link.id
    assert show(lab, "Vrf-acme").name == "acme"


def test_addresses_lead_to_their_device(lab: Plan) -> None:
    leaf = lab.switches["leaf-01"]
    assert show(lab, leaf.router_id).name == "leaf-01"
    server = next(s for s in lab.servers.values() if s.services)
    assert show(lab, server.services[0].address).name == server.name


def test_a_spare_port_is_said_to_be_spare(lab: Plan) -> None:
    assert show(lab, "leaf-01 E1/64").kind == "spare port of lab"


def test_sessions_are_one_a_link_with_the_peers_as(lab: Plan) -> None:
    sessions = next(t for t in show(lab, "leaf-01").tables if t.title == "BGP sessions")
    expected = [x for x in lab.links_of["leaf-01"] if x.kind in {"fabric", "gateway"}]
    assert len(sessions.rows) == len(expected)
    assert {(row[0], row[1]) for row in sessions.rows if str(row[0]).startswith("spine")} == {
        (name, lab.switches[name].asn) for name in ("spine-01", "spine-02")
    }


def test_an_unknown_name_gets_the_close_ones(lab: Plan) -> None:
    with pytest.raises(InputError) as raised:
        show(lab, "laef-01")
    assert "did you mean leaf-01" in raised.value.problems[0].fix
    with pytest.raises(InputError):
        show(lab, "")


def test_path_counts_hops_and_respects_tenancy(xoc256: Plan) -> None:
    near = show(xoc256, "compute-001", "compute-002")
    far = show(xoc256, "compute-001", "compute-017")
    assert near.facts["allowed by tenancy"] == "yes: both in acme"
    assert far.facts["allowed by tenancy"].startswith("no")
    assert near.tables[0].rows[0][:3] == ("backend", 2, 64)
    assert far.tables[0].rows[0][:2] == ("backend", 4)
    # 8 NICs, each over 32 uplinks, 16 links down from either spine, into 8 NICs
    assert far.tables[0].rows[0][2] == 8 * 32 * 16 * 8


def test_servers_are_never_a_way_between_others(xoc256: Plan) -> None:
    card = show(xoc256, "be-leaf-01", "fe-leaf-01")
    assert card.facts["path"] == "none: no fabric joins the two"


def test_breakout_legs_of_one_cage_are_shown_together(lab: Plan) -> None:
    card = show(lab, "leaf-01 E1/1/1")
    legs = next(t for t in card.tables if t.title == "other legs of the cable")
    assert [row[4] for row in legs.rows] == ["E1/1/2"]
