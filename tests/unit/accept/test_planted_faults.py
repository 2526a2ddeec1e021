"""Faults, one at a time, in the answers of a whole site: exactly one check fails, and its text names the place.

The whole acceptance runs on the answers of a real-port site; ten of these faults are planted in a running lab too
(tests/lab/test_acceptance.py). What acts on the network does not run on answers.
"""

from __future__ import annotations

import json

import pytest

from fabric.build import load_plan
from tests.unit.accept.tenant_traffic import LiveSite
from validators import runner_acceptance
from validators.devices.answers import unreached
from validators.report.redact import Redactor
from validators.runner_acceptance import Acceptance, accept, take_snapshot

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")


def edit(change):
    def fault(data):
        data = json.loads(data) if isinstance(data, str) else data
        change(data)
        return data

    return fault


def replaced(old, new):
    def fault(text):
        assert old in text
        return text.replace(old, new)

    return fault


def crossed(near, far):
    """LLDP of a device whose two ports see each other's neighbours."""

    def change(data):
        ports = {name: body for entry in data["lldp"]["interface"] for name, body in entry.items()}
        ports[near], ports[far] = ports[far], ports[near]
        data["lldp"]["interface"] = [{name: body} for name, body in ports.items()]

    return edit(change)


def far_end(local, port):
    def change(data):
        for entry in data["lldp"]["interface"]:
            if local in entry:
                entry[local]["port"] = {"id": {"type": "ifname", "value": port}, "descr": port}

    return edit(change)


def route_targets(data):
    for table in data.values():
        for route in table.values() if isinstance(table, dict) else ():
            if isinstance(route, dict):
                path = route["paths"][0][0]
                if "64512:100 " in path["extendedCommunity"]["string"]:
                    path["extendedCommunity"] = {"string": "ET:8"}


def nft_pool(data):
    rule = next(i["rule"] for i in data["nftables"] if "rule" in i and i["rule"]["chain"] == "post_nat")
    rule["expr"][-1]["snat"]["addr"] = "203.0.113.200"


def nft_timer(data):
    timer = next(i["ct timeout"] for i in data["nftables"] if "ct timeout" in i)
    timer["policy"] = timer["policy"] | {"established": 999}


