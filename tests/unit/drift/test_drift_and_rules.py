"""Drift, NAT rules, timers, the RoCE class and its counters: a device as rendered passes, one fault fails by name."""

from __future__ import annotations

import json
import subprocess
from shutil import which

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import SimulatedSite
from validators.check import Context, DeviceInputs, judged
from validators.check_registry import all_checks
from validators.drift import frr_lines
from validators.drift.checks import rendered
from validators.gateways.nft_json import parse
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")


def ask(name, device, question="", fault=None, physical=True):
    site = SimulatedSite(PLAN, {(device, question): fault} if fault else {}, physical)
    check, inputs = all_checks()[name](), DeviceInputs(device=device)
    return judged(check, PLAN, inputs, check.collect(Context(PLAN, site, None), inputs))


@pytest.mark.parametrize("physical", [False, True])
@pytest.mark.parametrize("name", [n for n, c in all_checks().items() if c.passive and c.Inputs is DeviceInputs])
def test_a_site_as_planned_passes_every_passive_check(name, physical):
    check = all_checks()[name]
    if check.physical and not physical:
        return
    for inputs in check.cases(PLAN):
        result = ask(name, inputs.device, physical=physical)
        assert result.state is State.PASS, (inputs, result.text)


def change(old, new):
    def fault(text):
        assert old in text
        return text.replace(old, new)

    return fault


def in_json(change_it):
    def fault(data):
        data = json.loads(data) if isinstance(data, str) else data
        change_it(data)
        return data

    return fault


def timer(data):
    next(i for i in data["nftables"] if "ct timeout" in i)["ct timeout"]["policy"]["established"] = 999


def pool(data):
    rule = next(i["rule"] for i in data["nftables"] if "rule" in i and i["rule"]["chain"] == "post_nat")
    rule["expr"][-1]["snat"]["addr"] = "203.0.113.200"


def forward(data):
    next(i for i in data["nftables"] if "map" in i)["map"]["elem"].pop()


