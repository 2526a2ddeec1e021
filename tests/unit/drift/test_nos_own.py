"""A switch that adds its image's own defaults to what it was given has not drifted; one that adds anything else has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fabric.build import load_plan
from fabric.render.registry import render_site
from fabric.resources import data_folder
from validators.drift import config_db

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

SITE = """\
services:
  ntp: [192.0.2.1]
  syslog: [192.0.2.4]
  dns: [192.0.2.3]
  tacacs: {servers: [192.0.2.21], key_env: TACACS_KEY}
  snmp: {community_env: SNMP_COMMUNITY, contact: noc@example.net}
"""
# one field or row of each table that an image fills, so that the image has something to add to each
OWN = {
    "AUTO_TECHSUPPORT": {"GLOBAL": {"state": "disabled"}},
    "AUTO_TECHSUPPORT_FEATURE": {"bgp": {"state": "disabled"}},
    "BANNER_MESSAGE": {"global": {"state": "enabled", "login": "authorised people only"}},
    "CRM": {"Config": {"polling_interval": "60"}},
    "FEATURE": {"telemetry": {"state": "enabled"}},
    "KDUMP": {"config": {"enabled": "true"}},
    "LOGGER": {"orchagent": {"LOGLEVEL": "INFO"}},
    "PASSW_HARDENING": {"POLICIES": {"state": "enabled"}},
    "SYSLOG_CONFIG": {"GLOBAL": {"rate_limit_burst": "100"}},
    "SYSLOG_CONFIG_FEATURE": {"swss": {"rate_limit_burst": "100"}},
}
_FEATURE = {
    "state": "enabled", "delayed": "False", "has_global_scope": "False", "has_per_asic_scope": "True",
    "auto_restart": "enabled", "support_syslog_rate_limit": "true", "check_up_status": "false", "set_owner": "local",
    "high_mem_alert": "disabled",
}  # fmt: skip
_COUNTERS = (
    "ACL", "PORT", "RIF", "QUEUE", "PFCWD", "PG_WATERMARK", "PG_DROP", "QUEUE_WATERMARK", "BUFFER_POOL_WATERMARK",
    "PORT_BUFFER_DROP", "WRED_ECN_QUEUE",
)  # fmt: skip
_FEATURES = ("bgp", "database", "lldp", "pmon", "snmp", "swss", "syncd", "teamd", "telemetry", "gnmi")
# the tables, rows and fields of an image's init_cfg.json (sonic-buildimage, files/build_templates/init_cfg.json.j2)
DEFAULTS: dict[str, dict[str, dict[str, str]]] = {
    "DEVICE_METADATA": {
        "localhost": {
            "buffer_model": "traditional", "synchronous_mode": "enable", "default_bgp_status": "up",
            "default_pfcwd_status": "disable", "timezone": "UTC",
        }
    },
    "CRM": {
        "Config": {
            "polling_interval": "300", "ipv4_route_threshold_type": "percentage", "acl_counter_low_threshold": "70",
            "mpls_nexthop_high_threshold": "85",
        }
    },
    "FLEX_COUNTER_TABLE": {
        name: {"FLEX_COUNTER_STATUS": "enable", "FLEX_COUNTER_DELAY_STATUS": "true"} for name in _COUNTERS
    },
    "BGP_DEVICE_GLOBAL": {"STATE": {"tsa_enabled": "false", "idf_isolation_state": "unisolated"}},
    "FEATURE": dict.fromkeys(_FEATURES, _FEATURE),
    "AUTO_TECHSUPPORT": {
        "GLOBAL": {
            "state": "enabled", "rate_limit_interval": "180", "max_techsupport_limit": "10.0", "max_core_limit": "5.0",
            "available_mem_threshold": "10.0", "min_available_mem": "200", "since": "2 days ago",
        }
    },
    "AUTO_TECHSUPPORT_FEATURE": {
        name: {"state": "enabled", "rate_limit_interval": "600", "available_mem_threshold": "10.0"} for name in _FEATURES
    },
    "SYSLOG_CONFIG": {"GLOBAL": {"rate_limit_interval": "0", "rate_limit_burst": "0"}},
    "SYSLOG_CONFIG_FEATURE": {
        name: {"rate_limit_interval": "300", "rate_limit_burst": "20000"} for name in _FEATURES
    },
    "PASSW_HARDENING": {
        "POLICIES": {
            "state": "disabled", "expiration": "180", "expiration_warning": "15", "history_cnt": "10", "len_min": "8",
            "reject_user_passw_match": "true", "lower_class": "true", "upper_class": "true", "digits_class": "true",
            "special_class": "true",
        }
    },
    "BANNER_MESSAGE": {"global": {"state": "disabled", "login": "Debian", "motd": "You are on SONiC", "logout": ""}},
    "SYSTEM_DEFAULTS": {"mux_tunnel_egress_acl": {"status": "disabled"}},
    "KDUMP": {"config": {"enabled": "false", "memory": "0M-2G:256M", "num_dumps": "3"}},
    "NTP": {
        "global": {
            "authentication": "disabled", "dhcp": "enabled", "server_role": "disabled", "src_intf": "eth0",
            "admin_state": "enabled", "vrf": "default",
        }
    },
    # not of init_cfg: snmp.yml's location, daemons' loggers, the migrator's version
    "SNMP": {"LOCATION": {"Location": "public"}},
    "SNMP_COMMUNITY": {"public": {"TYPE": "RO"}},
    "LOGGER": {name: {"LOGLEVEL": "NOTICE", "LOGOUTPUT": "SYSLOG"} for name in ("orchagent", "portsyncd")},
    "VERSIONS": {"DATABASE": {"VERSION": "version_202511_01"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The config_db.json of every switch of the lab site, with services and own tables."""
    folder: Path = tmp_path_factory.mktemp("site")
    for file in (data_folder("inventories") / "lab").glob("*.yaml"):
        (folder / file.name).write_text(file.read_text())
    (folder / "services.yaml").write_text(SITE)
    (folder / "config_db").mkdir()
    (folder / "config_db/all.json").write_text(json.dumps(OWN))
    plan = load_plan(folder)
    return {
        name: json.loads(files["config_db.json"])
        for name, files in render_site(plan, list(plan.switches))
        if "config_db.json" in files
    }


