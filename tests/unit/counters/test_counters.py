"""Counters: recorded-form output of each source, missing ones as errors, the pass rules, PFC frames."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.counters import linux, pfc_frames, sonic
from validators.counters.readings import (
    DROPS,
    ECN_MARKED,
    NAKS,
    PACKETS,
    PAUSE,
    PAUSE_US,
    RETRANSMISSIONS,
    WRED_DROPS,
    Key,
    MissingCounterError,
    Readings,
    UnreadableError,
    merged,
)
from validators.counters.rules import Surface, incast_rules
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
     rx_prio3_discards: 0
"""
BNXT = """\
NIC statistics:
     rx_pfc_ena_frames_pri3: 9
     tx_pfc_ena_frames_pri3: 4
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


def test_sonic_counters_db() -> None:
    fields = {"SAI_PORT_STAT_PFC_3_RX_PKTS": "8", "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": "90", "other": "x"}
    assert sonic.counters_db("Ethernet0", fields) == {
        Key("Ethernet0", PAUSE, "rx", 3): 8,
        Key("Ethernet0", PAUSE_US, "rx", 3): 90,
    }
    queue = {"SAI_QUEUE_STAT_DROPPED_PACKETS": "3", "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": "4"}
    assert sonic.queue_db("Ethernet0", 3, queue)[Key("Ethernet0", ECN_MARKED, "tx", 3)] == 4


def test_host_counters_of_both_nics() -> None:
    mlx5 = linux.ethtool("be0", MLX5)
    assert mlx5[Key("be0", PAUSE, "rx", 3)] == 12
    assert mlx5[Key("be0", PAUSE_US, "rx", 3)] == 340
    bnxt = linux.ethtool("be0", BNXT)
    assert bnxt[Key("be0", PAUSE, "tx", 3)] == 4
    assert bnxt[Key("be0", PAUSE_US, "rx", 3)] == 77
    with pytest.raises(UnreadableError):
        linux.ethtool("be0", "no stats available")
    dcb = linux.dcb_pfc("be0", '{"requests":[0,0,0,6,0,0,0,0],"indications":[0,0,0,7,0,0,0,0]}')
    assert dcb[Key("be0", PAUSE, "tx", 3)] == 6
    with pytest.raises(UnreadableError):
        linux.dcb_pfc("be0", "{}")


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


def _switch(changes: dict[Key, int]) -> Readings:
    values = {Key("Ethernet0", PAUSE, way, p): 0 for way in ("rx", "tx") for p in range(8)}
    return merged("leaf-01", [values, {Key("Ethernet0", DROPS, "tx", 3): 0}, changes])


@pytest.mark.parametrize(
    ("changes", "state", "text"),
    [
        ({Key("Ethernet0", PAUSE, "tx", 3): 9}, State.PASS, "no loss"),
        ({}, State.FAIL, "no pause on lossless priority 3"),
        ({Key("Ethernet0", PAUSE, "tx", 3): 9, Key("Ethernet0", PAUSE, "rx", 0): 1}, State.FAIL, "lossy priority"),
        ({Key("Ethernet0", PAUSE, "tx", 3): 9, Key("Ethernet0", DROPS, "tx", 3): 1}, State.FAIL, "drops"),
    ],
)
def test_incast_rules(changes: dict[Key, int], state: State, text: str) -> None:
    result = incast_rules(_switch({}), _switch(changes), Surface(("Ethernet0",), (3,)))
    assert result.state is state
    assert text in result.text


def test_a_switch_that_counts_nothing_cannot_pass() -> None:
    result = incast_rules(Readings("leaf-01"), Readings("leaf-01"), Surface(("Ethernet0",), (3,)))
    assert result.state is State.ERROR


def test_host_rules_need_naks_and_drops() -> None:
    base = {Key("be0", PAUSE, w, 3): 0 for w in ("rx", "tx")} | {Key("be0", NAKS): 0, Key("be0", DROPS): 0}
    surface = Surface(("be0",), (3,), host=True, congested=False)
    before = Readings("compute-001", base)
    assert incast_rules(before, before, surface).state is State.PASS
    assert incast_rules(before, Readings("compute-001", base | {Key("be0", NAKS): 1}), surface).state is State.FAIL
    lacking = Readings("compute-001", {k: v for k, v in base.items() if k.what != NAKS})
    assert incast_rules(lacking, lacking, surface).state is State.ERROR


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
