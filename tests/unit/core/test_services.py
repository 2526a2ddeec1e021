"""What a site's switches need on day 0, and a site's own CONFIG_DB tables: rendered, or refused at their line."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from fabric.build import load_plan, plan_site
from fabric.inventory.own_tables import OF_SERVICES, OWNED, SHARED
from fabric.problem import InputError
from fabric.render.registry import render_site
from fabric.render.sonic_base import _COUNTERS
from fabric.resources import data_folder
from tests.conftest import SHIPPED, run_cli

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.problem import Problem

pytestmark = pytest.mark.unit

SERVICES = """\
services:
  ntp: [192.0.2.1, 192.0.2.2]
  dns: [192.0.2.3]
  syslog: [192.0.2.4]
  timezone: Europe/Berlin
  tacacs: {servers: [192.0.2.21, 192.0.2.22], key_env: TACACS_KEY}
  snmp: {community_env: SNMP_COMMUNITY, contact: noc@example.net}
racks:
  a01: {devices: leaf-01}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in (data_folder("inventories") / "lab").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "services.yaml").write_text(SERVICES)
    (tmp_path / "config_db").mkdir()
    return tmp_path


def leaf(folder: Path, device: str = "leaf-01") -> dict[str, str]:
    return dict(render_site(load_plan(folder), [device]))[device]


def tables(folder: Path, device: str = "leaf-01") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(leaf(folder, device)["config_db.json"])
    return found


def refused(folder: Path) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        plan_site(folder)
    return list(caught.value.problems)


def test_services_become_tables_in_the_management_vrf(folder: Path) -> None:
    db = tables(folder)
    address = db["MGMT_INTERFACE"].popitem()[0].split("|")[1].split("/")[0]
    assert db["NTP"]["global"] == {"vrf": "mgmt", "src_intf": "eth0", "admin_state": "enabled"}
    assert list(db["NTP_SERVER"]) == ["192.0.2.1", "192.0.2.2"]
    assert db["SYSLOG_SERVER"] == {"192.0.2.4": {"vrf": "mgmt"}}
    assert db["DNS_NAMESERVER"] == {"192.0.2.3": {}}
    assert db["DEVICE_METADATA"]["localhost"]["timezone"] == "Europe/Berlin"
    assert [db["TACPLUS_SERVER"][s]["priority"] for s in ("192.0.2.21", "192.0.2.22")] == ["2", "1"], "first is best"
    assert db["SNMP"] == {"CONTACT": {"Contact": "noc@example.net"}, "LOCATION": {"Location": "a01"}}
    assert db["SNMP_AGENT_ADDRESS_CONFIG"] == {f"{address}|161|mgmt": {}}
    assert "LOCATION" not in tables(folder, "leaf-02")["SNMP"], "it stands in no rack"


def test_logins_by_tacacs_wait_for_the_key(folder: Path) -> None:
    db = tables(folder)
    assert not {"AAA", "TACPLUS", "SNMP_COMMUNITY"} & db.keys()
    assert "secrets.sh" in leaf(folder)
    (folder / "services.yaml").write_text("services: {ntp: [192.0.2.1]}\n")
    assert "secrets.sh" not in leaf(folder)


# CONFIG_DB's communities are files here, named like their rows and holding their type
_DOUBLE = """#!/bin/sh
name=$(basename "$0")
echo "$name $*" >> "$LOG"
cd "$DB"
case "$name $2 $3" in
    "sonic-db-cli KEYS "*) ls ;;
    "sonic-db-cli HGET "*) cat "$3" ;;
    "sonic-db-cli DEL "*) rm "$3" ;;
    "config community add") case "$4" in *@*) exit 2 ;; esac; [ ! -e "SNMP_COMMUNITY|$4" ] && echo "$5" > "SNMP_COMMUNITY|$4" ;;
esac
"""
_SECRETS = {"TACACS_KEY": "k3y $x", "SNMP_COMMUNITY": "r3ad $(x)"}


