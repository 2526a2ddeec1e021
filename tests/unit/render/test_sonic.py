from __future__ import annotations

import dataclasses
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.plan import FABRIC_LINK, GATEWAY_LINK, SERVER_LINK, TrafficClass
from fabric.problem import InputError
from fabric.render import sonic
from fabric.render.sonic_json import config_db_text, share
from fabric.render.sonic_qos import headroom, runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan

    ConfigDb = Callable[[Plan, str], dict[str, Any]]

pytestmark = pytest.mark.unit


def test_devices_are_the_managed_sonic_switches(xoc_256: Plan) -> None:
    assert sonic.devices(xoc_256) == tuple(n for n, s in xoc_256.switches.items() if s.managed and s.nos == "sonic")


def test_metadata_names_the_platform_and_leaves_routing_to_frr_conf(lab: Plan, config_db: ConfigDb) -> None:
    row = config_db(lab, "leaf-01")["DEVICE_METADATA"]["localhost"]
    assert (row["hostname"], row["hwsku"], row["platform"]) == ("leaf-01", "DS5000", "x86_64-cls_ds5000-r0")
    assert row["docker_routing_config_mode"] == "split-unified"
    assert row["frr_mgmt_framework_config"] == "true", "without it the BGP container starts no bfdd"
    assert row["bgp_asn"] == str(lab.switches["leaf-01"].asn)
    assert row["mac"] == lab.switches["leaf-01"].mac


def test_every_port_is_there_with_an_admin_status(xoc_256: Plan, config_db: ConfigDb) -> None:
    for name, switch in xoc_256.switches.items():
        rows = config_db(xoc_256, name)["PORT"]
        assert list(rows) == [port.interface for port in switch.ports]
        for port in switch.ports:
            assert rows[port.interface]["admin_status"] == ("up" if port.link else "down")
            assert rows[port.interface]["lanes"] == port.lanes
            assert rows[port.interface]["speed"] == str(port.speed * 1000)


def test_mtu_is_the_link_s_side(xoc_256: Plan, config_db: ConfigDb) -> None:
    for link in xoc_256.links.values():
        fabric = xoc_256.fabrics[link.fabric]
        if link.kind in (SERVER_LINK, FABRIC_LINK) and fabric.managed:
            mtu = config_db(xoc_256, link.b.device)["PORT"][link.b.interface]["mtu"]
            assert int(mtu) == (fabric.server_mtu if link.kind == SERVER_LINK else fabric.mtu)


def test_breakouts_cover_every_cage(lab: Plan, config_db: ConfigDb) -> None:
    rows = config_db(lab, "leaf-01")["BREAKOUT_CFG"]
    assert len(rows) == 66
    assert rows["Ethernet0"] == {"brkout_mode": "2x400G"}


def test_fabric_ports_are_unnumbered_or_numbered_as_the_fabric_says(
    lab: Plan, peers_apart: Plan, config_db: ConfigDb
) -> None:
    assert config_db(lab, "leaf-01")["INTERFACE"]["Ethernet256"] == {"ipv6_use_link_local_only": "enable"}
    rows = config_db(peers_apart, "leaf-01")["INTERFACE"]
    link = peers_apart.link_at["leaf-01", "Ethernet256"]
    assert rows["Ethernet256"] == {}
    assert rows[f"Ethernet256|{link.a.address}"] == {}


def test_server_ports_are_routed_in_their_tenant_s_vrf(xoc_256: Plan, config_db: ConfigDb) -> None:
    checked = 0
    for link in xoc_256.links.values():
        if link.kind == SERVER_LINK and link.tenant:
            rows = config_db(xoc_256, link.b.device)["INTERFACE"]
            assert rows[link.b.interface] == {"vrf_name": xoc_256.tenants[link.tenant].vrf}
            assert f"{link.b.interface}|{link.b.address}" in rows
            checked += 1
    assert checked > 100


