"""Counters in the exact form of devices in the field, where it differs from what one would guess.

Forms: sonic-utilities (pfcstat, pfcwd, queuestat, wredstat) and its test vectors, orchagent's counter ids per ASIC, the
mlx5 and bnxt_en ethtool names, the mlx5 and bnxt_re tables of RDMA counters. Values are made up.
"""

from __future__ import annotations

import json

import pytest

from fabric.plan import TrafficClass
from validators.counters import linux, sonic
from validators.counters.readings import (
    BYTES,
    CNPS,
    DROPS,
    ECN_MARKED,
    NAKS,
    PAUSE,
    PAUSE_ENDS,
    PAUSE_US,
    RETRANSMISSIONS,
    STORM_DROPS,
    STORMS,
    Key,
)
from validators.counters.rules import Expectation, judge_station
from validators.counters.station import Station, command, parse
from validators.devices.answers import UnreadableError
from validators.devices.dialects import SONIC
from validators.results import State

pytestmark = pytest.mark.unit

KV = TrafficClass("kv", (26,), 3, 3, lossless=True, weight=60, ecn_min=1, ecn_max=2, ecn_probability=5)
LEAF = Station("leaf-01", ("Ethernet0",), SONIC)
NIC = Station("compute-001", ("be0-port0",), host=True)

PFC = """\
     Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
------------  ------  ------  ------  ------  ------  ------  ------  ------
   Ethernet0       0       0       0   1,204       0       0       0       0
Ethernet-BP0     N/A     N/A     N/A     N/A     N/A     N/A     N/A     N/A

     Port Tx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7
------------  ------  ------  ------  ------  ------  ------  ------  ------
   Ethernet0       0       0       0      17       0       0       0       0
Ethernet-BP0     N/A     N/A     N/A     N/A     N/A     N/A     N/A     N/A
"""
HEAD = """\
      QUEUE       STATUS    STORM DETECTED/RESTORED    TX OK/DROP    RX OK/DROP    TX LAST OK/DROP    RX LAST OK/DROP
-----------  -----------  -------------------------  ------------  ------------  -----------------  -----------------
"""
IDLE = """\
Ethernet0:2          N/A                        0/0           0/0           0/0                0/0                0/0
Ethernet0:3  operational                        0/0           0/0           0/0                0/0                0/0
"""
STORMED = """\
Ethernet0:3      stormed                        3/2       100/300   159/5823727                0/0                0/0
"""
QUEUES = json.dumps(
    {
        "Ethernet0": {
            "MC13": {"dropbytes": "0", "droppacket": "0", "totalbytes": "64", "totalpacket": "1"},
            "UC3": {
                "dropbytes": "N/A", "droppacket": "0", "qbitsps": "N/A", "totalbytes": "6,400", "totalpacket": "100",
                "trimdroppacket": "N/A", "trimpacket": "0",
            },
            "UC4": {"dropbytes": "N/A", "droppacket": "N/A", "totalbytes": "N/A", "totalpacket": "N/A"},
            "cached_time": "2026-04-07T15:50:00.000000",
            "time": "2026-04-07T15:57:11.881430",
        }
    }
)  # fmt: skip
WRED = json.dumps(
    {
        "Ethernet0": {
            "UC3": {
                "ecnmarkedbytes": "79", "ecnmarkedpacket": "3,920,376", "wreddropbytes": "N/A", "wreddroppacket": "0",
            },
            "time": "2026-04-07T15:57:11.881430",
        }
    }
)  # fmt: skip
BROADCOM = "port Ethernet0\n" + str(
    {
        "SAI_PORT_STAT_IF_IN_OCTETS": "4510",
        "SAI_PORT_STAT_PFC_3_RX_PKTS": "1204",
        "SAI_PORT_STAT_PFC_3_ON2OFF_RX_PKTS": "601",
        "SAI_PORT_STAT_PFC_3_RX_PKTS_last": "1200",
    }
)
CISCO = "port Ethernet0\n" + str({"SAI_PORT_STAT_IF_IN_OCTETS": "4510", "SAI_PORT_STAT_PFC_3_RX_PKTS": "1204"})


def _switch(watchdog: str, database: str = BROADCOM) -> str:
    parts = {"pfc": PFC, "watchdog": watchdog, "queues": QUEUES, "wred": WRED, "counters-db": database}
    return "".join(f"#kvfabric {name}\n{text}\n" for name, text in parts.items())


