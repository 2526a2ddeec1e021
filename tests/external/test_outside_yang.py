"""SONiC's YANG models over every shipped site's switches, and over what they must refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fabric.outside.yang import complaints
from fabric.outside.yang_tables import build_table_map, table_map
from fabric.resources import data_folder
from tests.conftest import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fabric.outside import Validator

pytestmark = pytest.mark.external

VALIDATOR = "yang"
SERVICES = """\
services:
  ntp: [192.0.2.1]
  dns: [192.0.2.3]
  syslog: [192.0.2.4]
  timezone: Europe/Berlin
  tacacs: {servers: [192.0.2.21, 192.0.2.22], key_env: TACACS_KEY}
  snmp: {community_env: SNMP_COMMUNITY, contact: noc@example.net, location: hall 1}
"""


@pytest.mark.parametrize("site", SHIPPED)
def test_every_switch_of_a_shipped_site_is_valid(
    site: str, validator: Validator, rendered: Callable[..., Path]
) -> None:
    folders = [path.parent for path in rendered(site, switches=True).glob("*/config_db.json")]
    assert folders
    assert [str(problem) for folder in folders for problem in validator.validate(folder, folder.name)] == []


def test_sonic_s_own_sample_is_valid(validator: Validator, external_data: Path) -> None:
    assert complaints((external_data / "sample_config_db.json").read_text()) == []


def test_the_table_map_is_what_the_models_say(validator: Validator, external_data: Path) -> None:
    assert build_table_map(external_data / "sonic-yang") == table_map()


def _set(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(db: dict[str, Any]) -> None:
        at = db
        for step in path[:-1]:
            at = at.setdefault(step, {})
        at[path[-1]] = value

    return change


def _drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(db: dict[str, Any]) -> None:
        at = db
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


MUTATIONS = {
    "unknown table": _set("NONSENSE", "x", value={}),
    "unknown field": _set("PORT", "Ethernet0", "colour", value="red"),
    "mtu out of range": _set("PORT", "Ethernet0", "mtu", value="90000"),
    "lanes missing": _drop("PORT", "Ethernet0", "lanes"),
    "device type": _set("DEVICE_METADATA", "localhost", "type", value="leaf"),
    "VRF that is not there": _set("INTERFACE", "Ethernet0", "vrf_name", value="Vrf-nobody"),
    "VRF name too long": _set("VRF", "Vrf-this-is-too-long", value={"vni": "99"}),
    "vlanid disagrees": _set("VLAN", "Vlan3000", "vlanid", value="3001"),
    "second NVO": _set("VXLAN_EVPN_NVO", "nvo2", value={"source_vtep": "vtep"}),
    "address without its interface": _set("INTERFACE", "Ethernet500|10.9.9.0/31", value={}),
    "priority 9": _set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", value="9"),
    "map that is not there": _set("PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", value="OTHER"),
    "WRED upside down": _set("WRED_PROFILE", "AZURE_KV", "green_max_threshold", value="1"),
    "watchdog quicker than its poll": _set("PFC_WD", "Ethernet0", "detection_time", value="100"),
    "scheduler weight 0": _set("SCHEDULER", "scheduler.kv", "weight", value="0"),
    "buffer profile that is not there": _set("BUFFER_PG", "Ethernet0|3", "profile", value="pg_lossless_1_1m_profile"),
    "cable length in feet": _set("CABLE_LENGTH", "AZURE", "Ethernet0", value="5ft"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_the_models_must_refuse(name: str, validator: Validator, rendered: Callable[..., Path]) -> None:
    db = json.loads((rendered("lab", switches=True) / "leaf-01/config_db.json").read_text())
    assert complaints(json.dumps(db)) == []
    MUTATIONS[name](db)
    assert complaints(json.dumps(db))


def test_complaints_of_one_file_do_not_stay_for_the_next(validator: Validator, rendered: Callable[..., Path]) -> None:
    text = (rendered("lab", switches=True) / "leaf-01/config_db.json").read_text()
    assert complaints(text.replace('"mtu": "9100"', '"mtu": "1"', 1))
    assert complaints(text) == []


def test_what_is_no_json_is_a_complaint(validator: Validator) -> None:
    assert complaints("{")


def test_the_site_s_services_and_its_own_tables_are_valid(
    validator: Validator, rendered: Callable[..., Path], tmp_path: Path
) -> None:
    for file in (data_folder("inventories") / "lab").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "services.yaml").write_text(SERVICES)
    (tmp_path / "config_db").mkdir()
    (tmp_path / "config_db/all.yaml").write_text(
        'SSH_SERVER: {POLICIES: {authentication_retries: "3"}}\nFEATURE: {telemetry: {state: enabled}}\n'
    )
    db = json.loads((rendered(str(tmp_path), switches=True) / "leaf-01/config_db.json").read_text())
    assert {"NTP_SERVER", "SYSLOG_SERVER", "DNS_NAMESERVER", "TACPLUS_SERVER", "SNMP", "SSH_SERVER"} <= db.keys()
    assert complaints(json.dumps(db)) == []
    assert complaints(json.dumps(db | {"NTP": {"global": {"src_intf": "eth1"}}})), (
        "one string is still held to the leaf-list"
    )
    # what secrets.sh adds, and what happens when it would turn logins on before there is a key
    db |= {"AAA": {"authentication": {"login": "tacacs+,local"}}, "SNMP_COMMUNITY": {"r3ad": {"TYPE": "RO"}}}
    assert any("passkey" in text for text in complaints(json.dumps(db)))
    assert complaints(json.dumps(db | {"TACPLUS": {"global": {"passkey": "k3y"}}})) == []
    db["SSH_SERVER"]["POLICIES"]["authentication_retries"] = "101"
    assert complaints(json.dumps(db)), "a site's own table is held to the models too"
