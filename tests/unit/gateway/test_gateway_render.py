"""What a rendered gateway says, looked at as text and as data."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fabric.build import load_plan
from fabric.gateway.served import HANDOVER_BIT, announcements, served
from fabric.render import gateway

pytestmark = pytest.mark.unit

EXPOSED = """
- {mode: masquerade, public: 203.0.113.0/29, group: internet}
- {mode: portForward, public: 203.0.113.20/32, tcp: {443: 'compute-001:8443'}, udp: {53: 'compute-001:53'}, idle_timeout: 10m, group: internet}
- {mode: static, private: 10.1.0.16/29, public: 203.0.113.32/29, group: internet}
"""
OTHER = "- {mode: masquerade, public: 203.0.113.8/29, group: partners}"


@pytest.fixture
def files(expose: Any) -> dict[str, dict[str, str]]:
    plan, problems = expose(EXPOSED, OTHER)
    assert plan is not None, problems
    return {name: gateway.render(plan, name) for name in gateway.devices(plan)}


def test_the_files_of_a_gateway_and_the_same_plan_gives_the_same_bytes(expose: Any) -> None:
    plan, _ = expose(EXPOSED, OTHER)
    first, second = gateway.render(plan, "gw-01"), gateway.render(plan, "gw-01")
    assert first == second
    assert set(first) == {
        "frr.conf", "daemons", "network.sh", "sysctl.conf", "nftables.conf", "gatewayctl", "gateway.json", "install.sh",
        "kvfabric-network.service", "kvfabric-rules.service", "kvfabric-health.service",
    }  # fmt: skip


def test_each_gateway_announces_its_own_share_and_prefers_by_rank(expose: Any) -> None:
    plan, _ = expose(EXPOSED, OTHER)
    seen = {}
    for name, gw in plan.gateways.items():
        seen[name] = {a.prefix: a.med for a in announcements(served(plan, gw), gw)}
    rest = ["203.0.113.20/32", "203.0.113.32/29"]
    assert seen["gw-01"] == {"203.0.113.0/30": 10, "203.0.113.12/30": 20, **dict.fromkeys(rest, 10)}
    assert seen["gw-02"] == {"203.0.113.4/30": 20, "203.0.113.8/30": 10, **dict.fromkeys(rest, 20)}


def test_the_default_route_carries_rank_and_a_target_of_its_own(files: dict[str, dict[str, str]]) -> None:
    frr = files["gw-02"]["frr.conf"]
    acme = frr.partition("vrf Vrf-acme\n bgp")[2].partition("exit\n!")[0]
    assert "import vrf route-map DEFAULT-RANK-1" in acme
    assert "route-target export 64512:100000100" in acme
    assert "route-target import 64512:100\n" in acme
    assert "set community 50001:1" in frr


def test_nothing_of_a_tenant_is_announced_outside(files: dict[str, dict[str, str]]) -> None:
    frr = files["gw-01"]["frr.conf"]
    edge = frr.partition("vrf Vrf-edge\n bgp")[2].partition("exit\n!")[0]
    assert "import vrf" not in edge
    assert "redistribute" not in frr
    assert re.findall(r"^  network (\S+)", edge, re.MULTILINE)
    assert "10.1.0." not in edge
    assert "set community no-advertise additive" in frr


def test_a_gateway_takes_loopbacks_inside_and_a_default_outside(files: dict[str, dict[str, str]]) -> None:
    frr = files["gw-01"]["frr.conf"]
    assert re.findall(r"prefix-list LOOPBACKS seq \d+ permit (.+)", frr) == [
        "172.30.8.0/22 ge 32",
        "172.30.12.0/22 ge 32",
    ]
    for name, wanted in (("FABRIC-IN", "LOOPBACKS"), ("EDGE-IN", "DEFAULT")):
        assert re.findall(rf"route-map {name} (\w+ \d+)\n match ip address prefix-list (\w+)\n", frr) == [
            ("permit 10", wanted)
        ]
        assert frr.count(f"route-map {name} permit") == 1
    assert "  neighbor FABRIC maximum-prefix 64 warning-only\n" in frr


def test_tenants_with_equal_addresses_have_zones_and_tables_of_their_own(files: dict[str, dict[str, str]]) -> None:
    facts = json.loads(files["gw-01"]["gateway.json"])
    zones = {t["name"]: t["zone"] for t in facts["tenants"]}
    assert len(set(zones.values())) == 2
    assert len({t["table"] for t in facts["tenants"]} | {t["handover_table"] for t in facts["tenants"]}) == 4
    marks = [e["mark"] for t in facts["tenants"] for e in t["exposures"]]
    assert len(marks) == len(set(marks)) == 4
    assert all(0 < zone < 65_536 and not zone & HANDOVER_BIT for zone in zones.values())
    for zone in zones.values():
        assert f"meta mark set {zone}\n" in files["gw-01"]["nftables.conf"]


def test_idle_timeout_is_a_policy_set_where_the_flow_begins(files: dict[str, dict[str, str]]) -> None:
    text = files["gw-01"]["nftables.conf"]
    policy = text.partition("ct timeout tcp.acme.forward {")[2].partition("}")[0]
    assert "established : 600" in policy
    started = [line for line in text.splitlines() if 'ct timeout set "tcp.acme.forward"' in line]
    assert started
    assert all("ct status dnat" in line for line in started)
    facts = json.loads(files["gw-01"]["gateway.json"])
    exposures = {e["name"]: e for t in facts["tenants"] if t["name"] == "acme" for e in t["exposures"]}
    assert exposures["forward"]["timeouts"]["udp"]["replied"] == 600
    assert exposures["masquerade"]["timeouts"]["tcp"]["established"] == 120
    assert exposures["static"]["timeouts"] == {}


def test_static_leaves_no_state_and_comes_before_the_zone(files: dict[str, dict[str, str]]) -> None:
    text = files["gw-01"]["nftables.conf"]
    outside = text.partition("chain from_outside {")[2].partition("}\n")[0]
    assert outside.index("ip daddr 203.0.113.32/29 notrack return") < outside.index("ct zone set")
    assert "ip daddr set ip daddr & 0.0.0.7 | 10.1.0.16" in text
    assert "ip saddr set ip saddr & 0.0.0.7 | 203.0.113.32" in text


def test_private_space_never_leaves(files: dict[str, dict[str, str]]) -> None:
    text, network = files["gw-01"]["nftables.conf"], files["gw-01"]["network.sh"]
    assert 'oifname @edge_ports ip daddr @private_space counter name "drop.private" drop' in text
    for prefix in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"):
        assert prefix in text
        assert network.count(f"ip route replace unreachable {prefix} table") == 2


def test_a_gateway_without_exposures_is_still_complete(expose: Any) -> None:
    plan, _ = expose("")
    found = gateway.render(plan, "gw-01")
    assert "route-map EDGE-OUT deny 10" in found["frr.conf"]
    assert "policy drop" in found["nftables.conf"]


@pytest.mark.parametrize("site", ["xoc-64", "xoc-256", "minimal", "lab"])
def test_shipped_sites_render(site: str) -> None:
    plan = load_plan(site)
    for name in gateway.devices(plan):
        found = gateway.render(plan, name)
        assert all(text.endswith("\n") for text in found.values())
        names = re.findall(r"ip link add (\S+)", found["network.sh"])
        assert names
        assert max(map(len, names)) <= 15