def test_a_port_of_no_tenant_has_no_interface(peers_apart: Plan, config_db: ConfigDb) -> None:
    link = next(link for link in peers_apart.links.values() if link.a.device == "idle-001")
    db = config_db(peers_apart, link.b.device)
    assert link.b.interface in db["PORT"]
    assert not [key for key in db["INTERFACE"] if key.split("|")[0] == link.b.interface]


def test_gateway_links_sit_on_an_access_vlan(lab: Plan, config_db: ConfigDb) -> None:
    for link in lab.links.values():
        if link.kind != GATEWAY_LINK:
            continue
        db, vlan = config_db(lab, link.b.device), f"Vlan{link.vlan}"
        assert db["VLAN"][vlan]["vlanid"] == str(link.vlan)
        assert db["VLAN_MEMBER"][f"{vlan}|{link.b.interface}"] == {"tagging_mode": "untagged"}
        assert {vlan, f"{vlan}|{link.b.address}"} <= set(db["VLAN_INTERFACE"])
        assert link.b.interface not in db["INTERFACE"]


def test_each_vrf_has_one_svi_without_address_and_agreeing_vnis(xoc_256: Plan, config_db: ConfigDb) -> None:
    for name, switch in xoc_256.switches.items():
        db = config_db(xoc_256, name)
        assert set(db.get("VRF", {})) == set(switch.vrfs)
        for vrf in switch.vrfs:
            tenant = xoc_256.tenant_of_vrf[vrf]
            svis = [key for key, row in db["VLAN_INTERFACE"].items() if row.get("vrf_name") == vrf]
            assert svis == [f"Vlan{tenant.vlan}"]
            assert not [key for key in db["VLAN_INTERFACE"] if key.startswith(f"{svis[0]}|")]
            assert db["VRF"][vrf] == {"vni": str(tenant.vni)}
            row = db["VXLAN_TUNNEL_MAP"][f"vtep|map_{tenant.vni}_{svis[0]}"]
            assert row == {"vlan": svis[0], "vni": str(tenant.vni)}


def test_vteps_have_a_tunnel_and_spines_have_none(lab: Plan, config_db: ConfigDb) -> None:
    leaf, spine = config_db(lab, "leaf-01"), config_db(lab, "spine-01")
    assert leaf["VXLAN_TUNNEL"] == {"vtep": {"src_ip": lab.switches["leaf-01"].vtep}}
    assert leaf["VXLAN_EVPN_NVO"] == {"nvo1": {"source_vtep": "vtep"}}
    assert not {"VXLAN_TUNNEL", "VXLAN_EVPN_NVO", "VRF"} & set(spine)
    assert set(spine["LOOPBACK_INTERFACE"]) == {"Loopback0", f"Loopback0|{lab.switches['spine-01'].router_id}/32"}


def test_a_peer_without_ports_here_has_its_vrf_here(peers_apart: Plan, config_db: ConfigDb) -> None:
    assert set(config_db(peers_apart, "leaf-01")["VRF"]) == {"Vrf-acme", "Vrf-globex", "Vrf-storage"}


# ---------------------------------------------------------------------------------------------------------------- QoS


def test_no_rdma_no_qos(minimal: Plan, config_db: ConfigDb) -> None:
    tables = {"PORT_QOS_MAP", "PFC_WD", "BUFFER_PG", "BUFFER_POOL", "QUEUE", "DSCP_TO_TC_MAP", "CABLE_LENGTH"}
    for name in minimal.switches:
        assert not tables & set(config_db(minimal, name))


def test_classes_map_dscp_to_queue_and_group(lab: Plan, config_db: ConfigDb) -> None:
    db, qos = config_db(lab, "leaf-01"), lab.fabrics["fabric"].qos
    assert qos
    assert set(db["DSCP_TO_TC_MAP"]["AZURE"]) == {str(n) for n in range(64)}
    for item in qos.classes:
        for dscp in item.dscp:
            tc = db["DSCP_TO_TC_MAP"]["AZURE"][str(dscp)]
            assert db["TC_TO_QUEUE_MAP"]["AZURE"][tc] == str(item.queue)
            assert db["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"][tc] == (str(item.priority) if item.lossless else "0")


