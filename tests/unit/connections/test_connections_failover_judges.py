from __future__ import annotations

import json
from dataclasses import asdict, replace
from ipaddress import IPv4Address
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validators.failover import drain, judge
from validators.failover.flows import FlowsSpec
from validators.failover.gaps import Gaps
from validators.failover.observed import FlowsSeen, Silence, SlotSeen, observed
from validators.results import State
from validators.session.client import SessionSeen
from validators.session.judge import CaseSeen
from validators.session.judge import judge as judge_session
from validators.session.store import Store

pytestmark = pytest.mark.unit

BACK = Silence(1000, 2000, 400.0)
GONE = Silence(1000, None, 3000.0)
LIVED = SlotSeen(0, BACK, BACK, False, False, "203.0.113.1", "", None)
DIED = SlotSeen(0, GONE, GONE, False, True, "203.0.113.1", "203.0.113.9", 450.0)
STATIC = judge.Declared("static", 1000.0)
MASQUERADE = judge.Declared("masquerade", 1000.0, frozenset({"203.0.113.1"}), frozenset({"203.0.113.9"}))
# one of several links is lost: the gateway and what it knows are still there
KEPT = judge.Declared("masquerade", 1000.0, state_kept=True)


def _seen(*slots: SlotSeen, **change: Any) -> FlowsSeen:
    return replace(FlowsSeen(slots, 0, 9.0, 0, 300, 260, BACK), **change)


@pytest.mark.parametrize(
    ("declared", "seen", "state"),
    [
        (STATIC, _seen(LIVED), State.PASS),
        (STATIC, _seen(LIVED, DIED), State.FAIL),
        (STATIC, _seen(replace(LIVED, moved=True)), State.FAIL),
        (STATIC, _seen(replace(LIVED, towards=Silence(1, 2, 5000.0))), State.FAIL),
        (STATIC, _seen(LIVED, new_silence=GONE), State.FAIL),
        (STATIC, _seen(LIVED, new_silence=Silence(1, 2, 5000.0)), State.FAIL),
        (STATIC, _seen(LIVED, new_silence=None), State.ERROR),
        (STATIC, _seen(LIVED, tester_drops=3), State.ERROR),
        (STATIC, _seen(LIVED, tester_drops=3, pause_ms=1500.0), State.UNKNOWN),
        (STATIC, _seen(LIVED, DIED, pause_ms=2500.0), State.UNKNOWN),
        # silent to the end, for longer than a pause of the tester explains
        (STATIC, _seen(LIVED, DIED, pause_ms=1500.0), State.FAIL),
        (STATIC, _seen(LIVED, new_silence=GONE, pause_ms=1500.0), State.FAIL),
        (STATIC, _seen(LIVED, new_silence=GONE, pause_ms=2500.0), State.UNKNOWN),
        (STATIC, _seen(LIVED, pause_ms=1500.0), State.PASS),
        (KEPT, _seen(LIVED), State.PASS),
        (KEPT, _seen(LIVED, DIED), State.FAIL),
        (STATIC, _seen(LIVED, resolution_ms=250.0), State.PASS),
        (STATIC, _seen(LIVED, resolution_ms=260.0), State.UNKNOWN),
        (STATIC, _seen(LIVED, resolution_ms=float("inf")), State.UNKNOWN),
        (STATIC, _seen(), State.ERROR),
        (MASQUERADE, _seen(DIED), State.PASS),
        (replace(MASQUERADE, told=True), _seen(DIED), State.FAIL),
        (replace(MASQUERADE, told=True), _seen(replace(DIED, reset=True)), State.PASS),
        (MASQUERADE, _seen(LIVED), State.FAIL),
        (MASQUERADE, _seen(replace(DIED, remade_ms=None)), State.FAIL),
        (MASQUERADE, _seen(replace(DIED, public_after="203.0.113.1")), State.FAIL),
    ],
)
def test_failover(declared: judge.Declared, seen: FlowsSeen, state: State) -> None:
    result = judge.judge("gw", seen, declared)
    assert result.state is state, result.text
    json.dumps(asdict(result), allow_nan=False)