FAULTS = {
    "dead gateway": ("device-answers", "gw-01", "version", change("zebra bgpd bfdd staticd", "failed to connect to any daemons"),
                     "its routing is dead: failed to connect"),
    "added by hand": ("config-drift", "leaf-01", "config", change("timers bgp 3 9\n", "timers bgp 3 9\n bgp always-compare-med\n"),
                      "runs `bgp always-compare-med` in router bgp 65101"),
    "removed": ("config-drift", "leaf-01", "config", change("  redistribute static\n", ""),
                "does not run `redistribute static` in router bgp 65101 vrf Vrf-acme, address-family ipv4 unicast"),
    "a section is one difference": ("config-drift", "leaf-01", "config", change("route-map OWN-acme permit 10\n", "route-map OTHER permit 10\n"),
                                    "(and 1 more)"),
    "CONFIG_DB field": ("config-db-drift", "leaf-01", "config-db", in_json(lambda d: d["PORT"]["Ethernet0"].update(mtu="1500")),
                        "PORT|Ethernet0 mtu: is 1500, rendered was 9036"),
    "CONFIG_DB row": ("config-db-drift", "leaf-01", "config-db", in_json(lambda d: d["VRF"].pop("Vrf-acme")),
                      "VRF|Vrf-acme: is missing"),
    "CONFIG_DB extra row": ("config-db-drift", "leaf-01", "config-db", in_json(lambda d: d["VRF"].update({"Vrf-x": {}})),
                            "VRF|Vrf-x: is there, and was not rendered"),
    "DSCP map": ("roce-config", "leaf-01", "config-db", in_json(lambda d: d["DSCP_TO_TC_MAP"]["AZURE"].update({"26": "0"})),
                 "DSCP_TO_TC_MAP|AZURE 26: is 0, rendered was 3"),
    "server DSCP": ("server-roce", "compute-001", "roce", lambda _: "be0-port0: DSCP map lacks 26:3\nexit 1",
                    "be0-port0: DSCP map lacks 26:3"),
    "watchdog off": ("roce-counters", "leaf-01", "watchdog", change("Ethernet0 ", "Ethernet999 "), "does not watch this port"),
    "timer": ("nat-timeouts", "gw-01", "nft", in_json(timer), "established 999 s (planned 120 s)"),
    "pool": ("nat-rules", "gw-01", "nft", in_json(pool), "sources leave with 203.0.113.200 to 203.0.113.200, the plan says 203.0.113.0"),
    "forward": ("nat-rules", "gw-01", "nft", in_json(forward), "is missing"),
    "drained": ("gateway-serving", "gw-01", "gateway", in_json(lambda d: d.update(phase="drained", refusing=True)), "phase: is drained"),
    "session": ("gateway-serving", "gw-01", "gateway", in_json(lambda d: d["sessions"].update({"edge-01 (x)": False})), "session edge-01 (x): is down"),
    "rule by hand": ("gateway-drift", "gw-01", "nft-running", change("policy drop;", "policy drop;\n\t\taccept"), "runs `accept`"),
    "file by hand": ("gateway-drift", "gw-01", "file-sums", lambda text: "0" + text[1:], "differs from the rendered one"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_fails_with_its_place(fault):
    name, device, question, change_it, text = FAULTS[fault]
    result = ask(name, device, question, change_it)
    assert result.state is State.FAIL
    assert text in result.text
    assert device in result.place


def test_an_rd_that_frr_does_not_print_is_in_force_or_missing():
    hidden = change("  rd 172.30.8.3:1\n", "")
    assert ask("config-drift", "leaf-01", "config", hidden).state is State.PASS
    site = SimulatedSite(
        PLAN,
        {("leaf-01", "config"): hidden, ("leaf-01", "evpn-rds"): lambda said: {**said, "100": {"rd": "172.30.8.3:7"}}},
        True,
    )
    check, inputs = all_checks()["config-drift"](), DeviceInputs(device="leaf-01")
    result = judged(check, PLAN, inputs, check.collect(Context(PLAN, site, None), inputs))
    assert result.state is State.FAIL
    assert "does not run `rd 172.30.8.3:1` in router bgp 65101 vrf Vrf-acme" in result.text


@pytest.mark.parametrize(
    ("question", "old", "new"), [("pfc", "Ethernet0 0 0 0 0", "Ethernet0 0 0 0 N/A"), ("queues", "UC3", "UC9")]
)
def test_a_silent_counter_is_an_error_that_names_it(question, old, new):
    result = ask(
        "roce-counters", "leaf-01", question,
        lambda d: json.loads(json.dumps(d).replace(old, new)) if question == "queues" else d.replace(old, new),
    )  # fmt: skip
    assert result.state is State.ERROR
    assert "silent: no counter Ethernet" in result.text
    assert result.place == "leaf-01 E1/1/1 (Ethernet0)"


@pytest.mark.parametrize(
    ("name", "device", "question"),
    [("config-drift", "leaf-01", "config"), ("config-db-drift", "leaf-01", "config-db"), ("roce-counters", "leaf-01", "pfc"), ("nat-rules", "gw-01", "nft"),
     ("gateway-drift", "gw-01", "nft-running"), ("gateway-serving", "gw-01", "gateway"), ("server-roce", "compute-001", "roce")],
)  # fmt: skip
def test_nonsense_is_an_error(name, device, question):
    assert ask(name, device, question, lambda _: "% Unknown command").state is State.ERROR


def test_sections_in_another_order_and_split_statements_are_no_difference():
    rendered_text = "router bgp 1\n neighbor E0 interface remote-as 2\n neighbor E0 peer-group G\nexit\nip prefix-list A permit 1.0.0.0/8\n"
    running = "frr version 10\nhostname x\nip prefix-list A permit 1.0.0.0/8\n!\nrouter bgp 1\n neighbor E0 interface peer-group G\n neighbor E0 remote-as 2\nexit\nend\n"
    assert frr_lines.differences(rendered_text, running) == []


@pytest.mark.skipif(not which("nft") or not which("unshare"), reason="nft is not here")
def test_rules_are_read_as_the_real_nft_prints_them(tmp_path):
    path = tmp_path / "nftables.conf"
    path.write_text(rendered(PLAN, "gw-01")["nftables.conf"])
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", f"nft -f {path} && nft -j list table ip kvfabric"], capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"nft does not run here: {done.stderr[:100]}")
    assert ask("nat-rules", "gw-01", "nft", lambda _: done.stdout).state is State.PASS
    assert ask("nat-timeouts", "gw-01", "nft", lambda _: done.stdout).state is State.PASS
    assert parse(done.stdout).timers["udp.acme.masquerade"] == {"unreplied": 30, "replied": 120}
