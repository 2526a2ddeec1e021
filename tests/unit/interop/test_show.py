"""Show finds a thing by any of its names and says what touches it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fabric.interop.showing import show
from fabric.problem import InputError
from fabric.render.frr_view import routing_text

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


def test_addresses_lead_to_their_device(lab: Plan, xoc256: Plan) -> None:
    leaf = lab.switches["leaf-01"]
    assert show(lab, leaf.router_id).name == "leaf-01"
    server = next(s for s in xoc256.servers.values() if s.services)
    assert show(xoc256, server.services[0].address).name == server.name


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


def test_a_tenant_imports_what_the_rendered_files_import(xoc256: Plan) -> None:
    acme = xoc256.tenants["acme"]
    leaf = next(s for s in xoc256.switches.values() if s.fabric == "frontend" and acme.vrf in s.vrfs)
    text = routing_text(xoc256, leaf, fpm=False)
    vrfs = [part for part in text.split("\nrouter bgp ") if f" vrf {acme.vrf}\n" in f"{part.splitlines()[0]}\n"]
    lines = [line.strip().split() for part in vrfs for line in part.splitlines()]
    imported = [line[2] for line in lines if line[:2] == ["route-target", "import"]]
    leaked = [line[2] for line in lines if line[:2] == ["import", "vrf"] and line[2] != "route-map"]
    facts = show(xoc256, "acme").facts
    assert [target.partition(" ")[0] for target in facts["imports"]] == imported == list(acme.imports)
    assert [vrf.partition(" ")[0] for vrf in facts["import vrf"]] == leaked == ["Vrf-storage"]


def _what(plan: Plan, name: str) -> list[tuple[object, ...]]:
    card = show(plan, name)
    table = next(t for t in card.tables if t.title.startswith("what ") or t.title == "overlaps")
    return [(row[0], row[1], row[3]) for row in table.rows]


@pytest.mark.parametrize(
    ("address", "rows"),
    [
        ("203.0.113.129", [("static exposure, public", "group internet", "is 10.1.16.121, both ways")]),
        ("203.0.113.9", [("masquerade exposure, public", "group internet", "hides 10.1.16.0/20, share of gw-02")]),
        ("203.0.113.128", [("portForward forward exposure, public", "group internet", "tcp/443 to 10.1.16.1:8443")]),
        ("10.1.5.5", [("subnet", "acme", "10.1.0.0/20 (backend), free")]),
        (
            "10.1.16.121",
            [
                ("service address", "compute-016", "on whichever frontend port is up"),
                ("static exposure, private", "group internet", "is 203.0.113.129 outside"),
                ("subnet", "acme", "10.1.16.0/20 (frontend), given"),
            ],
        ),
        ("172.30.13.200", [("pool", "vtep", "172.30.12.0/22, free")]),
        ("203.0.113.0/28", [("masquerade exposure, public", "group internet", "203.0.113.0/28")]),
        ("10.1.0.0/20", [("subnet (backend)", "acme", "10.1.0.0/20")]),
    ],
)
def test_an_address_is_found_in_ports_exposures_subnets_and_pools(
    xoc256: Plan, address: str, rows: list[tuple[str, str, str]]
) -> None:
    assert _what(xoc256, address) == rows


def test_an_address_of_two_tenants_is_shown_for_both(lab: Plan) -> None:
    card = show(lab, "10.1.0.1")
    assert card.name == "10.1.0.1"
    assert {row[2] for row in card.tables[0].rows} == {"acme", "globex"}


def test_every_address_of_the_plan_is_found(lab: Plan) -> None:
    devices = (*lab.switches.values(), *lab.gateways.values())
    wanted = [a for d in devices for a in (d.router_id, d.vtep, d.management) if a]
    wanted += [end.address for link in lab.links.values() for end in (link.a, link.b) if end.address]
    for address in wanted:
        assert show(lab, address).tables[0].title == f"what {address.partition('/')[0]} is"


def test_numbers_lead_to_their_tenant_or_devices(xoc256: Plan) -> None:
    acme, leaf = xoc256.tenants["acme"], xoc256.switches["be-leaf-01"]
    for name in ("VNI 100", "vni100", "VLAN 3000", acme.rt, f"RT {acme.imports[1]}", f"RD {leaf.router_id}:1"):
        assert show(xoc256, name).name == "acme"
    for name in (f"AS {leaf.asn}", f"AS{leaf.asn}", str(leaf.asn)):
        assert show(xoc256, name).tables[0].rows == [("be-leaf-01", "leaf", "backend")]
    for name in ("VNI 999", "AS 1", "64512:999", "8.8.8.8", "RD 172.30.8.3:1"):
        with pytest.raises(InputError):
            show(xoc256, name)


def test_a_static_exposure_has_no_idle_timeout_and_its_name_is_said_once(xoc256: Plan) -> None:
    table = next(t for t in show(xoc256, "acme").tables if t.title == "exposures")
    timeouts = {row[2]: row[7] for row in table.rows}
    assert timeouts == {"masquerade": 120, "portForward": 600, "static": None}
    assert "none: stateless" in show(xoc256, "acme").text()
    assert [e.title for e in xoc256.tenants["acme"].exposures] == ["masquerade", "portForward forward", "static"]
