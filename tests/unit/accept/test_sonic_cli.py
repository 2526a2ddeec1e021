"""Enterprise SONiC's own shell: what it prints is read, and what it cannot be asked is skipped, never green."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabric.build import load_plan
from fabric.plan import Plan
from tests.unit.accept import sonic_cli as said
from validators.cabling.lldp import Neighbour, parse_lldp
from validators.cabling.port_state import PortState, parse_speeds
from validators.catalog import Selection
from validators.check import judged
from validators.control_plane.check_sessions import BgpSessions
from validators.control_plane.expected import sessions
from validators.control_plane.frr_json import bgp_peers
from validators.counters.readings import PAUSE, Key
from validators.counters.sonic import pfc_counters
from validators.devices.answers import Answer, UnreadableError, unasked
from validators.devices.dialects import DIALECTS, SONIC, SONIC_CLI
from validators.drift.checks import ConfigDrift
from validators.optics.parse import parse_light
from validators.preflight.checks import DeviceAnswers
from validators.results import State
from validators.runner_acceptance import Acceptance, accept

pytestmark = pytest.mark.unit
BGP = f"# show bgp ipv4 unicast summary\n{said.BGP_IPV4}\n# show bgp l2vpn evpn summary\n{said.BGP_EVPN}"


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan("lab")


def test_lldp_neighbours_are_read_from_blocks() -> None:
    assert parse_lldp(said.LLDP) == [
        Neighbour("Ethernet256", "spine-01", ("Ethernet0", "to_leaf-01")),
        # a MAC as port id says nothing that a person could look for
        Neighbour("Ethernet264", "spine-02", ("Eth1/1", "50:0a:00:03:00:01")),
    ]
    assert parse_lldp(said.NO_LLDP) == []


def test_the_blocks_of_lldpctl_are_read_too() -> None:
    text = "Interface:    Ethernet0, via: LLDP, RID: 1\n  ChassisID:    mac 02:00\n  PortID:       ifname be0-port0\n"
    assert parse_lldp(text) == [Neighbour("Ethernet0", "mac 02:00", ("be0-port0",))]


def test_a_table_whose_rule_is_one_line_is_not_taken_for_no_neighbours() -> None:
    with pytest.raises(UnreadableError, match="show lldp neighbor"):
        parse_lldp(said.LLDP_TABLE)


def test_port_states_are_read_with_descriptions_of_several_words_and_both_names() -> None:
    ports = parse_speeds(said.STATUS)
    assert ports["Ethernet0"] == ports["Eth1/1/1"] == PortState(True, 400, 9100)
    assert ports["Ethernet4"] == PortState(False, 0, 9100)
    assert parse_speeds(said.OLD_STATUS) == {"Ethernet0": PortState(False, 100, 9100)}
    with pytest.raises(UnreadableError, match="no rows"):
        parse_speeds("\n".join(said.STATUS.splitlines()[:3]))


def test_bgp_neighbours_have_their_state_in_each_family() -> None:
    peers = bgp_peers(BGP)
    up = {"state": "Established", "remoteAs": 65100, "peerUptime": "1d01h43m"}
    assert peers["Ethernet256"] == {"ipv4Unicast": up, "l2VpnEvpn": up}
    assert peers["Ethernet264"]["ipv4Unicast"]["state"] == "Active"
    assert peers["172.30.20.1"]["ipv4Unicast"]["remoteAs"] == 4200000001


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (said.BGP_EVPN, "% BGP is not running", "has no table of neighbours"),
        ("4200000001 39398", "420000000139398", "is no row of a neighbour"),
        ("Ethernet264", "Eth1/33/1", "interface-naming standard"),
    ],
)
def test_a_summary_that_cannot_be_trusted_is_not_read(old: str, new: str, text: str) -> None:
    with pytest.raises(UnreadableError, match=text):
        bgp_peers(BGP.replace(old, new))


def test_pause_frames_are_read_by_direction_and_the_watchdogs_table_is_left_alone() -> None:
    counters = pfc_counters(said.PFC)
    assert counters[Key("Ethernet0", PAUSE, "rx", 3)] == 129
    assert counters[Key("Ethernet0", PAUSE, "tx", 3)] == 7
    assert {key.port for key in counters} == {"CPU", "Ethernet0"}


def test_light_is_read_by_lane() -> None:
    dark = float("-inf")
    assert parse_light(said.DOM) == {"Ethernet0": [], "Ethernet12": [dark, -2.5], "Ethernet80": [-3.9794, -2.2790]}


def answered(**questions: Answer) -> dict[str, dict[str, dict[str, str]]]:
    answers = {name: answer.to_dict() for name, answer in questions.items()}
    found: dict[str, dict[str, dict[str, str]]] = json.loads(json.dumps({"leaf-01": answers}))
    return found


def test_a_switch_is_judged_by_its_summaries(plan: Plan) -> None:
    (inputs,) = [case for case in BgpSessions.cases(plan) if case.device == "leaf-01"]  # type: ignore[attr-defined]
    rows = {session.neighbour: session.asn for session in sessions(plan, "leaf-01")}
    table = said.BGP_IPV4.splitlines()[:2]
    table += [f"{name:16}4   {asn:<10}1  1  0  0  00:01:00  5" for name, asn in rows.items()]
    text = "\n".join(["# show bgp ipv4 unicast summary", *table, "# show bgp l2vpn evpn summary", *table])
    good = judged(BgpSessions(), plan, inputs, answered(bgp=Answer(text)))
    assert good.state is State.PASS, good.text
    bad = judged(BgpSessions(), plan, inputs, answered(bgp=Answer(text.replace("00:01:00  5", "never  IDLE", 1))))
    assert bad.state is State.FAIL
    assert "BGP ipv4Unicast to spine-01 is Idle, not Established" in bad.text


def test_what_cannot_be_asked_is_skipped_with_the_reason_and_what_failed_is_an_error(plan: Plan) -> None:
    (inputs,) = [case for case in ConfigDrift.cases(plan) if case.device == "leaf-01"]  # type: ignore[attr-defined]
    version = Answer(said.VERSION)
    result = judged(ConfigDrift(), plan, inputs, answered(config=unasked(SONIC_CLI, "config"), version=version))
    assert result.state is State.SKIPPED
    assert "sonic-cli has no command for 'config'" in result.text
    result = judged(ConfigDrift(), plan, inputs, answered(config=Answer(error="session lost"), version=version))
    assert result.state is State.ERROR


def test_a_device_answers_with_its_version(plan: Plan) -> None:
    (inputs,) = [case for case in DeviceAnswers.cases(plan) if case.device == "leaf-01"]  # type: ignore[attr-defined]
    assert judged(DeviceAnswers(), plan, inputs, answered(version=Answer(said.VERSION))).state is State.PASS


def test_sonic_cli_is_asked_a_part_of_what_a_shell_is() -> None:
    assert set(DIALECTS[SONIC_CLI]) == {"version", "lldp", "port-speeds", "bgp", "pfc", "optics"}
    assert set(DIALECTS[SONIC_CLI]) < set(DIALECTS[SONIC])


def test_a_report_says_which_devices_were_asked_in_a_shell_that_nobody_has_seen_on_a_device(
    plan: Plan, tmp_path: Path
) -> None:
    """Live over SSH, and offline from what that run stored; a hosts file without the shell has no such note."""
    names = list(plan.switches)[:2]
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text(
        "".join(f"{n}: {{hostname: 127.0.0.1, port: 1, username: x, platform: dell_sonic}}\n" for n in names)
    )
    chosen = Selection(checks=("device-answers",))
    run, folder, files = accept(Acceptance(plan, tmp_path, name="r", hosts=hosts, selection=chosen))
    for text in (run.note, files["html"].read_text(), files["junit"].read_text(), files["markdown"].read_text()):
        assert f"never seen on a device: look twice at the results of such devices ({', '.join(names)})" in text
    again, _, _ = accept(Acceptance(plan, tmp_path, name="again", stored=folder, selection=chosen))
    assert again.note == run.note
    hosts.write_text(hosts.read_text().replace("dell_sonic", "linux"))
    assert not accept(Acceptance(plan, tmp_path, name="linux", hosts=hosts, selection=chosen))[0].note