def test_pfc_and_watchdog_are_on_rdma_ports_only(lab: Plan, config_db: ConfigDb) -> None:
    db = config_db(lab, "leaf-01")
    rdma = {p.link for s in lab.servers.values() for p in s.ports if p.rdma}
    seen = set()
    for link in lab.links_of["leaf-01"]:
        name = link.end("leaf-01").interface
        lossless = link.kind == FABRIC_LINK or link.id in rdma
        seen.add(lossless)
        assert ("pfc_enable" in db["PORT_QOS_MAP"][name]) == lossless
        assert (name in db["PFC_WD"]) == lossless
        assert (f"{name}|3" in db["BUFFER_PG"]) == lossless
    assert seen == {True, False}


def test_lossless_groups_name_the_profile_that_the_buffer_manager_works_out(xoc_256: Plan, config_db: ConfigDb) -> None:
    db = config_db(xoc_256, "be-leaf-01")
    checked = 0
    for key, row in db["BUFFER_PG"].items():
        port, group = key.split("|")
        if group == "0":
            continue
        cable, speed = db["CABLE_LENGTH"]["AZURE"][port], db["PORT"][port]["speed"]
        assert row == {"profile": f"pg_lossless_{speed}_{cable}_profile"}
        assert group == "-".join(sorted({db["PORT_QOS_MAP"][port]["pfc_enable"]}))
        assert row["profile"] in db["BUFFER_PROFILE"]
        checked += 1
    assert checked == len(xoc_256.links_of["be-leaf-01"])


def test_cable_lengths_are_given_for_every_port_and_never_too_short(xoc_256: Plan, config_db: ConfigDb) -> None:
    cables = config_db(xoc_256, "be-leaf-01")["CABLE_LENGTH"]["AZURE"]
    switch = xoc_256.switches["be-leaf-01"]
    assert set(cables) == {port.interface for port in switch.ports}
    for port in switch.ports:
        if port.link:
            assert int(cables[port.interface].removesuffix("m")) >= xoc_256.links[port.link].length_m


def test_a_cable_longer_than_any_figure_is_an_input_error(lab: Plan) -> None:
    qos = lab.fabrics["fabric"].qos
    assert qos
    port = next(port for port in lab.switches["leaf-01"].ports if port.link)
    with pytest.raises(InputError, match=r"no headroom figure for 400G over 2000 m"):
        headroom(qos, port, 2000, "leaf-01")


def test_pools_are_carved_apart_and_nothing_may_hold_more_than_its_half(lab: Plan, config_db: ConfigDb) -> None:
    db, qos = config_db(lab, "leaf-01"), lab.fabrics["fabric"].qos
    assert qos
    pool = db["BUFFER_POOL"]["ingress_lossless_pool"]
    assert (pool["size"], pool["xoff"]) == (str(qos.pool_size), str(qos.pool_xoff))
    for profile in db["BUFFER_PROFILE"].values():
        assert not {"static_th", "dynamic_th"} <= set(profile)
        assert int(profile.get("static_th", 0)) <= qos.pool_size // 2


def test_a_faster_port_marks_as_much_later(lab: Plan, xoc_256: Plan, config_db: ConfigDb) -> None:
    db = config_db(lab, "leaf-01")
    by_speed = {
        int(db["PORT"][key.split("|")[0]]["speed"]): db["WRED_PROFILE"][row["wred_profile"]]
        for key, row in db["QUEUE"].items()
        if key.endswith("|3")
    }
    marks = {speed: (row["green_min_threshold"], row["green_max_threshold"]) for speed, row in by_speed.items()}
    assert marks == {200_000: ("131072", "262144"), 400_000: ("131072", "262144"), 800_000: ("262144", "524288")}
    for name in ("be-leaf-01", "be-spine-01"):
        db = config_db(xoc_256, name)
        assert set(db["WRED_PROFILE"]) == {"AZURE_KV", "AZURE_KV_800G"}
        uplink = next(link for link in xoc_256.links_of[name] if link.kind == FABRIC_LINK).end(name).interface
        assert db["QUEUE"][f"{uplink}|3"]["wred_profile"] == "AZURE_KV_800G"


