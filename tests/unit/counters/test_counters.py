"""Counters: recorded-form output of each source, missing ones as errors, the pass rules, PFC frames."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.plan import TrafficClass
from validators.counters import linux, pfc_frames, sonic, watch_table
from validators.counters.readings import (
    BYTES,
    DROPS,
    ECN_MARKED,
    NAKS,
    PACKETS,
    PAUSE,
    PAUSE_US,
    RETRANSMISSIONS,
    STORM_DROPS,
    STORMS,
    WRED_DROPS,
    Key,
    MissingCounterError,
    Readings,
)
from validators.counters.rules import Expectation, expected_keys, judge_station
from validators.counters.station import Station, command, parse
from validators.devices.answers import UnreadableError
from validators.devices.dialects import SONIC
from validators.results import State

pytestmark = pytest.mark.unit

PFC = """\
  Port Rx    PFC0    PFC1    PFC2     PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  -------  ------  ------  ------  ------
Ethernet0       0       0       0    1,204       0       0       0       0
Ethernet4       0       0       0      N/A       0       0       0       0

  Port Tx    PFC0    PFC1    PFC2     PFC3    PFC4    PFC5    PFC6    PFC7
---------  ------  ------  ------  -------  ------  ------  ------  ------
Ethernet0       0       0       0       17       0       0       0       0
Ethernet4       0       0       0        0       0       0       0       0
"""
WATCHDOG = """\
      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP
-----------  -----------  -------------------------  ------------  ------------  -----------------  -----------------
Ethernet0:3  operational                        2/2      1,000/40        90/300                0/0                0/0
"""
CONFIG = """\
Changed polling interval to 200ms
     PORT    ACTION    DETECTION TIME    RESTORATION TIME    HISTORY
---------  --------  ----------------  ------------------  ---------
Ethernet0      drop               200                 200    disable
"""
MLX5 = """\
NIC statistics:
     rx_packets: 100
     rx_prio3_pause: 12
     rx_prio3_pause_duration: 340
     tx_prio3_pause: 5
     rx_prio3_bytes: 4096
     tx_prio3_bytes: 8192
     tx_prio3_pause_duration: 1
     rx_prio3_discards: 0
     rx_prio3_buf_discard: 0
"""
BNXT = """\
NIC statistics:
     rx_pfc_ena_frames_pri3: 9
     tx_pfc_ena_frames_pri3: 4
     rx_bytes_pri3: 10
     tx_bytes_pri3: 20
     pfc_pri3_rx_duration_us: 77
