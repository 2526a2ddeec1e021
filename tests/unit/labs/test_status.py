"""`lab status` from stored answers: what is broken is seen in the data and in the text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fabric.cli import lab_status
from labs import balancer, converge, model, status

pytestmark = pytest.mark.unit

LEAF = model.Node("leaf-01", model.LEAF)
LAB = model.Lab(
    "lab", (LEAF, model.Node("vip-01", model.LOADBALANCER)), (), site="lab", plan_digest="0123456789abcdef",
    expect=model.Expectation(
        vteps=(model.Vtep("leaf-01", "10.0.0.1", {"100": "Vrf-a"}, {"100": ("10.0.0.2", "10.0.0.3")}),),
        services=(model.Service("vip-01", "a-443", "192.0.2.1:443", {"forward": "203.0.113.20:443"}),),
    ),
)  # fmt: skip
SAID = {
    "bgp": {
        "default": {
            "ipv4Unicast": {"peers": {"Ethernet0": {"state": "Established"}, "Ethernet8": {"state": "Active"}}},
            "l2VpnEvpn": {
                "peers": {"Ethernet0": {"state": "Established", "pfxRcd": 12}, "Ethernet8": {"state": "Idle"}}
            },
        }
    },
    "bfd": [
        {"peer": "fe80::1", "interface": "Ethernet0", "status": "up", "diagnostic": "ok"},
        {"peer": "fe80::2", "interface": "Ethernet8", "status": "down", "diagnostic": "control detection time expired"},
    ],
    "vni": {"vrfs": [{"vni": 100, "vrf": "Vrf-a", "state": "Down"}]},
    "rmac": {"100": {"02:00:00:00:00:02": {"vtepIp": "10.0.0.2"}}},
    "route": {"Vrf-a": {"10.1.0.0/31": [{"protocol": "bgp", "installed": True, "nexthops": [{"fib": True}]}]}},
}
SEEN = converge.Observation("leaf-01", SAID)


def _data(**parts):
    empty = {
        "lab": "lab", "site": "lab", "plan_digest": LAB.plan_digest, "as_planned": True, "missing": [], "faults": [],
        "routers": [], "tenants": [], "gateways": [], "servers": [], "balancers": [], "links": [],
    }  # fmt: skip
    return {**empty, **parts}


def test_a_neighbour_that_is_not_in_the_slice_is_not_down():
    row = status.router(SEEN, replace(LEAF, dark=("Ethernet8",)), LAB)
    assert row["bgp"] == {"up": 1, "all": 1, "down": [], "dark": 1}
    assert row["bfd"]["down"] == []
    text = lab_status.text(_data(routers=[row]))
    assert text.count("1/2 DOWN") == 1  # router MACs, which come by any port
    assert "not counted: 1 sessions on ports whose far end is not in this slice" in text


def test_a_neighbour_with_an_address_that_is_not_in_the_slice_is_not_down_either():
    peers = {"172.30.20.1": {"state": "Active"}, "172.30.20.3": {"state": "Active"}}
    bfd = [{"peer": "172.30.20.1", "vrf": "default", "status": "down"}]
    said = {"bgp": {"default": {"ipv4Unicast": {"peers": peers}}}, "bfd": bfd}
    row = status.router(converge.Observation("leaf-01", said), replace(LEAF, absent=("172.30.20.1",)), LAB)
    assert row["bgp"] == {"up": 0, "all": 1, "down": ["172.30.20.3"], "dark": 1}
    assert row["bfd"] == {"up": 0, "all": 0, "down": [], "dark": 1}
    edge = {"bgp": {"Vrf-edge": {"ipv4Unicast": {"peers": {"172.30.16.0": {"state": "Idle"}}}}}}
    row = status.router(converge.Observation("leaf-01", edge), replace(LEAF, absent=("172.30.16.0",)), LAB)
    assert row["bgp"]["dark"] == 1


def test_a_router_shows_what_is_down():
    row = status.router(SEEN, LEAF, LAB)
    assert row["bgp"] == {"up": 1, "all": 2, "down": ["Ethernet8"], "dark": 0}
    assert row["evpn"] == {"up": 1, "all": 2, "down": ["Ethernet8"], "dark": 0, "prefixes": 12}
    assert row["bfd"]["down"] == ["Ethernet8"]
    assert row["vni"] == {"up": 0, "all": 1, "down": ["100 Vrf-a"], "dark": 0}
    text = lab_status.text(_data(routers=[row]))
    assert text.count("1/2 DOWN") == 4
    assert "0/1 DOWN" in text
    session = converge.missing(
        model.Expectation(sessions=(model.Session("leaf-01", "Ethernet8", evpn=False),)), {"leaf-01": SEEN}
    )
    assert session[1] == "leaf-01: BFD to Ethernet8 is down (control detection time expired)"


def test_sessions_that_are_down_say_why():
    peer = {"bgpState": "Idle", "lastResetDueTo": "BGP Notification send", "lastNotificationReason": "Cease/BFD Down"}
    said = {
        "default": {
            "vrfId": 0,
            "Ethernet8": {**peer, "lastResetTimerMsecs": 4000},
            "Ethernet0": {"bgpState": "Established"},
        }
    }
    assert status.reset_reasons(said) == {"Ethernet8": "Cease/BFD Down, 4 s ago"}


def test_tenant_routes_nobody_could_say_are_no_number():
    rows = status.tenants(LAB, {"leaf-01": SEEN})
    assert rows == [{"vrf": "Vrf-a", "vni": 100, "routes": {"leaf-01": 1}}]
    mute = status.tenants(LAB, {"leaf-01": converge.Observation("leaf-01")})
    assert mute[0]["routes"] == {"leaf-01": None}
    assert lab_status.text(_data(tenants=mute)).splitlines()[3].split() == ["Vrf-a", "100", "?"]


def test_the_verdict_comes_first():
    assert lab_status.text(_data()).splitlines()[0] == "lab lab, site lab, plan 0123456789ab: as planned"
    fault = {"target": "spine-01", "kind": "break", "text": "silent"}
    lines = lab_status.text(_data(missing=["leaf-01: x"], faults=[fault])).splitlines()
    assert lines[0].endswith("1 thing is NOT as planned")
    assert lines[1:3] == ["  leaf-01: x", "  fault made here: spine-01 break silent"]


def test_a_gateway_without_nat_and_a_mute_one_are_told():
    checks = {"fabric": "ok", "edge": "ok", "nftables": "no table", "conntrack": "ok"}
    well = {
        "node": "gw-01",
        "trouble": "",
        "phase": "draining",
        "withdrawn": True,
        "checks": checks,
        "flows": {"a.b": 2},
    }
    well["conntrack"] = {"count": 3, "max": 10}
    assert status.gateway_faults(well) == [
        "gw-01: nftables: no table",
        "gw-01: is draining: new flows go to its standby",
        "gw-01: has withdrawn all that it announces",
    ]
    mute = {"node": "gw-02", "trouble": "vtysh is gone"}
    assert status.gateway_faults(mute) == ["gw-02: vtysh is gone"]
    text = lab_status.text(_data(gateways=[well, mute]))
    assert "draining, withdrawn" in text
    assert "a.b=2" in text
    assert "nftables: no table" in text
    assert "DOES NOT ANSWER" in text


def test_an_rdma_device_of_another_lab_of_the_same_kernel_is_not_this_ones():
    links = [
        {"ifname": "s.be0", "state": "ACTIVE", "netdev": "be0"}, {"ifname": "s.be1", "state": "ACTIVE"},
        {"ifname": "s.be2", "state": "DOWN", "netdev": "be2"},
    ]  # fmt: skip
    rows = status.rdma_devices({f"s.be{i}": f"be{i}" for i in range(4)}, links)
    assert [row["state"] for row in rows] == ["ACTIVE", "of another lab of this kernel", "DOWN", "absent"]
    said = status.server_faults({"node": "s", "tenants": [], "trouble": "", "rdma": rows})
    assert said[0] == "s: RDMA device s.be1 is of another lab of this kernel"
    assert len(said) == 3


def test_rdma_devices_that_are_not_there_are_told():
    devices = [
        {"device": "s.be0", "interface": "be0", "state": "ACTIVE"},
        {"device": "s.be1", "interface": "be1", "state": "absent"},
    ]
    row = {"node": "s", "tenants": ["a"], "trouble": "", "rdma": devices}
    assert status.server_faults(row) == ["s: RDMA device s.be1 is absent"]
    assert "s.be0 s.be1=ABSENT" in lab_status.text(_data(servers=[row]))


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (balancer.Backend("forward", True, "L4OK", "", 3), "up"),
        (balancer.Backend("forward", False, "L4CON", "Connection refused", 3), "nobody listens"),
        (balancer.Backend("forward", False, "L4TOUT", "timeout", 3), "NOT REACHED"),
        (None, "HAPROXY IS DOWN"),
    ],
)
def test_a_vip_says_how_its_backends_are(backend, words):
    listeners = {"a-443": balancer.Listener("a-443", True, 5, (backend,))} if backend else None
    row = status.balancer(converge.Observation("vip-01", {}, listeners), LAB)
    assert words in lab_status.text(_data(balancers=[row]))
    assert row["services"][0]["serves"] == (words == "up")