class _SwitchDouble:
    """A folder with what `secrets.sh` finds on a switch, and the programs that it calls."""

    def __init__(self, root: Path, script: str, communities: dict[str, str]) -> None:
        self.log, self.db, self.yml, programs = root / "log", root / "db", root / "snmp.yml", root / "bin"
        self.script = root / "secrets.sh"
        self.script.write_text(script.replace("/etc/sonic/snmp.yml", str(self.yml)))
        programs.mkdir()
        for name in ("config", "sonic-db-cli", "systemctl"):
            (programs / name).write_text(_DOUBLE)
            (programs / name).chmod(0o755)
        self.db.mkdir()
        for community, access in communities.items():
            (self.db / f"SNMP_COMMUNITY|{community}").write_text(f"{access}\n")
        self.env = {"PATH": f"{programs}:{os.environ['PATH']}", "LOG": str(self.log), "DB": str(self.db)}

    def run(self, secrets: dict[str, str]) -> subprocess.CompletedProcess[str]:
        self.log.unlink(missing_ok=True)
        command = ["sh", str(self.script)]
        return subprocess.run(command, env=self.env | secrets, capture_output=True, text=True, check=False)

    def said(self) -> list[str]:
        return self.log.read_text().splitlines()

    def communities(self) -> dict[str, str]:
        return {path.name.partition("|")[2]: path.read_text().strip() for path in self.db.iterdir()}


def _restarts(said: list[str]) -> list[str]:
    return [line for line in said if "restart snmp" in line or "community add" in line]


def test_secrets_script_sets_what_the_environment_holds_and_twice_is_once(folder: Path, tmp_path: Path) -> None:
    switch = _SwitchDouble(tmp_path, leaf(folder)["secrets.sh"], {})
    without = switch.run({})
    assert without.returncode
    assert "TACACS_KEY" in without.stderr
    assert not switch.log.exists(), "nothing is done by halves"
    for turn in range(2):
        done = switch.run(_SECRETS)
        assert done.returncode == 0, done.stderr
        assert "k3y" not in done.stdout
        assert "r3ad" not in done.stdout
        said = switch.said()
        assert said.count("config tacacs passkey k3y $x") == 1
        assert said.index("config tacacs passkey k3y $x") < said.index("config aaa authentication login tacacs+ local")
        assert len(_restarts(said)) == (0 if turn else 1)
        assert switch.communities() == {"r3ad $(x)": "RO"}


@pytest.mark.parametrize(
    ("held", "restarts"),
    [
        ({"public": "RO"}, 1),
        ({"public": "RO", "private": "RW", "r3ad $(x)": "RO"}, 1),
        ({"r3ad $(x)": "RW"}, 1),
        ({"r3ad $(x)": "RO"}, 0),
    ],
)
def test_secrets_script_leaves_no_other_community(
    folder: Path, tmp_path: Path, held: dict[str, str], restarts: int
) -> None:
    switch = _SwitchDouble(tmp_path, leaf(folder)["secrets.sh"], held)
    done = switch.run(_SECRETS)
    assert done.returncode == 0, done.stderr
    assert switch.communities() == {"r3ad $(x)": "RO"}
    assert len(_restarts(switch.said())) == restarts
    assert not (tmp_path / "snmp.yml").exists(), "an image without the file does not get one"


def test_secrets_script_says_when_sonic_refuses_the_community(folder: Path, tmp_path: Path) -> None:
    switch = _SwitchDouble(tmp_path, leaf(folder)["secrets.sh"], {"public": "RO"})
    done = switch.run(_SECRETS | {"SNMP_COMMUNITY": "r3ad@x"})
    assert done.returncode == 1
    assert "SONiC does not take SNMP_COMMUNITY (32 characters at most" in done.stderr
    assert "r3ad" not in done.stderr
    assert switch.communities() == {}, "nobody is better than public"


