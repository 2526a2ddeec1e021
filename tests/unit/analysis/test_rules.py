"""Every rule is silent on the good sites and fires on a planted fault."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from fabric.analysis.check import run_rules
from fabric.analysis.rendered import Rendered
from fabric.analysis.rule import Rule, all_rules
from fabric.build import load_plan
from fabric.problem import Severity
from fabric.qos.headroom import headroom_use
from fabric.render.registry import render_site

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan

pytestmark = pytest.mark.unit

LEAF, SPINE, GATEWAY = "leaf-01", "spine-01", "gw-01"
FRR, DB = "frr.conf", "config_db.json"

# rule -> a change of leaf-01's config_db
IN_DB: dict[str, Callable[[dict[str, Any]], object]] = {
    "ports.lanes-unique": lambda d: d["PORT"]["Ethernet4"].update(lanes="1,2,3,4"),
    "ports.speed-lanes": lambda d: d["PORT"]["Ethernet0"].update(speed="500000"),
    "ports.platform-table": lambda d: d["PORT"]["Ethernet8"].update(lanes="9,10,11,12"),
    "ports.breakout": lambda d: d["BREAKOUT_CFG"]["Ethernet8"].update(brkout_mode="4x200G"),
    "ports.budget": lambda d: [d["BREAKOUT_CFG"][p].update(brkout_mode="8x100G") for p in ("Ethernet0", "Ethernet24")],
    "ports.admin-status": lambda d: d["PORT"]["Ethernet4"].pop("admin_status"),
    "ports.fec": lambda d: d["PORT"]["Ethernet0"].update(fec="best"),
    "ports.link-speed": lambda d: d["PORT"]["Ethernet256"].update(speed="400000"),
    "ports.alias-unique": lambda d: d["PORT"]["Ethernet4"].update(alias="Eth1/1"),
    "overlay.vrf-vni-mapped": lambda d: d["VRF"]["Vrf-acme"].update(vni="999"),
    "overlay.vni-unique": lambda d: d["VRF"]["Vrf-globex"].update(vni="100"),
    "overlay.svi-in-vrf": lambda d: d["VLAN_INTERFACE"]["Vlan3000"].clear(),
    "overlay.one-svi": lambda d: d["VLAN_INTERFACE"].update(Vlan3500={"vrf_name": "Vrf-acme"}),
    "overlay.vlan-range": lambda d: d["VLAN"].update(Vlan5000={"vlanid": "5000"}),
    "overlay.vtep-source": lambda d: d["VXLAN_TUNNEL"]["vtep"].update(src_ip="172.30.12.99"),
    "overlay.vni-agrees": lambda d: d["VRF"]["Vrf-acme"].pop("vni"),
    "overlay.vrfs-present": lambda d: d["VRF"].pop("Vrf-storage"),
    "isolation.port-vrf": lambda d: d["INTERFACE"]["Ethernet0"].update(vrf_name="Vrf-globex"),
    "qos.ranges": lambda d: d["QUEUE"].update({"Ethernet0|9": {"scheduler": "scheduler.kv"}}),
    "qos.maps": lambda d: d["DSCP_TO_TC_MAP"]["AZURE"].update({"5": "8"}),
    "qos.classes": lambda d: d["DSCP_TO_TC_MAP"]["AZURE"].update({"26": "0"}),
    "qos.pfc": lambda d: d["PORT_QOS_MAP"]["Ethernet256"].pop("pfc_enable"),
    "qos.global-map": lambda d: d["PORT_QOS_MAP"].pop("global"),
    "qos.watchdog": lambda d: d["PFC_WD"].pop("Ethernet0"),
    "qos.mark-before-pause": lambda d: d["WRED_PROFILE"]["AZURE_KV"].update(green_max_threshold="90000000"),
    "qos.ecn": lambda d: d["QUEUE"]["Ethernet0|3"].pop("wred_profile"),
    "qos.lossless-groups": lambda d: d["BUFFER_PG"]["Ethernet0|3"].update(profile="pg_lossless_800000_5m_profile"),
    "qos.headroom": lambda d: d["CABLE_LENGTH"]["AZURE"].update(Ethernet256="5m"),
    "qos.headroom-pool": lambda d: d["BUFFER_POOL"]["ingress_lossless_pool"].update(xoff="1000000"),
    "qos.buffers": lambda d: d["BUFFER_POOL"]["ingress_lossless_pool"].update(size="999999999999"),
    "addresses.unique": lambda d: d["LOOPBACK_INTERFACE"].update({"Loopback0|172.30.8.4/32": {}}),
    "addresses.links": lambda d: d["INTERFACE"].pop("Ethernet0|10.1.0.2/31"),
    "addresses.unnumbered": lambda d: d["INTERFACE"]["Ethernet256"].clear(),
    "addresses.macs": lambda d: d["DEVICE_METADATA"]["localhost"].update(mac="01:00:5e:00:00:01"),
    "tables.vlan-members": lambda d: d["VLAN_MEMBER"].pop("Vlan3900|Ethernet80"),
    "tables.management": lambda d: d["MGMT_INTERFACE"].clear(),
    "tables.services": lambda d: d["FEATURE"]["bgp"].update(state="disabled"),
    "tables.site-services": lambda d: d.update(SYSLOG_SERVER={"192.0.2.9": {}}),
    "tables.evpn-tunnel": lambda d: d["VXLAN_EVPN_NVO"]["nvo1"].update(source_vtep="other"),
    "tables.neighbours": lambda d: d["DEVICE_NEIGHBOR_METADATA"].pop("compute-001"),
    "mtu.tunnel": lambda d: d["PORT"]["Ethernet256"].update(mtu="9080"),
    "mtu.both-ends": lambda d: d["PORT"]["Ethernet256"].update(mtu="9216"),
    "files.hostname": lambda d: d["DEVICE_METADATA"]["localhost"].update(hostname="leaf 01"),
    "files.name-lengths": lambda d: d["VRF"].update({"Vrf-much-too-long-a-name": {"vni": "1"}}),
    "files.routing-mode": lambda d: d["DEVICE_METADATA"]["localhost"].update(docker_routing_config_mode="unified"),
    "files.metadata": lambda d: d["DEVICE_METADATA"]["localhost"].update(bgp_asn="65000"),
}

# rule -> device, file, old text, new text
IN_TEXT: dict[str, tuple[str, str, str, str]] = {
    "evpn.route-targets": (LEAF, FRR, "  route-target export 64512:100\n", ""),
    "evpn.route-target-fits": (LEAF, FRR, "import 64512:100\n", "import 4200000001:100000\n"),
    "evpn.rd": (LEAF, FRR, "rd 172.30.8.3:1\n", "rd 172.30.8.3:70000\n"),
    "evpn.advertise": (LEAF, FRR, "  advertise-all-vni\n", ""),
    "isolation.matrix": (LEAF, FRR, "route-target import 64512:200\n", "route-target import 64512:200 64512:300\n"),
    "isolation.exports": (LEAF, FRR, "route-target export 64512:300", "route-target export 64512:100"),
    "isolation.no-transit": (LEAF, FRR, "  import vrf route-map PEERS-storage\n", ""),
    "bgp.sessions": (SPINE, FRR, "remote-as 65101", "remote-as 65199"),
    "bgp.evpn-active": (SPINE, FRR, " address-family l2vpn evpn", " address-family l2vpn vpnv4"),
    "bgp.bfd": (LEAF, FRR, " profile fabric\n  detect", " profile other\n  detect"),
    "bgp.ecmp-width": (LEAF, FRR, "maximum-paths 64", "maximum-paths 1"),
    "bgp.as-numbers": ("leaf-02", FRR, "router bgp 65102", "router bgp 65101"),
    "bgp.router-id": (LEAF, FRR, "bgp router-id 172.30.8.3", "bgp router-id 0.0.0.0"),
    "bgp.loopbacks": (LEAF, FRR, "  network 172.30.12.3/32\n", ""),
    "bgp.takes-only-its-own": (LEAF, FRR, "permit 172.30.8.0/22 ge 32", "permit 0.0.0.0/0 ge 32"),
    "bgp.maximum-prefix": (SPINE, FRR, "maximum-prefix 64", "maximum-prefix 4"),
    "frr.references": (LEAF, FRR, "route-map EVPN-IN in", "route-map MISSING in"),
    "bgp.policy": (LEAF, FRR, " no bgp ebgp-requires-policy\n", ""),
    "bgp.multipath-relax": (LEAF, FRR, " bgp bestpath as-path multipath-relax\n", ""),
    "files.present": (LEAF, FRR, "", ""),
    "files.statements": (LEAF, FRR, "log syslog informational", "see ticket 4711"),
    "files.readable": (LEAF, DB, '"PORT": {', '"PORT": [{'),
    "gateway.announced": (GATEWAY, FRR, "  network 203.0.113.20/32\n", ""),
    "gateway.default-routes": (LEAF, FRR, "local-preference 209", "local-preference 210"),
    "gateway.nat-rules": (GATEWAY, "nftables.conf", "10.1.0.1 . 8443", "10.1.0.2 . 8443"),
    "gateway.idle-timeout": (GATEWAY, "nftables.conf", "established : 600", "established : 432000"),
    "gateway.tunnels": (GATEWAY, "network.sh", " tos inherit", ""),
    "hosts.roce": ("compute-001", "roce.sh", "DSCP=26", "DSCP=0"),
}


def _exposures(plan: Plan, **changes: Any) -> Plan:
    tenant = plan.tenants["acme"]
    static = next(e for e in tenant.exposures if e.mode == "static")
    others = tuple(e for e in tenant.exposures if e.mode != "static")
    tenants = plan.tenants | {"acme": replace(tenant, exposures=(*others, replace(static, **changes)))}
    return replace(plan, tenants=tenants)


def _tenant(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, tenants=plan.tenants | {"acme": replace(plan.tenants["acme"], **changes)})


def _without_tenants(plan: Plan, names: set[str]) -> Plan:
    servers = {
        name: replace(s, ports=tuple(replace(p, tenant="") for p in s.ports)) if name in names else s
        for name, s in plan.servers.items()
    }
    return replace(plan, servers=servers)


# rule -> a change of the plan
IN_PLAN: dict[str, Callable[[Plan], Plan]] = {
    "gateway.pool-arithmetic": lambda p: _exposures(p, private=("10.1.0.0/24",)),
    "gateway.public-disjoint": lambda p: _exposures(p, public=("203.0.113.8/32",)),
    "gateway.special-use": lambda p: _exposures(p, private=("127.0.0.1/32",)),
    "design.servers-in-tenants": lambda p: _without_tenants(p, {"compute-001"}),
    "design.second-spine": lambda p: replace(p, switches={n: s for n, s in p.switches.items() if n != "spine-02"}),
    "isolation.distinct": lambda p: _tenant(p, vni=200),
    "addresses.peers-disjoint": lambda p: _tenant(p, peers=("globex",)),
    "addresses.underlay-apart": lambda p: _tenant(
        p, subnets=(replace(p.tenants["acme"].subnets[0], prefix="172.30.0.0/16"),)
    ),
}

# these need a site of their own and have a test below
ELSEWHERE = {"qos.no-pfc"}


@pytest.mark.parametrize("name", ["lab", "xoc-256", "minimal", "xoc-64-rail"])
def test_shipped_sites_have_no_finding(name: str) -> None:
    plan = load_plan(name)
    found = run_rules(plan, Rendered(dict(render_site(plan))))
    assert {p.rule for p in found} == ({"design.second-spine"} if name == "xoc-64-rail" else set())


def test_linux_target_has_no_finding(linux_site: Any) -> None:
    assert run_rules(linux_site.plan, Rendered(linux_site.files)) == []


@pytest.mark.parametrize("rule", IN_DB)
def test_fires_on_a_fault_in_config_db(site: Any, rule: str) -> None:
    found = site.db(LEAF, IN_DB[rule]).found(rule)
    assert found
    assert {p.rule for p in found} == {rule}
    assert all(p.fix and p.subject and p.text for p in found)


def test_another_way_out_of_the_management_network_is_a_finding(site: Any) -> None:
    def change(db: dict[str, Any]) -> None:
        next(iter(db["MGMT_INTERFACE"].values()))["gwaddr"] = "172.30.0.1"

    (found,) = site.db(LEAF, change).found("tables.management")
    assert "has 172.30.0.1 as its router, the site says 172.30.7.254" in found.text


@pytest.mark.parametrize("rule", IN_TEXT)
def test_fires_on_a_fault_in_text(site: Any, rule: str) -> None:
    device, name, old, new = IN_TEXT[rule]
    if old:
        site.text(device, name, old, new)
    else:
        site.files[device][name] = ""
    found = site.found(rule)
    assert found
    assert {p.rule for p in found} == {rule}


@pytest.mark.parametrize("rule", IN_PLAN)
def test_fires_on_a_fault_in_the_plan(lab: Plan, lab_files: dict[str, dict[str, str]], rule: str) -> None:
    found = run_rules(IN_PLAN[rule](lab), Rendered(lab_files), [rule])
    assert found
    assert {p.rule for p in found} == {rule}


def test_one_spine_is_a_note_in_the_small_reference_site_and_a_warning_with_more_leaves() -> None:
    plan = load_plan("xoc-128")
    leaf = plan.switches["be-leaf-01"]
    more = replace(plan, switches=plan.switches | {"be-leaf-03": replace(leaf, name="be-leaf-03")})
    for site, severity in ((plan, Severity.INFO), (more, Severity.WARNING)):
        (found,) = run_rules(site, Rendered({}), ["design.second-spine"])
        assert (found.subject, found.severity) == ("fabric backend", severity)


def test_servers_without_a_tenant_are_one_finding(lab: Plan) -> None:
    few = {"compute-001", "compute-002", "storage-001"}
    (found,) = run_rules(_without_tenants(lab, few), Rendered({}), ["design.servers-in-tenants"])
    assert (found.subject, found.severity) == ("compute-[001-002], storage-001", Severity.WARNING)


def test_the_limit_of_the_headroom_ratio_is_the_sites(lab: Plan, lab_files: dict[str, dict[str, str]]) -> None:
    fabric = next(f for f in lab.fabrics.values() if f.qos)
    use = headroom_use(lab, fabric.name)
    assert fabric.qos
    assert use
    for limit, findings in ((use.ratio + 0.01, False), (use.ratio - 0.01, True)):
        qos = replace(fabric.qos, headroom_ratio=limit)
        plan = replace(lab, fabrics=lab.fabrics | {fabric.name: replace(fabric, qos=qos)})
        found = run_rules(plan, Rendered(lab_files), ["qos.headroom-pool"])
        assert bool(found) is findings
        assert all(f"{use.asked:,} bytes" in p.text and f"{use.shared:,}" in p.text for p in found)


def test_headroom_of_a_full_switch_is_shared_within_the_limit() -> None:
    use = headroom_use(load_plan("xoc-256"), "backend")
    assert use
    assert (use.asked, use.shared, use.ratio, use.limit) == (53_465_984, 33_374_584, 1.602, 2)


def test_pfc_in_a_fabric_without_rdma() -> None:
    plan = load_plan("minimal")
    files = {device: dict(names) for device, names in render_site(plan)}
    device = next(d for d in files if DB in files[d])
    files[device][DB] = '{\n    "PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3"}}\n}'
    assert run_rules(plan, Rendered(files), ["qos.no-pfc"])


def test_every_rule_has_a_planted_fault() -> None:
    assert set(all_rules()) == {*IN_DB, *IN_TEXT, *IN_PLAN, *ELSEWHERE}


def test_finding_has_the_line_of_the_field(site: Any) -> None:
    site.db(LEAF, IN_DB["ports.fec"])
    (problem,) = site.found("ports.fec")
    line = site.files[LEAF][DB].splitlines()[problem.line - 1]
    assert '"fec": "best"' in line


def test_finding_in_frr_conf_has_the_line(site: Any) -> None:
    site.text(SPINE, FRR, "remote-as 65101", "remote-as 65199")
    problem = site.found("bgp.sessions")[0]
    assert "65199" in site.files[SPINE][FRR].splitlines()[problem.line - 1]


def test_a_rule_without_a_page_is_refused() -> None:
    with pytest.raises(TypeError, match="Fix"):

        class NoPage(Rule):
            """Something must hold.

            Why: because.
            """

            id = "test.no-page"


def test_the_manual_is_the_docstrings() -> None:
    from pathlib import Path

    from fabric.analysis.manual import manual

    page = Path(__file__).parents[3] / "docs" / "rules.md"
    assert page.read_text() == manual(), "run: python -m fabric.analysis.manual > docs/rules.md"