OPEN = drain.OpenFlow("f", "gw-1", None)
NEW = drain.NewFlow(20, "gw-2", True)
DRAIN = drain.DrainSeen("gw-1", 10, 1000, 2000, (OPEN,), (NEW,), (drain.NewFlow(3000, "gw-1", True),), 0)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, State.PASS),
        ({"open_flows": (replace(OPEN, cut_ns=500),)}, State.FAIL),
        ({"open_flows": (replace(OPEN, cut_ns=1500),)}, State.PASS),
        ({"open_flows": ()}, State.ERROR),
        ({"new_flows": (replace(NEW, gateway="gw-1"),)}, State.FAIL),
        ({"new_flows": (replace(NEW, answered=False),)}, State.FAIL),
        ({"new_flows": (replace(NEW, at_once=False), *[NEW] * 60), "may_repeat": 0.02}, State.PASS),
        ({"new_flows": (replace(NEW, at_once=False), *[NEW] * 20), "may_repeat": 0.02}, State.FAIL),
        ({"new_flows": (replace(NEW, answered=False), *[NEW] * 60), "may_repeat": 0.02}, State.FAIL),
        ({"others": 3, "others_cut": 1}, State.FAIL),
        ({"new_flows": ()}, State.ERROR),
        ({"left_at_stop": 3, "stopped_ns": 900}, State.FAIL),
        ({"left_at_stop": None}, State.ERROR),
        ({"after_undo": (NEW,)}, State.FAIL),
        ({"after_undo": (*DRAIN.after_undo, NEW)}, State.FAIL),
        ({"after_undo": (*DRAIN.after_undo * 30, NEW), "may_repeat": 0.05}, State.PASS),
    ],
)
def test_drain(change: dict[str, Any], state: State) -> None:
    result = drain.judge("gw", replace(DRAIN, **change))
    assert result.state is state, result.text


def test_a_public_address_names_its_gateway() -> None:
    assert drain.gateway_of("203.0.113.9", {"gw-1": ["203.0.113.1"], "gw-2": ["203.0.113.9"]}) == "gw-2"
    assert drain.gateway_of("192.0.2.1", {"gw-1": []}) == ""


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), min_size=1, max_size=60), st.integers(1, 7))
def test_gaps_are_those_of_a_plain_loop(steps: list[tuple[int, int]], piece: int) -> None:
    gaps, now, last, worst = Gaps(4), 1000, dict[int, int](), dict[int, int]()
    flows, times = [], []
    for flow, step in steps:
        now += step
        flows.append(flow)
        times.append(now)
        if flow in last:
            worst[flow] = max(worst.get(flow, 0), now - last[flow])
        last[flow] = now
    for first in range(0, len(flows), piece):
        gaps.take(np.array(flows[first : first + piece]), np.array(times[first : first + piece]))
    for flow, at in last.items():
        assert gaps.last[flow] == at
        assert gaps.longest[flow] == worst.get(flow, 0)
        assert gaps.frames[flow] == flows.count(flow)


def test_too_many_flows_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        FlowsSpec.from_dict({"protocol": "udp", "source": "", "destination": "", "dport": 1, "slots": 100_000})


SESSION = SessionSeen(
    "s", "t", 5, received=5, finished=True, connections=2, breaks=["ConnectionResetError"], outages_ms=[80.0]
)
FACTS = {"t": {"pieces": 5, "makers": ["a"] * 5, "refused": 0}}
CASE = CaseSeen("worker fails", [SESSION], FACTS, must_break=True)


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, State.PASS),
        ({"sessions": [replace(SESSION, breaks=[])]}, State.UNKNOWN),
        ({"sessions": [replace(SESSION, finished=False)]}, State.FAIL),
        ({"sessions": [replace(SESSION, wrong=1)]}, State.FAIL),
        ({"sessions": [replace(SESSION, repeated=1)]}, State.FAIL),
        ({"sessions": []}, State.ERROR),
        ({"may_break": False}, State.FAIL),
        ({"within_ms": 50.0}, State.FAIL),
        ({"store": {}}, State.ERROR),
        ({"store": {"t": {"pieces": 5, "makers": ["a"] * 5, "refused": 1}}}, State.FAIL),
        ({"store": {"t": {"pieces": 6, "makers": ["a"] * 6, "refused": 0}}}, State.FAIL),
    ],
)
def test_sessions(change: dict[str, Any], state: State) -> None:
    result = judge_session("vip", replace(CASE, **change))
    assert result.state is state, result.text