def test_marks_scale_above_the_speed_they_are_said_for() -> None:
    kv = TrafficClass("kv", (26,), 3, 3, True, 60, 131072, 262144, 5, 400)
    assert [kv.marks(speed) for speed in (0, 100, 400)] == [(131072, 262144)] * 3
    assert kv.marks(800) == (262144, 524288)
    assert dataclasses.replace(kv, ecn_speed=800).marks(800) == (131072, 262144)
    assert dataclasses.replace(kv, ecn_speed=100).marks(400) == (524288, 1048576)


def test_strict_class_has_a_strict_scheduler(lab: Plan, config_db: ConfigDb) -> None:
    db = config_db(lab, "leaf-01")
    assert db["SCHEDULER"]["scheduler.cnp"] == {"type": "STRICT"}
    assert db["QUEUE"]["Ethernet0|6"] == {"scheduler": "scheduler.cnp"}
    assert db["QUEUE"]["Ethernet0|3"]["wred_profile"] in db["WRED_PROFILE"]


@given(st.sets(st.integers(0, 7)))
def test_runs_give_the_numbers_back(numbers: set[int]) -> None:
    written = runs(numbers)
    back = []
    for run in written:
        first, _, last = run.partition("-")
        back += list(range(int(first), int(last or first) + 1))
    assert back == sorted(numbers)
    assert all(int(a.split("-")[-1]) + 1 < int(b.split("-")[0]) for a, b in itertools.pairwise(written))


# --------------------------------------------------------------------------------------------------------------- text


def test_settings_reach_their_tables(lab: Plan) -> None:
    plan = dataclasses.replace(lab, settings={"ntp": ["10.0.0.1"], "syslog": ["10.0.0.2"], "dns": ["10.0.0.3"]})
    db = json.loads(sonic.render(plan, "leaf-01")["config_db.json"])
    server = {"association_type": "server", "iburst": "on", "resolve_as": "10.0.0.1"}
    assert db["NTP_SERVER"] == {"10.0.0.1": server}, "ntpd's template skips a server without resolve_as"
    assert db["SYSLOG_SERVER"] == {"10.0.0.2": {"vrf": "mgmt"}}
    assert db["DNS_NAMESERVER"] == {"10.0.0.3": {}}


def test_no_table_is_empty(lab: Plan, config_db: ConfigDb) -> None:
    assert all(config_db(lab, "spine-01").values())


_TEXT = st.text('aZ09|²é"\\\n\u2028', max_size=6)


@settings(max_examples=60)
@given(st.dictionaries(_TEXT, st.dictionaries(_TEXT, st.dictionaries(_TEXT, _TEXT | st.lists(_TEXT)), min_size=1)))
def test_the_writer_is_json_whatever_is_in_it(tables: dict[str, dict[str, dict[str, str | list[str]]]]) -> None:
    assert json.loads(config_db_text(tables)) == tables


def test_shared_rows_are_written_as_any_other() -> None:
    row = share({"a": "1", "b": ["2", "3"]})
    assert config_db_text({"T": {"x": row, "y": {"a": "1", "b": ["2", "3"]}}}).count('"2"') == 2


def test_rows_are_in_natural_order(lab: Plan) -> None:
    text = sonic.render(lab, "leaf-01")["config_db.json"]
    for table in ("PORT", "DEVICE_NEIGHBOR", "BUFFER_PG"):
        numbers = [int(key.split("|")[0].removeprefix("Ethernet")) for key in json.loads(text)[table]]
        assert numbers == sorted(numbers)
