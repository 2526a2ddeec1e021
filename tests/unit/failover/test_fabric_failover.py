"""Fabric failover and marking on the way, judged from what ping and tcpdump print."""

from __future__ import annotations

import subprocess
from shutil import which

import pytest

from fabric.build import load_plan
from validators.check import judged
from validators.failover.checks import FabricFailover, _deed, arrivals, gaps_of
from validators.rdma.check_marking import DscpPath
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
(FAILOVER,) = FabricFailover.cases(PLAN)
(MARKED,) = DscpPath.cases(PLAN)


def pings(silent_from=0.0, silent_to=0.0, until=12.0, first=1000.0):
    times = [first + n * 0.02 for n in range(int(until / 0.02))]
    kept = [at for at in times if not silent_from <= at - first < silent_to]
    return "".join(f"[{at:.6f}] 64 bytes from 10.1.0.19: icmp_seq={n} ttl=61 time=1 ms\n" for n, at in enumerate(kept))


def failover(*texts, back=1.0, events=(1003.0, 1007.0)):
    flows = {f"flow {n}": {"text": text} for n, text in enumerate(texts)}
    said = [{"at": at, "text": "x"} for at in events]
    return judged(FabricFailover(), PLAN, FAILOVER, {"flows": flows, "events": said, "back_s": back})


def test_a_short_silence_passes_and_is_drawn():
    result = failover(pings(3.1, 4.0), pings())
    assert result.state is State.PASS
    assert result.text == "1 of 2 flows were interrupted, for at most 920 ms; 2500 ms are allowed"
    assert result.evidence["timeline"]["flows"][0]["gaps"][0][1] > 0
    assert result.measurements[0].value == 920.0


@pytest.mark.parametrize(("silence", "text"), [((3.1, 6.5), "silent for 3420 ms"), ((3.1, 99), "not heard again")])
def test_a_long_silence_fails_by_the_flow_and_names_the_spine(silence, text):
    result = failover(pings(), pings(*silence))
    assert result.state is State.FAIL
    assert text in result.text
    assert "spine-01" in result.place


def test_requests_that_end_too_early_do_not_fail_a_flow():
    text = pings(until=7.5) + "requests-ended:1007.500000000\n"
    result = failover(text, events=(1003.0, 1007.0))
    assert result.state is State.UNKNOWN
    assert "ended 0.5 s after the spine was back" in result.text
    result = failover(pings(until=9.0) + "requests-ended:1009.000000000\n", events=(1003.0, 1007.0))
    assert result.state is State.PASS
    result = failover(pings(5.0, 99.0, until=9.0) + "requests-ended:1009.000000000\n")
    assert result.state is State.FAIL


def test_nothing_measured_and_a_spine_that_stays_away_are_errors():
    assert failover("connect: Network is unreachable").state is State.ERROR
    assert failover(pings(), back=None).state is State.ERROR


def test_a_late_packet_is_no_gap():
    assert gaps_of([0.0, 0.02, 0.1, 0.12], 0.0, 1.0) == []
    assert arrivals("PING 10.1.0.19\nno answer yet for icmp_seq=3\n") == []


def heard(**tos):
    """What tcpdump prints for a packet in and out of each device: `tos` is device -> (in, out)."""
    text = {}
    for device, (arriving, leaving) in tos.items():
        lines = [
            f"12:00:00.1 Ethernet0 {way}  IP (tos 0x{value:x},ECT(0), ttl 62, id 1, proto UDP (17), length 1100)"
            for way, value in (("In", arriving), ("Out", leaving))
            if value is not None
        ]
        text[device.replace("_", "-")] = {"text": "\n".join(lines)}
    return judged(DscpPath(), PLAN, MARKED, {"sent": {"text": "10 packets transmitted, 0 received"}, "heard": text})


@pytest.mark.parametrize(
    ("seen", "state", "blame"),
    [
        ({"spine_01": (0x6A, 0x6A), "spine_02": (None, None), "compute_003": (0x6A, None)}, State.PASS, ""),
        ({"spine_01": (0x00, 0x00), "spine_02": (None, None), "compute_003": (0x6A, None)}, State.FAIL, "leaf-01"),
        ({"spine_01": (0x6A, 0x00), "spine_02": (None, None), "compute_003": (0x6A, None)}, State.FAIL, "spine-01"),
        ({"spine_01": (0x6A, 0x6A), "spine_02": (None, None), "compute_003": (0x00, None)}, State.FAIL, "leaf-02"),
        ({"spine_01": (0x6A, 0x6A), "spine_02": (None, None), "compute_003": (None, None)}, State.ERROR, "compute-003"),
    ],
)
def test_the_hop_that_changed_the_mark_is_named(seen, state, blame):
    result = heard(**seen)
    assert result.state is state
    assert result.place.startswith(blame)


@pytest.mark.skipif(not which("nft") or not which("unshare"), reason="nft is not here")
def test_the_rules_that_cut_a_spine_off_are_understood_by_the_real_nft():
    command, _ = _deed(PLAN.switches["spine-01"], physical=False)
    # the ports are not here, which the kernel says; a rule that nft cannot read would be a syntax error
    done = subprocess.run(["unshare", "-n", "sh", "-c", command], capture_output=True, text=True, check=False)
    assert "syntax error" not in done.stderr