def test_a_switch_that_never_saw_a_storm_still_counts_them() -> None:
    assert "pfcwd show stats -e" in command(LEAF), "without -e pfcwd leaves out what is all zeros"
    found = sonic.watchdog_counters(HEAD + IDLE)
    assert found == {
        Key("Ethernet0", STORMS, "tx", 3): 0,
        Key("Ethernet0", STORM_DROPS, "tx", 3): 0,
        Key("Ethernet0", STORM_DROPS, "rx", 3): 0,
    }, "queue 2 has zeros and no status: nobody watches it"
    assert sonic.watchdog_counters(HEAD + STORMED)[Key("Ethernet0", STORM_DROPS, "rx", 3)] == 5_823_727
    assert sonic.watchdog_counters(HEAD) == {}


@pytest.mark.parametrize("database", [BROADCOM, CISCO], ids=["changes", "neither"])
def test_a_healthy_switch_of_any_asic_passes(lab_plan, database: str) -> None:
    found = parse(LEAF, _switch(HEAD + IDLE, database))
    result = judge_station(lab_plan, LEAF, found, found, Expectation((KV,), 3))
    assert result.state is State.PASS, result.text
    assert found.values[Key("Ethernet0", BYTES, "tx", 3)] == 6400
    assert found.values[Key("Ethernet0", ECN_MARKED, "tx", 3)] == 3_920_376


def test_what_is_not_watched_or_not_counted_is_an_error_and_a_storm_is_seen(lab_plan) -> None:
    idle = parse(LEAF, _switch(HEAD + IDLE))
    for text in (HEAD, HEAD + IDLE.replace("operational", "        N/A")):
        silent = parse(LEAF, _switch(text))
        result = judge_station(lab_plan, LEAF, silent, silent, Expectation((KV,), 3))
        assert result.state is State.ERROR
        assert "no counter Ethernet0 tx watchdog storms priority 3" in result.text
    stormed = parse(LEAF, _switch(HEAD + STORMED))
    result = judge_station(lab_plan, LEAF, idle, stormed, Expectation((KV,), 3))
    assert result.state is State.FAIL
    assert "watchdog drops priority 3 +300" in result.text


def test_how_pauses_are_counted_depends_on_the_asic() -> None:
    assert sonic.counters_db(BROADCOM) == {Key("Ethernet0", PAUSE_ENDS, "rx", 3): 601}
    assert sonic.counters_db(CISCO) == {}
    with pytest.raises(UnreadableError, match="Ethernet0: no counter of a port"):
        sonic.counters_db("port Ethernet0\n{}")


def test_a_watchdog_without_times_says_so() -> None:
    text = """\
Changed polling interval to 200ms
BIG_RED_SWITCH status is enable
     PORT    ACTION    DETECTION TIME    RESTORATION TIME    HISTORY
---------  --------  ----------------  ------------------  ---------
Ethernet0      drop               200            infinite    disable
Ethernet4   forward               N/A                 200     enable
"""
    assert sonic.pfcwd_config(text) == {
        "Ethernet0": ("drop", 200, sonic.ENDLESS),
        "Ethernet4": ("forward", sonic.ENDLESS, 200),
    }


MLX5_ETHTOOL = """\
NIC statistics:
     rx_packets: 1204
     rx_out_of_buffer: 0
     rx_discards_phy: 0
     rx_pause_ctrl_phy: 12
     rx_prio3_bytes: 84719203847362
     rx_prio3_packets: 20693166921
     rx_prio3_discards: 1
     tx_prio3_bytes: 83991204773621
     tx_prio3_packets: 20515332188
     rx_prio3_pause: 12
     rx_prio3_pause_duration: 340
     tx_prio3_pause: 5
     tx_prio3_pause_duration: 1
     rx_prio3_pause_transition: 6
     tx_pause_storm_warning_events: 0
     rx_prio3_buf_discard: 2
     rx_prio3_cong_discard: 4
     rx_prio3_marked: 9
     rx0_packets: 3
"""
MLX5_HW = {
    "rx_write_requests": 0, "rx_read_requests": 0, "rx_atomic_requests": 0, "out_of_buffer": 135, "out_of_sequence": 4,
    "duplicate_request": 0, "rnr_nak_retry_err": 0, "packet_seq_err": 7, "implied_nak_seq_err": 0,
    "local_ack_timeout_err": 2, "rx_dct_connect": 0, "resp_local_length_error": 0, "resp_cqe_error": 1009,
    "req_cqe_error": 22, "roce_adp_retrans": 1, "roce_adp_retrans_to": 0, "roce_slow_restart": 0, "rp_cnp_ignored": 0,
    "rp_cnp_handled": 0, "np_ecn_marked_roce_packets": 11, "np_cnp_sent": 10, "rx_icrc_encapsulated": 0,
}  # fmt: skip
BNXT_ETHTOOL = """\
NIC statistics:
     [0]: rx_ucast_packets: 911
     [0]: tx_ucast_packets: 900
     rx_total_ring_discards: 0
     rx_pfc_frames: 9
     rx_pfc_ena_frames_pri3: 9
     tx_pfc_ena_frames_pri3: 4
     continuous_roce_pause_events: 0
     pfc_pri3_rx_duration_us: 77
     pfc_pri3_rx_transitions: 8
     pfc_pri3_tx_duration_us: 3
     pfc_pri3_tx_transitions: 2
     rx_discard_packets_cos3: 0
     rx_bytes_pri3: 10
     rx_packets_pri3: 1
     tx_bytes_pri3: 20
     tx_packets_pri3: 2
"""
BNXT_HW = {
    "active_qps": 3, "rx_pkts": 20, "rx_bytes": 30, "tx_pkts": 40, "tx_bytes": 50, "recoverable_errors": 0,
    "rx_roce_errors": 0, "rx_roce_discards": 0, "to_retransmits": 2, "seq_err_naks_rcvd": 1, "max_retry_exceeded": 0,
    "rnr_naks_rcvd": 0, "missing_resp": 0, "dup_req": 0, "res_exceed_max": 0, "oos_drop_count": 3,
    "rx_roce_good_pkts": 19, "rx_out_of_buffer": 0,
}  # fmt: skip
"""Of a driver before it had the counters of CNPs and of ECN marks."""


