"""Each control-plane check passes on a site that is as planned, and names the place when one thing is broken."""

from __future__ import annotations

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import SimulatedSite
from validators.check import Context, DeviceInputs, judged
from validators.check_registry import all_checks
from validators.control_plane.frr_json import bfd_peers, bgp_peers, l3_vnis, prefix_routes, rmacs, routes, width
from validators.devices.answers import Answer
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
# the checks of drift compare whole files and have tests of their own
CONTROL = [c for c in all_checks().values() if c.stage.value == "control-plane" and "drift" not in c.name]


def ask(name, device="leaf-01", plan=PLAN, **broken):
    check = all_checks()[name]()
    site = SimulatedSite(plan, {(device, question.replace("_", "-")): fault for question, fault in broken.items()})
    inputs = DeviceInputs(device=device)
    return judged(check, plan, inputs, check.collect(Context(plan, site, None), inputs))


@pytest.mark.parametrize("site", ["lab", "xoc-64", "xoc-256-rail", "minimal"])
@pytest.mark.parametrize("check", CONTROL, ids=lambda c: c.name)
def test_a_site_as_planned_passes(site, check):
    plan = load_plan(site)
    context = Context(plan, SimulatedSite(plan), None)
    states = [judged(check(), plan, i, check().collect(context, i)).state for i in check.cases(plan)]
    assert set(states) <= {State.PASS, State.SKIPPED}
    assert site != "lab" or State.PASS in states


@pytest.mark.parametrize("check", CONTROL, ids=lambda c: c.name)
def test_no_answer_and_nonsense_are_errors_never_passes(check):
    inputs = DeviceInputs(device="leaf-01")
    (question,) = {a.question for a in check().asks(PLAN, inputs)}
    for said in (Answer(error="connection refused"), "", "Segmentation fault", '{"cut": [1, '):
        result = ask(check.name, **{question.replace("-", "_"): lambda _good, said=said: said})
        assert result.state is State.ERROR, (said, result.text)


@pytest.mark.parametrize("check", CONTROL, ids=lambda c: c.name)
def test_an_empty_table_is_never_a_pass(check):
    inputs = DeviceInputs(device="leaf-01")
    (question,) = {a.question for a in check().asks(PLAN, inputs)}
    empty = "[]" if question in {"links", "addresses", "bfd"} else "{}"
    assert ask(check.name, **{question.replace("-", "_"): lambda _good: empty}).state is State.FAIL


def broken(data, change):
    change(data)
    return data


def peers(data, family="ipv4Unicast"):
    return data["default"][family]["peers"]


FAULTS = [
    ("bgp-sessions", "bgp", lambda d: peers(d)["Ethernet256"].update(state="Active"), "leaf-01 E1/33", "Active"),
    ("bgp-sessions", "bgp", lambda d: peers(d)["Ethernet264"].update(remoteAs=1), "leaf-01 E1/34", "AS 1"),
    ("bgp-sessions", "bgp", lambda d: peers(d, "l2VpnEvpn").pop("Ethernet256"), "leaf-01 E1/33", "l2VpnEvpn"),
    ("bgp-sessions", "bgp", lambda d: peers(d).update({"192.0.2.9": {"state": "Idle"}}), "192.0.2.9", "no plan"),
    ("bfd-sessions", "bfd", lambda d: d[0].update(status="down"), "leaf-01", "down"),
    ("bfd-sessions", "bfd", lambda d: d.pop(0), "leaf-01", "no BFD session"),
    ("evpn-vnis", "vrf_vni", lambda d: d["vrfs"][0].update(state="Down"), "Vrf-acme", "Down"),
    ("evpn-vnis", "vrf_vni", lambda d: d["vrfs"][0].update(vrf="Vrf-globex"), "Vrf-acme", "tied to Vrf-globex"),
    ("evpn-vnis", "vrf_vni", lambda d: d["vrfs"].append({"vrf": "Vrf-x", "vni": 999, "state": "Up"}), "999", "not in the plan"),
    ("evpn-router-macs", "evpn_rmac", lambda d: d.update({"100": {"numRmacs": 0}}), "64512:100", "leaf-02"),
    ("evpn-router-macs", "evpn_rmac", lambda d: d["200"].update({"02:00:00:00:00:99": {"vtepIp": "9.9.9.9"}}), "Vrf-globex", "9.9.9.9"),
    ("port-vrf", "links", lambda d: d[0].update(master="Vrf-globex"), "leaf-01 E1/1/1", "Vrf-globex"),
    ("port-vrf", "links", lambda d: d[0].pop("master"), "leaf-01 E1/1/1", "default one"),
    ("port-mtu", "links", lambda d: d[0].update(mtu=1500), "leaf-01 E1/1/1", "1500"),
    ("port-address", "addresses", lambda d: d[0].update(addr_info=[]), "leaf-01 E1/1/1", "no address"),
    ("ecmp-width", "routes", lambda d: next(iter(d.values()))[0].update(nexthops=[{"fib": True}]), "leaf-01 route", "1 of 2 paths"),
    ("ecmp-width", "routes", lambda d: d.clear() or d.update({"0.0.0.0/0": []}), "leaf-01 route", "unreachable"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "question", "change", "place", "text"), FAULTS)