def test_secrets_script_keeps_public_from_coming_back(folder: Path, tmp_path: Path) -> None:
    switch = _SwitchDouble(tmp_path, leaf(folder)["secrets.sh"], {})
    switch.yml.write_text(
        "# image\nsnmp_rocommunity: public\nsnmp_rocommunities:\n- public\n  - x\nsnmp_location: public\nsnmp_rwcommunity: w\n"
    )
    assert switch.run(_SECRETS).returncode == 0
    assert switch.yml.read_text() == "# image\nsnmp_location: public\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("[192.0.2.1, 192.0.2.2]", "[time.example.net]", 2, "not an IPv4 address"),
        ("[192.0.2.1, 192.0.2.2]", "[192.0.2.1, 192.0.2.1]", 2, "given twice"),
        ("[192.0.2.3]", "[192.0.2.3, 192.0.2.4, 192.0.2.5, 192.0.2.6]", 3, "SONiC takes 3 at most"),
        ("Europe/Berlin", "Europe/Berlinn", 5, "not a time zone"),
        ("key_env: TACACS_KEY", "key: s3cret-key", 6, "did you mean 'key_env'"),
        ("key_env: TACACS_KEY", "key_env: s3cret-key", 6, "not the name of an environment variable"),
        ("servers: [192.0.2.21, 192.0.2.22]", "servers: []", 6, "at least 1"),
        ("ntp:", "ntpd:", 2, "did you mean 'ntp'"),
    ],
)
def test_a_bad_value_is_named_with_its_line(folder: Path, old: str, new: str, line: int, says: str) -> None:
    (folder / "services.yaml").write_text(SERVICES.replace(old, new))
    found = refused(folder)
    assert any(p.line == line and p.file.endswith("services.yaml") and says in f"{p.text} {p.fix}" for p in found), (
        found
    )
    assert "s3cret" not in " ".join(map(str, found)), "what was written there may be the secret"


def test_own_tables_of_all_of_a_kind_and_of_one_switch_come_together(folder: Path) -> None:
    (folder / "config_db/all.json").write_text(
        '{"BANNER_MESSAGE": {"global": {"state": "enabled"}}, "FEATURE": {"telemetry": {"state": "enabled"}}}'
    )
    (folder / "config_db/leaf.yaml").write_text('BANNER_MESSAGE: {global: {login: "ask first"}}\n')
    (folder / "config_db/leaf-02.yaml").write_text("SSH_SERVER: {POLICIES: {authentication_retries: '3'}}\n")
    assert tables(folder)["BANNER_MESSAGE"] == {"global": {"state": "enabled", "login": "ask first"}}
    assert tables(folder, "spine-01")["BANNER_MESSAGE"] == {"global": {"state": "enabled"}}
    assert {"bgp", "lldp", "telemetry"} == tables(folder)["FEATURE"].keys()
    assert "SSH_SERVER" not in tables(folder)
    assert "SSH_SERVER" in tables(folder, "leaf-02")