"""


def test_sonic_pfc_tables() -> None:
    found = sonic.pfc_counters(PFC)
    assert found[Key("Ethernet0", PAUSE, "rx", 3)] == 1204
    assert found[Key("Ethernet0", PAUSE, "tx", 3)] == 17
    assert Key("Ethernet4", PAUSE, "rx", 3) not in found
    for bad in ("", "Ethernet0 1 2 3", PFC.replace("17", "many")):
        with pytest.raises(UnreadableError):
            sonic.pfc_counters(bad)


def test_sonic_watchdog() -> None:
    row = sonic.pfcwd_stats(WATCHDOG)[0]
    assert (row.port, row.queue, row.detected, row.restored, row.tx_dropped, row.rx_dropped) == (
        "Ethernet0", 3, 2, 2, 40, 300,
    )  # fmt: skip
    assert sonic.pfcwd_config(CONFIG) == {"Ethernet0": ("drop", 200, 200)}
    with pytest.raises(UnreadableError):
        sonic.pfcwd_stats("bash: show: command not found")


def test_sonic_queues_and_wred() -> None:
    text = json.dumps(
        {"Ethernet0": {"UC3": {"totalpacket": "1,000", "droppacket": "2"}, "MC13": {"totalpacket": "7"}, "time": "now"}}
    )
    assert sonic.queue_counters(text) == {Key("Ethernet0", PACKETS, "tx", 3): 1000, Key("Ethernet0", DROPS, "tx", 3): 2}
    text = json.dumps(
        {"Ethernet0": {"UC3": {"wreddroppacket": "1", "ecnmarkedpacket": "55"}, "UC4": {"ecnmarkedpacket": "N/A"}}}
    )
    assert sonic.wred_counters(text) == {
        Key("Ethernet0", WRED_DROPS, "tx", 3): 1,
        Key("Ethernet0", ECN_MARKED, "tx", 3): 55,
    }
    for bad in ("[]", "no"):
        with pytest.raises(UnreadableError):
            sonic.queue_counters(bad)


COUNTERS_DB = """\
port Ethernet0
{'SAI_PORT_STAT_PFC_3_RX_PKTS': '8', 'SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US': '90', 'SAI_PORT_STAT_IF_IN_OCTETS': '7'}
port Ethernet4
SAI_PORT_STAT_PFC_3_RX_PKTS
8
SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US
91
"""


def test_sonic_counters_db_in_both_forms() -> None:
    assert sonic.counters_db(COUNTERS_DB) == {
        Key("Ethernet0", PAUSE_US, "rx", 3): 90,
        Key("Ethernet4", PAUSE_US, "rx", 3): 91,
    }
    for bad in ("", "port Ethernet0\n{'SAI", "port Ethernet0\n\n", "port Ethernet0\n{}"):
        with pytest.raises(UnreadableError):
            sonic.counters_db(bad)


def test_host_counters_of_both_nics() -> None:
    mlx5 = linux.ethtool("be0", MLX5)
    assert mlx5[Key("be0", PAUSE, "rx", 3)] == 12
    assert mlx5[Key("be0", PAUSE_US, "rx", 3)] == 340
    bnxt = linux.ethtool("be0", BNXT)
    assert bnxt[Key("be0", PAUSE, "tx", 3)] == 4
    assert bnxt[Key("be0", PAUSE_US, "rx", 3)] == 77
    with pytest.raises(UnreadableError):
        linux.ethtool("be0", "no stats available")


def test_half_a_sum_is_no_counter() -> None:
    found = linux.rdma("be0", "rxe", {"rcvd_seq_err": 2, "completer_retry_err": 3})
    assert found == {Key("be0", NAKS): 2}
    full = linux.rdma("be0", "rxe", {"rcvd_seq_err": 2, "completer_retry_err": 3, "out_of_seq_request": 4})
    assert full[Key("be0", RETRANSMISSIONS)] == 7
    with pytest.raises(UnreadableError):
        linux.rdma("be0", "unheard_of", {})


def test_missing_and_restarted_counters_are_errors_never_zero() -> None:
    key = Key("Ethernet0", PAUSE, "rx", 3)
    with pytest.raises(MissingCounterError, match="no counter"):
        Readings("leaf-01").delta(Readings("leaf-01", {key: 1}), [key])
    with pytest.raises(MissingCounterError, match="from 5 to 1"):
        Readings("leaf-01", {key: 5}).delta(Readings("leaf-01", {key: 1}), [key])
    assert Readings("leaf-01", {key: 5}).delta(Readings("leaf-01", {key: 5}), [key]) == {key: 0}


KV = TrafficClass("kv", (26,), 3, 3, lossless=True, weight=60, ecn_min=1, ecn_max=2, ecn_probability=5)
LEAF = Station("leaf-01", ("Ethernet0",), SONIC)
NIC = Station("compute-001", ("be0-port0",), host=True)


def _full(station: Station, changes: dict[Key, int] | None = None) -> Readings:
    keys = expected_keys(station, Expectation((KV,), 3))
    return Readings(station.device, dict.fromkeys(keys, 0) | (changes or {}))


def _judge(plan, station: Station, changes: dict[Key, int], congested: bool = True):
    expected = Expectation((KV,), 3, congested)
    return judge_station(plan, station, _full(station), _full(station, changes), expected, ["acme"])


PAUSED = Key("Ethernet0", PAUSE, "tx", 3)


@pytest.mark.parametrize(
    ("changes", "state", "text"),
    [
        ({PAUSED: 9}, State.PASS, "no loss"),
        ({}, State.FAIL, "no pause on lossless priority 3"),
        ({PAUSED: 9, Key("Ethernet0", PAUSE, "rx", 0): 1}, State.FAIL, "lossy priority"),
        ({PAUSED: 9, Key("Ethernet0", DROPS, "tx", 3): 1}, State.FAIL, "drops"),
        ({PAUSED: 9, Key("Ethernet0", STORM_DROPS, "rx", 3): 1}, State.FAIL, "watchdog drops"),
        ({PAUSED: 9, Key("Ethernet0", STORMS, "tx", 3): 1}, State.PASS, "no loss"),
    ],
)
def test_incast_rules(lab_plan, changes: dict[Key, int], state: State, text: str) -> None:
    result = _judge(lab_plan, LEAF, changes)
    assert result.state is state
    assert text in result.text


def test_pause_is_asked_for_only_where_many_send_to_one_and_never_on_virtual_ports(lab_plan) -> None:
    assert _judge(lab_plan, LEAF, {}, congested=False).state is State.PASS
    virtual = Station("leaf-01", ("Ethernet0",), virtual=True)
    result = _judge(lab_plan, virtual, {})
    assert result.state is State.PASS
    assert "ports are virtual" in result.text


def test_results_are_joined_to_the_plan_by_port_direction_and_priority(lab_plan) -> None:
    result = _judge(lab_plan, LEAF, {PAUSED: 9, Key("Ethernet0", ECN_MARKED, "tx", 3): 4})
    port = result.parts[0]
    assert port.labels["tenant"] == "acme"
    assert port.labels["vrf"] == "Vrf-acme"
    by_way = {(part.labels["direction"], part.labels["priority"]): part for part in port.parts}
    assert {(m.name, m.value) for m in by_way["tx", "3"].measurements} >= {("pause frames", 9.0), ("ECN marked", 4.0)}
    assert by_way["rx", "3"].labels["device"] == "leaf-01"


@pytest.mark.parametrize("station", [LEAF, NIC, Station("leaf-01", ("Ethernet0",), virtual=True)])
def test_every_expected_counter_that_is_missing_is_an_error(lab_plan, station: Station) -> None:
    expected = Expectation((KV,), 3)
    full = _full(station)
    for key in expected_keys(station, expected):
        lacking = Readings(station.device, {k: v for k, v in full.values.items() if k != key})
        result = judge_station(lab_plan, station, lacking, full, expected)
        assert result.state is State.ERROR, key
        assert f"no counter {key}" in result.text
    empty = Readings(station.device)
    assert judge_station(lab_plan, station, empty, empty, expected).state is State.ERROR


def test_a_nak_or_a_discard_on_a_host_fails(lab_plan) -> None:
    assert _judge(lab_plan, NIC, {}, congested=False).state is State.PASS
    for what in (NAKS, DROPS):
        assert _judge(lab_plan, NIC, {Key("be0-port0", what): 1}, congested=False).state is State.FAIL


# -- one session reads everything of a device

QUEUES = json.dumps({"Ethernet0": {"UC3": {"totalpacket": "5", "totalbytes": "500", "droppacket": "0"}}})
WRED = json.dumps({"Ethernet0": {"UC3": {"wreddroppacket": "0", "ecnmarkedpacket": "7"}}})


def _said(station: Station, answers: dict[str, str]) -> str:
    names = re.findall("echo '#kvfabric ([^']+)'", command(station))
    return "".join(f"#kvfabric {name}\n{answers[name]}\n" for name in names if name in answers)


def test_a_sonic_switch_is_read_in_one_go(lab_plan) -> None:
    answers = {"pfc": PFC, "watchdog": WATCHDOG, "queues": QUEUES, "wred": WRED, "counters-db": COUNTERS_DB}
    found = parse(LEAF, _said(LEAF, answers))
    assert found.values[PAUSED] == 17
    assert found.values[Key("Ethernet0", BYTES, "tx", 3)] == 500
    assert found.values[Key("Ethernet0", STORMS, "tx", 3)] == 2
    assert not any(key.port == "Ethernet4" for key in found.values)
    assert judge_station(lab_plan, LEAF, found, found, Expectation((KV,), 3)).state is State.PASS
    for name in answers:
        with pytest.raises(UnreadableError, match="leaf-01"):
            parse(LEAF, _said(LEAF, answers | {name: "bash: command not found"}))
        with pytest.raises(UnreadableError, match=f"said nothing to {name}"):
            parse(LEAF, _said(LEAF, {n: text for n, text in answers.items() if n != name}))


MLX5_HOST = f"""driver mlx5_core
{MLX5}
hw packet_seq_err 2
hw local_ack_timeout_err 1
hw roce_adp_retrans 4
hw out_of_sequence 3
hw out_of_buffer 0
hw np_cnp_sent 9
hw np_ecn_marked_roce_packets 12
hw lifespan 10
"""
BNXT_HOST = f"""driver bnxt_en
{BNXT}
hw seq_err_naks_rcvd 1
hw to_retransmits 2
hw oos_drop_count 3
hw rx_roce_discards 0
hw tx_cnp_pkts 5
hw rx_ecn_marked_pkts 6
"""


def test_nics_of_both_makers_are_read_with_their_rdma_counters(lab_plan) -> None:
    found = parse(NIC, _said(NIC, {"nic be0-port0": MLX5_HOST}))
    assert found.values[Key("be0-port0", RETRANSMISSIONS)] == 1 + 4 + 3
    assert found.values[Key("be0-port0", BYTES, "rx", 3)] == 4096
    assert judge_station(lab_plan, NIC, found, found, Expectation((KV,), 3)).state is State.PASS
    found = parse(NIC, _said(NIC, {"nic be0-port0": BNXT_HOST}))
    assert found.values[Key("be0-port0", NAKS)] == 1
    assert judge_station(lab_plan, NIC, found, found, Expectation((KV,), 3)).state is State.PASS
    with pytest.raises(UnreadableError, match="ice"):
        parse(NIC, _said(NIC, {"nic be0-port0": MLX5_HOST.replace("mlx5_core", "ice")}))
    without = parse(NIC, _said(NIC, {"nic be0-port0": MLX5_HOST.replace("hw packet_seq_err 2\n", "")}))
    assert judge_station(lab_plan, NIC, without, without, Expectation((KV,), 3)).state is State.ERROR


LINK = {"over_errors": 1, "missed_errors": 2, "dropped": 50, "errors": 0, "bytes": 10, "packets": 3}


def test_links_and_queues_of_linux() -> None:
    text = json.dumps([{"ifname": "Ethernet0", "stats64": {"rx": LINK, "tx": {**LINK, "dropped": 5}}}])
    found = linux.links(text)
    assert found[Key("Ethernet0", DROPS, "rx")] == 3
    assert found[Key("Ethernet0", DROPS, "tx")] == 5
    queue = json.dumps([{"dev": "Ethernet0", "kind": "mq", "root": True, "drops": 4}, {"dev": "Ethernet0", "drops": 1}])
    assert linux.qdiscs(queue) == {Key("Ethernet0", linux.QUEUE_DROPS, "tx"): 4}
    for parser in (linux.links, linux.qdiscs):
        for bad in ("", '[{"ifname": 1}]'):
            with pytest.raises(UnreadableError):
                parser(bad)


def test_the_counting_table_is_read_back_by_port_class_and_priority() -> None:
    counters = [("rx.class.3.Ethernet0", 4, 400), ("tx.xoff.3.be0-port0", 2, 120), ("tx.xon.3.be0-port0", 1, 60)]
    objects = [{"metainfo": {}}] + [{"counter": {"name": n, "packets": p, "bytes": b}} for n, p, b in counters]
    found = watch_table.parse(json.dumps({"nftables": objects}))
    assert found[Key("Ethernet0", BYTES, "rx", 3)] == 400
    assert found[Key("be0-port0", PAUSE, "tx", 3)] == 2
    for bad in ("", '{"nftables": []}', '{"nftables": [{"counter": {"name": "other"}}]}'):
        with pytest.raises(UnreadableError):
            watch_table.parse(bad)


@settings(deadline=None)
@given(quanta=st.dictionaries(st.integers(0, 7), st.integers(0, 0xFFFF)))
def test_pfc_frames_are_recognised(quanta: dict[int, int]) -> None:
    frame = pfc_frames.craft("02:00:00:00:00:01", quanta)
    assert len(frame) == 60
    found = pfc_frames.recognise(frame)
    assert found is not None
    assert found.quanta == quanta


def test_other_frames_are_not_pfc() -> None:
    frame = pfc_frames.craft("02:00:00:00:00:01", {3: 65535})
    assert frame[14:18] == b"\x01\x01\x00\x08"
    assert pfc_frames.recognise(frame[:20]) is None
    assert pfc_frames.recognise(frame[:14] + b"\x00\x01" + frame[16:]) is None
    assert pfc_frames.recognise(b"\xff" * 6 + frame[6:]) is None
    with pytest.raises(ValueError, match="priorities"):
        pfc_frames.craft("02:00:00:00:00:01", {8: 1})