def test_a_planted_fault_is_named(check, question, change, place, text):
    result = ask(check, **{question: lambda data: broken(data, change)})
    assert result.state is State.FAIL
    assert place in result.place
    assert text in result.text


def test_a_port_in_no_tenants_vrf_says_so_when_it_passes():
    parts = {part.subject: part.text for part in ask("port-vrf").parts}
    assert parts["leaf-01 E1/33"] == "the default one"
    assert parts["leaf-01 E1/1/1"] == "Vrf-acme"


def test_a_planted_fault_fails_no_other_check():
    for check, question, change, _, _ in FAULTS:
        for other in CONTROL:
            questions = {a.question.replace("-", "_") for a in other().asks(PLAN, DeviceInputs(device="leaf-01"))}
            if other.name != check and question not in questions:
                assert ask(other.name, **{question: lambda d, c=change: broken(d, c)}).state is State.PASS


def evpn(change):
    def fault(data):
        for table in data.values():
            for route in table.values() if isinstance(table, dict) else ():
                if isinstance(route, dict):
                    change(route["paths"][0][0])
        return data

    return fault


def test_a_missing_and_a_wrong_route_target_are_named_with_the_line_to_write():
    result = ask("evpn-routes", evpn_routes=evpn(lambda path: path.update(extendedCommunity={"string": "ET:8"})))
    assert "route target none" in result.text
    assert "route-target export 64512:" in result.place
    result = ask("evpn-routes", evpn_routes=evpn(lambda path: path.update(extendedCommunity={"string": "RT:1:1"})))
    assert "carries route target 1:1" in result.text


def test_a_prefix_that_is_not_announced():
    def drop(data):
        first = next(v for v in data.values() if isinstance(v, dict))
        first.pop(next(key for key in first if key.startswith("[5]")))
        return data

    result = ask("evpn-routes", evpn_routes=drop)
    assert result.state is State.FAIL
    assert "does not announce" in result.text


def test_shapes_of_other_frr_versions():
    assert bgp_peers('{"ipv4Unicast": {"peers": {"a": {"state": "Idle"}}}}')["a"]["ipv4Unicast"]["state"] == "Idle"
    assert [p["peer"] for p in bfd_peers('[{"vrf": "default", "peers": [{"peer": "x"}]}]')] == ["x"]
    assert l3_vnis('{"5": {"vni": 5, "type": "L3", "tenantVrf": "v"}, "6": {"vni": 6, "type": "L2"}}').keys() == {5}
    assert rmacs('{"5": {"numRmacs": 1, "m": {"routerMac": "m", "vtepIp": "1.1.1.1"}}}') == {5: {"1.1.1.1": "m"}}
    assert prefix_routes('{"rd": {"[5]": {"paths": [{"ip": "1.0.0.0", "ipLen": 8}]}}}')[0].prefix == "1.0.0.0/8"
    assert routes('{"default": {"1.0.0.0/8": []}}') == {"default": {"1.0.0.0/8": []}}
    assert width([{"selected": False}]) == 0