@pytest.mark.parametrize(
    ("file", "text", "rule", "says"),
    [
        ("all.json", '{"PORT": {"Ethernet0": {"mtu": "1500"}}}', "owned", "kvfabric writes PORT"),
        ("all.json", '{"": {"a": {"b": "c"}}}', "shape", "a table needs a name"),
        ("all.json", '{"A|B": {"a": {"b": "c"}}}', "shape", "a table needs a name"),
        ("all.json", '{"A": {"a\\nb": {"b": "c"}}}', "shape", "a row needs a name"),
        ("all.json", '{"A": {"a": {"": "c"}}}', "shape", "a field needs a name"),
        ("all.json", '{"A": {"a": {"b": "\\u0000"}}}', "shape", "must be text"),
        ("all.json", '{"NTP_SERVER": {"192.0.2.9": {}}}', "owned", "services.ntp"),
        ("all.json", '{"AAA": {"authentication": {"login": "local"}}}', "owned", "services.tacacs"),
        ("all.json", '{"FEATURE": {"bgp": {"state": "disabled"}}}', "owned", "row bgp"),
        ("all.json", '{"BGP_NEIGHBOR": {"192.0.2.9": {}}}', "routing", "frr.conf"),
        ("all.json", '{"RADIUS": {"global": {"passkey": "s3cret"}}}', "secret", "no place in a file"),
        ("all.json", '{"NTP_KEY": {"1": {"value": "s3cret"}}}', "secret", "no place in a file"),
        ("all.json", '{"CRM": ["Config"]}', "shape", "map of rows"),
        ("all.json", '{"CRM": {"Config": "x"}}', "shape", "map of fields"),
        ("all.yaml", "CRM: {Config: {polling_interval: 300}}", "shape", "must be text"),
        ("all.yaml", "CRM: {Config: {x: on}}", "shape", "must be text"),
        ("leef.json", "{}", "scope", "did you mean leaf.json"),
        ("gw-01.json", "{}", "scope", "no SONiC switch"),
        ("all.txt", "{}", "scope", ".json or .yaml"),
    ],
)
def test_what_a_site_cannot_have_of_its_own(folder: Path, file: str, text: str, rule: str, says: str) -> None:
    (folder / "config_db" / file).write_text(text)
    found = refused(folder)
    assert [p.rule for p in found] == [f"config-db.{rule}"], found
    assert (found[0].file, found[0].line) == (str(folder / "config_db" / file), 1)
    assert says in f"{found[0].text} {found[0].fix}"
    assert "s3cret" not in str(found[0])


def test_a_field_from_two_files_is_an_error_that_names_both(folder: Path) -> None:
    (folder / "config_db/all.yaml").write_text("CRM:\n  Config:\n    polling_interval: '300'\n")
    (folder / "config_db/leaf-01.yaml").write_text("# one\nCRM:\n  Config:\n    polling_interval: '300'\n")
    (folder / "config_db/leaf.yaml").write_text("CRM:\n  Config: {}\n")
    found = refused(folder)
    assert [(p.rule, p.line, p.field) for p in found] == [("config-db.twice", 4, "CRM.Config.polling_interval")]
    assert "config_db/all.yaml:3" in found[0].text


def test_broken_json_is_an_input_error_with_its_line(folder: Path) -> None:
    (folder / "config_db/all.json").write_text('{"CRM":\n {"Config": {]}}\n')
    assert [(p.rule, p.line) for p in refused(folder)] == [("inventory.yaml", 2)]


def test_no_table_that_is_rendered_can_be_a_site_s_own(folder: Path) -> None:
    assert SHARED["FLEX_COUNTER_TABLE"] == _COUNTERS.keys()
    of_services = {table for names in OF_SERVICES.values() for table in names}
    seen: set[str] = set()
    for site in (*SHIPPED, str(folder)):
        plan = load_plan(site)
        kinds = {s.kind: s.name for s in plan.switches.values() if s.managed and s.nos == "sonic"}
        for _, files in render_site(plan, kinds.values()):
            db = json.loads(files["config_db.json"])
            seen |= db.keys()
            assert db.keys() <= OWNED | SHARED.keys() | of_services
            assert set(db["FEATURE"]) == SHARED["FEATURE"]
    assert seen >= OWNED, "and none is reserved for nothing"


def test_a_new_site_shows_the_services_and_works_with_them(tmp_path: Path) -> None:
    made = run_cli("new", "berlin", "--size", "xoc-64", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    site = tmp_path / "berlin/site.yaml"
    text = site.read_text()
    assert "\n# services: {" in text
    site.write_text(text.replace("\n# services: {", "\nservices: {"))
    assert {"NTP_SERVER", "DNS_NAMESERVER", "SYSLOG_SERVER"} <= tables(tmp_path / "berlin", "be-leaf-01").keys()


def test_a_file_in_the_place_of_the_folder_is_said(folder: Path) -> None:
    (folder / "config_db").rmdir()
    (folder / "config_db").write_text("{}")
    with pytest.raises(InputError, match=r"config_db:1: error: .* is a file"):
        plan_site(folder)