# name: what is said by whom, the check that must fail, what its text and place must name
FAULTS = {
    "swapped cables": (
        {("leaf-01", "lldp"): crossed("Ethernet256", "Ethernet264"), ("spine-01", "lldp"): far_end("Ethernet0", "Ethernet264"),
         ("spine-02", "lldp"): far_end("Ethernet0", "Ethernet256")},
        "cabling", "crossed", "leaf-01"),
    "wrong VRF": ({("leaf-01", "links"): edit(lambda d: d[0].update(master="Vrf-globex"))},
                  "port-vrf", "VRF is Vrf-globex, the plan says Vrf-acme", "leaf-01 E1/1/1 (Ethernet0)"),
    "missing RT": ({("leaf-01", "evpn-routes"): edit(route_targets)},
                   "evpn-routes", "carries route target none, the plan says 64512:100", "route-target export 64512:100"),
    "MTU": ({("leaf-01", "links"): edit(lambda d: d[0].update(mtu=1500))},
            "port-mtu", "MTU is 1500, the plan says 9036", "leaf-01 E1/1/1 (Ethernet0)"),
    "DSCP map": ({("leaf-02", "config-db"): edit(lambda d: d["DSCP_TO_TC_MAP"]["AZURE"].update({"26": "0"}))},
                 "roce-config", "is 0, rendered was 3", "leaf-02 CONFIG_DB DSCP_TO_TC_MAP|AZURE 26"),
    "conntrack timeout": ({("gw-01", "nft"): edit(nft_timer)},
                          "nat-timeouts", "established 999 s (planned 120 s)", "gw-01 table ip kvfabric, ct timeout tcp.acme.masquerade"),
    "NAT pool": ({("gw-01", "nft"): edit(nft_pool)},
                 "nat-rules", "sources leave with 203.0.113.200", "gw-01 table ip kvfabric, chain post_nat, tenant acme"),
    "dead gateway": ({("gw-02", "version"): lambda _: "Linux 6.12\ndaemons: Exiting: failed to connect to any daemons."},
                     "device-answers", "its routing is dead", "gw-02"),
    "ECMP over one spine": ({("leaf-01", "routes"): edit(lambda d: next(iter(d.values()))[0].update(nexthops=[{"fib": True}]))},
                            "ecmp-width", "1 of 2 paths to leaf-02", "leaf-01 route to"),
    "wrong breakout": ({("leaf-01", "port-speeds"): replaced("Ethernet4 ", "Ethernet6 ")},
                       "port-speed", "wrong breakout: Ethernet4 is not on the device: set breakout 2x400G on E1/1", "leaf-01 E1/1/2 (Ethernet4)"),
    "silent counter": ({("leaf-01", "pfc"): replaced("Ethernet0 0 0 0 0", "Ethernet0 0 0 0 N/A")},
                       "roce-counters", "silent: no counter Ethernet0 rx pause frames priority 3", "leaf-01 E1/1/1 (Ethernet0)"),
    "headroom used up": ({("leaf-01", "headroom-watermark"): replaced("Ethernet0 0 0 0 0", "Ethernet0 0 0 0 9999999")},
                         "roce-watermarks", "headroom used up: peak 9,999,999 of", "leaf-01 E1/1/1 (Ethernet0) priority 3"),
    "drifted config": ({("spine-01", "config"): replaced("timers bgp 3 9", "timers bgp 60 180")},
                       "config-drift", "spine-01", "spine-01 frr.conf, router bgp 65001"),
}  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the acceptance of the site, live and from a snapshot; returns what did not pass, which must be the same."""

    def run(broken):
        site = LiveSite(PLAN, broken, physical=True)
        site.rounds = 2
        real = runner_acceptance.open_devices
        with monkeypatch.context() as patch:
            patch.setattr(runner_acceptance, "open_devices", lambda w, *_: real(w) if w.stored else (site, Redactor()))
            take_snapshot(Acceptance(PLAN, tmp_path), tmp_path / "snapshot", samples=2)
            live, _, _ = accept(Acceptance(PLAN, tmp_path, name="live"))
            stored, _, _ = accept(Acceptance(PLAN, tmp_path, name="stored", stored=tmp_path / "snapshot"))
        bad = [
            [(r.result.check, r.result) for r in one.records if r.result.state.value in {"fail", "error", "unknown"}]
            for one in (live, stored)
        ]
        assert [check for check, _ in bad[0]] == [check for check, _ in bad[1]]
        return bad[0]

    return run


def test_the_site_as_planned_is_accepted(run):
    assert run({}) == []


class Unreachable(LiveSite):
    """A site of which no device lets anybody in."""

    def gather(self, asks, sample=0):
        return {ask: unreached(f"admin@{ask.device}:22", "Connection refused") for ask in asks}

    def run(self, device, command, timeout_s=30.0):
        return unreached(f"admin@{device}:22", "Connection refused")


def test_what_cannot_be_asked_has_a_place_too(tmp_path, monkeypatch):
    site = Unreachable(PLAN, physical=True)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor()))
    run, _, _ = accept(Acceptance(PLAN, tmp_path, name="dark", keep_going=True))
    bad = [r.result for r in run.records if r.result.state.value in {"fail", "error", "unknown"}]
    assert len(bad) > 50
    assert [(result.check, result.text) for result in bad if not result.place] == []
    assert {r.place for r in bad if r.check == "device-answers"} >= {"leaf-01", "gw-02"}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_makes_exactly_the_right_check_fail(run, fault):
    broken, check, text, place = FAULTS[fault]
    bad = run(broken)
    assert {name for name, _ in bad} == {check}, [(name, result.text) for name, result in bad]
    results = [result for _, result in bad]
    assert any(text in result.text and place in result.place for result in results), [
        (r.text, r.place) for r in results
    ]