def test_the_store_lets_work_be_done_once() -> None:
    now = [0.0]
    store = Store(lambda: now[0], lease_s=1.0)
    key = {"session": "s", "token": "t"}

    def ask(**fields: Any) -> dict[str, Any]:
        return store.answer({**key, **fields})

    assert ask(op="claim", worker="a")["granted"]
    assert not ask(op="claim", worker="b")["granted"]
    assert ask(op="add", worker="a", number=0, text="x")["added"]
    assert not ask(op="add", worker="b", number=1, text="y")["added"]
    now[0] = 5.0
    assert ask(op="claim", worker="b") == {"granted": True, "next": 1}
    assert not ask(op="add", worker="a", number=1, text="late")["added"]
    assert ask(op="facts") == {"pieces": 1, "makers": ["a"], "refused": 2}
    assert "error" in ask(op="nonsense")


def _reports(spec: FlowsSpec, **change: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both sides' reports of flows that were silent from 1.0 to 1.4 s and talked on to 3 s, in ns after 10^18."""
    at = 10**18
    zeros = np.zeros(spec.total, np.int64)
    gaps = {name: zeros.copy() for name in ("first", "last", "before", "after", "silence", "frames")}
    for name, second in {"first": 0.1, "last": 3.0, "before": 1.0, "after": 1.4}.items():
        gaps[name][: spec.slots] = at + int(second * 1e9)
    gaps["silence"][: spec.slots] = int(0.4e9)
    canaries = at + np.arange(1, spec.canaries + 1) * int(0.1e9)
    opened = np.concatenate([np.full(spec.long, at), canaries])
    gaps["first"][spec.long :] = canaries
    sends = np.zeros(5000, np.int32)
    sends[99] = 100
    side = {"gaps": gaps, "resets": zeros, "send_gaps": sends, "port": {"ring_drops": 0}, "pause_s": 0.02}
    source = np.full(spec.total, int(IPv4Address("203.0.113.1")))
    more = {"opened": opened, "src": source, "moved_to": zeros, "moved_at": zeros}
    return {**side, **more, **change}, {**side, **more, **change}


SPEC = FlowsSpec("udp", "10.1.0.1", "198.18.0.1", 7000, 4, canaries=30)


def test_reports_of_a_failover_that_was_too_slow_fail() -> None:
    seen = observed(SPEC, *_reports(SPEC))
    assert (seen.resolution_ms, len(seen.slots), seen.slots[0].outage_ms) == (10.0, 4, 400.0)
    assert judge.judge("gw", seen, replace(STATIC, within_ms=500.0)).state is State.PASS
    slow = judge.judge("gw", seen, replace(STATIC, within_ms=300.0))
    assert slow.state is State.FAIL
    assert "4 were out for more than 300 ms" in slow.text


def test_a_tester_that_sends_seldom_is_not_an_outage_at_the_end_and_not_a_fine_measurement() -> None:
    initiator, responder = _reports(SPEC)
    for side in (initiator, responder):
        side["gaps"]["after"][:] = 0
        side["gaps"]["silence"][: SPEC.slots] = int(0.25e9)
    assert not [slot for slot in observed(SPEC, initiator, responder).slots if slot.survived]
    late = np.zeros(5000, np.int32)
    late[1200] = 100
    seen = observed(SPEC, {**initiator, "send_gaps": late}, responder)
    assert all(slot.survived for slot in seen.slots)
    assert judge.judge("gw", seen, replace(STATIC, within_ms=480.0)).state is State.UNKNOWN
    assert judge.judge("gw", seen, replace(STATIC, within_ms=484.0)).state is State.PASS
    late[:] = 0
    late[-1] = 100
    assert observed(SPEC, {**initiator, "send_gaps": late}, responder).resolution_ms == float("inf")


def test_the_last_of_several_replacements_is_where_a_connection_ended_up() -> None:
    initiator, responder = _reports(SPEC)
    initiator["resets"] = np.where(np.arange(SPEC.total) < SPEC.slots, 10**18 + int(1e9), 0)
    for number, (address, second) in enumerate([("203.0.113.5", 1.5), ("203.0.113.1", 2.0)], 1):
        flow = SPEC.slots * number
        initiator["gaps"]["first"][flow] = 10**18 + int(second * 1e9)
        responder["src"][flow] = int(IPv4Address(address))
    slot = observed(SPEC, initiator, responder).slots[0]
    assert (slot.survived, slot.public_after, slot.remade_ms) == (False, "203.0.113.1", 1000.0)