def _host(driver: str, ethtool: str, hardware: dict[str, int]) -> str:
    lines = [f"hw {name} {value}" for name, value in hardware.items()]
    return f"driver {driver}\n{ethtool}" + "\n".join([*lines, "hw lifespan 10"]) + "\n"


def test_a_port_of_mlx5() -> None:
    found = linux.nic("eth0", _host("mlx5_core", MLX5_ETHTOOL, MLX5_HW))
    wanted = {
        Key("eth0", PAUSE, "rx", 3): 12,
        Key("eth0", PAUSE_US, "rx", 3): 340,
        Key("eth0", PAUSE_ENDS, "rx", 3): 6,
        Key("eth0", DROPS, "rx", 3): 1 + 2 + 4,
        Key("eth0", ECN_MARKED, "rx", 3): 9,
        Key("eth0", DROPS): 135,
        Key("eth0", NAKS): 7,
        Key("eth0", RETRANSMISSIONS): 2 + 1 + 4,
        Key("eth0", CNPS): 10,
        Key("eth0", ECN_MARKED): 11,
    }
    assert {key: found.get(key) for key in wanted} == wanted


def test_a_port_of_bnxt_with_and_without_the_counters_of_cnps(lab_plan) -> None:
    found = linux.nic("be0-port0", _host("bnxt_en", BNXT_ETHTOOL, BNXT_HW))
    wanted = {
        Key("be0-port0", PAUSE, "tx", 3): 4,
        Key("be0-port0", PAUSE_US, "rx", 3): 77,
        Key("be0-port0", PAUSE_ENDS, "rx", 3): 8,
        Key("be0-port0", BYTES, "tx", 3): 20,
        Key("be0-port0", NAKS): 1,
        Key("be0-port0", DROPS): 3,
    }
    assert {key: found.get(key) for key in wanted} == wanted
    assert Key("be0-port0", CNPS) not in found
    newer = linux.nic(
        "be0-port0", _host("bnxt_en", BNXT_ETHTOOL, BNXT_HW | {"tx_cnp_pkts": 5, "rx_ecn_marked_pkts": 6})
    )
    assert newer[Key("be0-port0", CNPS)] == 5
    readings = parse(NIC, f"#kvfabric nic be0-port0\n{_host('bnxt_en', BNXT_ETHTOOL, BNXT_HW)}")
    assert judge_station(lab_plan, NIC, readings, readings, Expectation((KV,), 3)).state is State.PASS


def test_a_host_without_pfc_on_the_priority_has_no_pause_counters_and_that_is_an_error(lab_plan) -> None:
    silent = "\n".join(line for line in MLX5_ETHTOOL.splitlines() if "prio3_pause" not in line) + "\n"
    readings = parse(NIC, f"#kvfabric nic be0-port0\n{_host('mlx5_core', silent, MLX5_HW)}")
    result = judge_station(lab_plan, NIC, readings, readings, Expectation((KV,), 3))
    assert result.state is State.ERROR
    assert "no counter be0-port0 rx pause frames priority 3" in result.text


def test_the_rdma_tool_of_a_real_card() -> None:
    text = json.dumps([{"ifname": "mlx5_0", "port": 1, **MLX5_HW}])
    assert linux.rdma_statistic("eth0", "mlx5_core", text)[Key("eth0", NAKS)] == 7