def on_switch(given: dict[str, Any]) -> dict[str, Any]:
    """What CONFIG_DB holds after the file was loaded: the image's defaults under it, row by row, and the ports' own."""
    tables = {
        table: {key: DEFAULTS.get(table, {}).get(key, {}) | given.get(table, {}).get(key, {}) for key in keys}
        for table in given.keys() | DEFAULTS.keys()
        for keys in [given.get(table, {}).keys() | DEFAULTS.get(table, {}).keys()]
    }
    tables["PORT"] = {name: row | {"dhcp_rate_limit": "300"} for name, row in tables["PORT"].items()}
    return tables


def differences(given: dict[str, Any], held: dict[str, Any]) -> list[str]:
    wanted, seen = config_db.parse(json.dumps(given)), config_db.parse(json.dumps(held))
    return [f"{one.place}: {one.text}" for one in config_db.differences(wanted, seen)]


def test_what_an_image_adds_by_itself_is_no_drift(rendered: dict[str, Any]) -> None:
    assert {"leaf-01", "spine-01"} <= rendered.keys()
    for given in rendered.values():
        assert OWN.keys() | {"NTP", "SNMP"} <= given.keys()
        assert "LOCATION" not in given["SNMP"]
        assert differences(given, on_switch(given)) == []


@pytest.mark.parametrize(
    ("table", "key", "field", "value", "says"),
    [
        ("NTP", "global", "vrf", "default", "NTP|global vrf: is default, rendered was mgmt"),
        ("NTP", "global", "colour", "red", "NTP|global colour: is red, and was not rendered"),
        ("NTP_SERVER", "198.51.100.9", "iburst", "on", "NTP_SERVER|198.51.100.9: is there, and was not rendered"),
        ("SNMP", "CONTACT", "Contact", "x", "SNMP|CONTACT Contact: is x, rendered was noc@example.net"),
        ("BANNER_MESSAGE", "global", "login", "hi", "BANNER_MESSAGE|global login: is hi, rendered was authorised people only"),
        ("KDUMP", "config", "remote", "true", "KDUMP|config remote: is true, and was not rendered"),
        ("FEATURE", "bgp", "state", "disabled", "FEATURE|bgp state: is disabled, rendered was enabled"),
        ("FLEX_COUNTER_TABLE", "PORT", "POLL_INTERVAL", "9", "FLEX_COUNTER_TABLE|PORT POLL_INTERVAL: is 9, rendered was 1000"),
        ("PORT", "Ethernet0", "link_training", "on", "PORT|Ethernet0 link_training: is on, and was not rendered"),
    ],
)  # fmt: skip
def test_what_somebody_changed_is_drift_beside_them(
    rendered: dict[str, Any], table: str, key: str, field: str, value: str, says: str
) -> None:
    given = rendered["leaf-01"]
    held = on_switch(given)
    held[table] = held[table] | {key: held[table].get(key, {}) | {field: value}}
    assert differences(given, held) == [says]


def test_a_rendered_location_is_compared(rendered: dict[str, Any]) -> None:
    given = rendered["leaf-01"]
    given = given | {"SNMP": given["SNMP"] | {"LOCATION": {"Location": "a01"}}}
    held = on_switch(given)
    held["SNMP"]["LOCATION"] = {"Location": "public"}
    assert differences(given, held) == ["SNMP|LOCATION Location: is public, rendered was a01"]
