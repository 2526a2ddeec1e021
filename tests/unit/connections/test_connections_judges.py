from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.plan import Exposure
from validators.connections import command, gateway_table, idle_judge, ladder_judge, nat_judge
from validators.connections.arrays import packed, unpacked
from validators.connections.from_plan import Target
from validators.connections.idle import IdleSpec
from validators.connections.idle_judge import IdleRow, ages_around
from validators.connections.search import Outcome, Search
from validators.connections.step import StepObservation, StepSpec
from validators.connections.tuples import TupleSpace
from validators.results import State

pytestmark = pytest.mark.unit

STEP = StepObservation(
    "udp", 1000.0, 1000.0, 500, 500, 500, 0, 0, 0, 0, 0, 0, 0, {}, {"203.0.113.1": 500}, {}, 0.5, 0.5, 1000.0
)
ROW = IdleRow("udp-two-way", 119.8, 120.1, 40, 0, 0, 0, 0)


@given(st.integers(1, 400), st.integers(1, 300), st.integers(1, 9), st.integers(1, 9), st.integers(1, 99))
def test_every_connection_is_a_different_one(ports: int, sources: int, dst: int, dports: int, seed: int) -> None:
    space = TupleSpace((10, sources), (1000, 999 + ports), (90, dst), (1, dports))
    count = min(space.size, 500)
    picked = space.pick(count, seed=seed)
    ends = set(zip(picked.src, picked.sport, picked.dst, picked.dport, strict=True))
    assert len(ends) == count


def test_more_connections_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        TupleSpace((1, 1), (1, 10), (1, 1), (1, 1)).pick(11)


@given(st.floats(2_000, 900_000), st.floats(5_000, 900_000))
def test_the_search_ends_at_the_knee_of_gateway_or_tester(gateway: float, tester: float) -> None:
    search = Search(1000, 1_000_000, most_steps=60)
    while (asked := search.ask()) is not None:
        real = min(asked, tester)
        outcome = Outcome.FAILED if real > gateway else Outcome.PASSED
        if outcome is Outcome.PASSED and real < 0.97 * asked:
            outcome = Outcome.TESTER_LIMITED
        search.tell(asked, real, outcome)
    assert search.passed <= min(gateway, tester)
    assert search.passed >= 0.9 * min(gateway, tester)


def test_a_ladder_that_never_fails_says_that_the_ladder_ended() -> None:
    search = Search(10, 100)
    while (asked := search.ask()) is not None:
        search.tell(asked, asked, Outcome.PASSED)
    assert (search.passed, search.limit) == (100, "ladder")


@pytest.mark.parametrize(
    ("change", "state", "words"),
    [
        ({}, State.PASS, "500 of 500"),
        ({"validated": 499}, State.FAIL, "did not answer"),
        ({"arrived": 400, "validated": 400}, State.FAIL, "did not arrive"),
        ({"wrong_ends": 1}, State.FAIL, "other ends"),
        ({"shared_ends": 2}, State.FAIL, "share their translated ends"),
        ({"bad_checksums": 2}, State.FAIL, "wrong checksum"),
        ({"real_per_s": 960.0}, State.UNKNOWN, "tester-limited"),
        ({"validated": 499, "tester_drops": 1}, State.UNKNOWN, "tester itself lost"),
        ({"public_addresses": {"10.1.1.1": 3}}, State.FAIL, "not of the pool: 10.1.1.1"),
        ({"gateway": {"counters": {"early_drop": 7}}}, State.PASS, "early_drop 7"),
        ({"gateway": {"softnet_drops": 3}}, State.PASS, "gateway dropped 3 packets before its stack"),
        (
            {
                "gateway": {"count_peak": 812, "max": 65536, "cpu_busy": 0.34},
                "handshake_ms": {"p50": 0.9, "p99": 2.14, "flows": 5},
            },
            State.PASS,
            "/s; handshake p50 0.9 ms, p99 2.1 ms; NAT table 812 of 65,536; gateway CPU 34 %",
        ),
    ],
)
def test_steps(change: dict[str, Any], state: State, words: str) -> None:
    result = ladder_judge.judge_step("gw", replace(STEP, **change), pool=["203.0.113.1"])
    assert (result.state, words in result.text) == (state, True), result.text


@pytest.mark.parametrize(
    ("knee", "limit", "state"),
    [(900, "device", State.FAIL), (900, "tester", State.UNKNOWN), (1000, "device", State.PASS)],
)
def test_a_ladder_is_held_to_what_was_wanted(knee: float, limit: str, state: State) -> None:
    search = Search(1, 1, passed=knee, failed=knee * 2, limit=limit, steps=3)
    assert ladder_judge.judge_ladder("gw", [STEP], search, wanted_per_s=1000).state is state


@pytest.mark.parametrize(
    ("bad_runs", "knee", "words"), [(1, 4000, "1 step lost something once"), (2, 1000, "the gateway")]
)
def test_a_step_that_fails_once_is_no_knee(bad_runs: int, knee: float, words: str) -> None:
    """Something else had the CPU for a moment; a gateway at its limit loses something each time."""
    asked: list[float] = []

    def run(rate: float) -> StepObservation:
        asked.append(rate)
        lost = 1 if rate == 2000 and asked.count(2000) <= bad_runs else 0
        return replace(STEP, asked_per_s=rate, real_per_s=rate, validated=500 - lost)

    search = Search(1000, 4000, precision=0.5)
    steps = ladder_judge.climb(run, search)
    result = ladder_judge.judge_ladder("gw", steps, search)
    assert search.passed == knee
    assert words in result.text
    assert State.FAIL in [part.state for part in result.parts]


@pytest.mark.parametrize(("validated", "steps"), [(0, 2), (499, 6)])
def test_a_gateway_that_lets_nothing_through_is_not_asked_ever_slower(validated: int, steps: int) -> None:
    """Each halving of the rate doubles what a step takes: a ladder through a broken gateway went on for hours."""
    search = Search(100, 6400)
    seen = ladder_judge.climb(lambda rate: replace(STEP, asked_per_s=rate, validated=validated), search)
    assert len(seen) == steps
    result = ladder_judge.judge_ladder("gw", seen, search)
    assert (result.state, "every connection validated up to 0/s; the gateway ended it" in result.text) == (
        State.FAIL,
        True,
    )


def test_a_step_that_is_run_again_opens_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the first run may still be in the gateway's table, and its late frames on their way."""
    seen: list[StepSpec] = []

    def fails(_inside: object, _outside: object, spec: StepSpec, **_: object) -> StepObservation:
        seen.append(spec)
        return replace(STEP, asked_per_s=spec.rate_per_s, validated=499)

    monkeypatch.setattr(command, "ladder_step", fails)
    place = SimpleNamespace(addresses=("10.1.0.1", "10.1.0.2"))
    testers = SimpleNamespace(places={"inside": place, "outside": place}, inside=None, outside=None, gateway=None)
    shown = Exposure("out", "acme", "masquerade", "internet", ("10.1.0.0/24",), ("203.0.113.0/28",), 120, ())
    asked: Any = {"protocol": "udp", "connections": 500, "start": 100.0, "highest": 200.0, "wanted": None}
    assert command.probe_ladder(Target(shown, "Vrf-acme"), testers, **asked).state is State.FAIL  # type: ignore[arg-type]
    assert len({spec.skip for spec in seen}) == len(seen) > 2
    assert all(one.run != two.run for one, two in pairwise(seen))


def test_an_empty_ladder_is_no_pass() -> None:
    assert ladder_judge.judge_ladder("gw", [], Search(1, 1), wanted_per_s=10).state is State.ERROR


@pytest.mark.parametrize(
    ("change", "declared", "state"),
    [
        ({}, 120, State.PASS),
        ({}, 60, State.FAIL),
        ({}, 300, State.FAIL),
        ({"survived": 119.0, "died": 121.0}, 120, State.UNKNOWN),
        ({"probed": 0}, 120, State.ERROR),
        ({"mixed": 9}, 120, State.ERROR),
        ({"died": math.inf, "survived": 100.0}, 120, State.UNKNOWN),
        ({"died": math.inf, "survived": 130.0}, 120, State.FAIL),
    ],
)
def test_idle_rows(change: dict[str, Any], declared: float, state: State) -> None:
    result = idle_judge.judge("gw", [replace(ROW, **change)], {"udp-two-way": declared})
    assert result.state is state, result.text


def test_a_tcp_timer_below_the_rfc_is_reported_and_an_undeclared_kind_decides_nothing() -> None:
    row = replace(ROW, kind="tcp-established")
    result = idle_judge.judge("gw", [row, ROW], {"tcp-established": 120})
    assert result.state is State.PASS
    assert "RFC 5382" in result.parts[0].text
    assert result.parts[1].state is State.UNKNOWN


def test_nothing_declared_is_no_pass() -> None:
    assert idle_judge.judge("gw", [ROW], {}).state is State.UNKNOWN


@given(st.floats(1, 20), st.floats(0.5, 22))
def test_rows_find_the_timer_wherever_it_is(declared: float, real: float) -> None:
    ages = ages_around(declared)
    spec = IdleSpec("10.0.0.1", "10.0.0.2", {"icmp": ages}, {})
    age = np.array(ages)
    seen = {"alive": age < real, "wrong_ends": np.zeros(len(ages), bool)}
    (row,) = idle_judge.rows(spec, seen, {"real_age": age, "age_most": age, "refused": np.zeros(len(ages), bool)})
    assert row.survived < real or row.survived == 0
    assert row.died >= real
    if math.isfinite(row.died):
        assert row.resolution <= 0.5


@pytest.mark.parametrize("odd", [11.6, 12.3])
def test_one_flow_on_the_wrong_side_of_a_timer_does_not_say_which_side_is_right(odd: float) -> None:
    """A probe was lost below the timer, or one came through above it: a timer at either place explains as much."""
    ages = np.array([11.0, 11.4, 11.6, 11.8, 12.1, 12.3, 12.7])
    alive = (ages < 12) ^ (ages == odd)
    spec = IdleSpec("10.0.0.1", "10.0.0.2", {"icmp": list(ages)}, {})
    none = np.zeros(len(ages), bool)
    sides = {"alive": alive, "wrong_ends": none}, {"real_age": ages, "age_most": ages, "refused": none}
    (row,) = idle_judge.rows(spec, *sides)
    assert (row.mixed, row.survived <= 11.8, row.died >= 12.1) == (1, True, True)
    assert idle_judge.judge("gw", [row], {"icmp": 12.0}).state is State.UNKNOWN
    assert idle_judge.judge("gw", [row], {"icmp": 6.0}).state is State.FAIL


def test_who_died_was_silent_for_at_most_so_long_and_who_lived_for_at_least() -> None:
    """The prober was held up while it sent: between two looks at its clock the probe went out."""
    spec = IdleSpec("10.0.0.1", "10.0.0.2", {"icmp": [11.8, 11.9]}, {})
    none = np.zeros(2, bool)
    seen = {"alive": np.array([True, False]), "wrong_ends": none}
    ages = {"real_age": np.array([11.8, 11.9]), "age_most": np.array([11.81, 12.1]), "refused": none}
    (row,) = idle_judge.rows(spec, seen, ages)
    assert (row.survived, row.died) == (11.8, 12.1)


def test_bad_specs_are_refused() -> None:
    with pytest.raises(ValueError, match="no such kind"):
        IdleSpec.from_dict({"source": "", "destination": "", "ages": {"sctp": [1]}, "ports": {}})
    with pytest.raises(ValueError, match="do not fit"):
        IdleSpec.from_dict({"source": "", "destination": "", "ages": {"icmp": [1.0] * 60000}, "ports": {}})


OUT = {
    "reached": True,
    "seen_as": "203.0.113.1",
    "seen_port": 40001,
    "sent_port": 40001,
    "checksums": True,
    "answered": True,
}
ERRORS = {"errors": {"too-big": {"arrived": True, "checksum": True, "inner_as_sent": True}}, "flow_lives": True}
IN = {
    "reached": True,
    "at": "10.1.0.1:7011",
    "client_seen_as": "198.18.0.9:43001",
    "right_end": True,
    "port_kept": True,
    "client_kept": True,
    "checksums": True,
    "answered": True,
}
STATIC = {
    "outbound": {"udp": OUT},
    "inbound": {"udp": IN},
    "icmp-errors": ERRORS,
    "unsolicited": {"private": False},
    "state": {"known": True, "entries": 0},
    "hairpin": {"reached": True, "turned": True, "seen_as": "203.0.113.1", "answered": True},
}
EXPOSED = nat_judge.Exposed("static", frozenset({"203.0.113.1"}))


@pytest.mark.parametrize(
    ("change", "state", "words"),
    [
        ({}, State.PASS, "promises kept"),
        ({"state": {"known": True, "entries": 2}}, State.FAIL, "2 entries"),
        ({"state": {"known": False, "entries": 0}}, State.ERROR, "nobody looked"),
        ({"outbound": {"udp": {**OUT, "seen_as": "10.1.0.1"}}}, State.FAIL, "not an address of the exposure"),
        ({"outbound": {"udp": {**OUT, "seen_port": 7}}}, State.FAIL, "sent from port 40001"),
        ({"outbound": {"udp": {"reached": False}}}, State.FAIL, "do not arrive"),
        ({"inbound": {"udp": {"reached": False}}}, State.FAIL, "does not get through"),
        ({"inbound": {"udp": {**IN, "client_kept": False}}}, State.FAIL, "client_kept"),
        ({"unsolicited": {"private": True}}, State.FAIL, "reaches the inside through its private address"),
        ({"hairpin": None}, State.PASS, "promises kept"),
    ],
)
def test_static_nat(change: dict[str, Any], state: State, words: str) -> None:
    result = nat_judge.judge("x", {**STATIC, **change}, EXPOSED)
    assert (result.state, words in result.text) == (state, True), result.text


def test_a_behaviour_is_only_held_against_a_gateway_that_declares_it() -> None:
    seen = {**STATIC, "icmp-errors": {"errors": {"too-big": {"arrived": False}}, "flow_lives": True}}
    assert nat_judge.judge("x", seen, EXPOSED).state is State.PASS
    assert nat_judge.judge("x", seen, replace(EXPOSED, expected={"ICMP too-big": "translated"})).state is State.FAIL
    assert nat_judge.judge("x", seen, replace(EXPOSED, expected={"ICMP too-big": "lost"})).state is State.PASS


@pytest.mark.parametrize(
    ("change", "state", "words"),
    [
        ({}, State.PASS, "promises kept"),
        ({"turned": False}, State.FAIL, "hairpin: no, declared yes; RFC 4787 REQ-9 asks for yes"),
        ({"seen_as": "203.0.113.9"}, State.PASS, "promises kept"),  # the tenant's pool
        ({"seen_as": "10.1.0.9"}, State.FAIL, "arrives with the source 10.1.0.9, which is not public"),
        ({"answered": False}, State.FAIL, "its answers do not come back from the public end"),
    ],
)
def test_a_hairpin_is_a_conversation(change: dict[str, Any], state: State, words: str) -> None:
    worn = frozenset({"203.0.113.9"})
    exposed = replace(EXPOSED, expected={"hairpin": "yes"}, hairpin_as=worn)
    result = nat_judge.judge("x", {**STATIC, "hairpin": {**STATIC["hairpin"], **change}}, exposed)
    assert (result.state, words in result.text) == (state, True), result.text


def test_what_is_declared_and_less_than_the_rfc_asks_is_said() -> None:
    seen = {**STATIC, "hairpin": {"reached": True, "turned": False}}
    result = nat_judge.judge("x", seen, replace(EXPOSED, expected={"hairpin": "no"}))
    assert result.state is State.PASS
    assert result.text.endswith("not as the RFCs ask, as declared: hairpin (RFC 4787 REQ-9)")


def test_another_tenants_host_with_the_same_address_is_no_state_of_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "ipv4 2 udp 17 29 src={0} dst={1} sport=7 dport=8 src={1} dst={2} sport=8 dport=7 mark=513 zone=2 use=2"
    table = [line.format("10.1.0.17", "192.0.2.7", "203.0.113.12")]
    monkeypatch.setattr(gateway_table, "_table", lambda: table)
    assert gateway_table.entries("10.1.0.17/32", ["198.18.0.10"])["entries"] == 0
    table.append(line.format("10.1.0.17", "198.18.0.10", "203.0.113.30"))
    assert gateway_table.entries("10.1.0.17/32", ["198.18.0.10"])["entries"] == 1


FLOW = {"sent": 2001, "seen": 2001, "address": "203.0.113.1"}
SHARES = {
    "gw-1": frozenset({"203.0.113.0", "203.0.113.1"}),
    "gw-2": frozenset({"203.0.113.2", "203.0.113.3"}),
}


@pytest.mark.parametrize(
    ("flows", "hosts", "state", "words"),
    [
        ([FLOW], ["203.0.113.0"], State.PASS, "2 of 2 pool addresses used by 2 hosts and ports"),
        ([FLOW], ["203.0.113.1"], State.FAIL, "1 of 2 pool addresses used by 2 hosts and ports; the others carry"),
        ([FLOW], ["203.0.113.0", None], State.FAIL, "1 of 3 flows do not come out"),
        ([FLOW, {"sent": 53, "seen": None}], ["203.0.113.0"], State.FAIL, "1 of 3 flows do not come out"),
        ([FLOW], ["203.0.113.0", "203.0.113.2"], State.FAIL, "shares of 2 gateways at the same time"),
        ([FLOW], ["203.0.113.0", "203.0.113.9"], State.FAIL, "not of the pool: 203.0.113.9"),
        ([{"sent": 53, "seen": None}], [None], State.ERROR, "no flow was seen outside"),
    ],
)
def test_pool_use(flows: list[Any], hosts: list[Any], state: State, words: str) -> None:
    public = frozenset().union(*SHARES.values())
    exposed = nat_judge.Exposed("masquerade", public, {}, SHARES)
    row = nat_judge.ports("x", {"flows": flows, "hosts": hosts}, exposed)[0]
    assert (row.state, words in row.text) == (state, True), row.text


@pytest.mark.parametrize(
    ("ends", "name"),
    [
        ([("a", 1), ("a", 1), ("a", 1)], "endpoint-independent"),
        ([("a", 1), ("a", 1), ("a", 2)], "address-dependent"),
        ([("a", 1), ("a", 2), ("a", 3)], "address-and-port-dependent"),
        ([("a", 1), None, ("a", 3)], None),
    ],
)
def test_mapping_names(ends: list[Any], name: str | None) -> None:
    assert nat_judge.mapping(ends) == name


def test_port_forward_that_leads_elsewhere_or_has_open_neighbours_fails() -> None:
    arrived = {
        "forward": ["tcp", 443, "10.1.0.10", 8443],
        "reached": True,
        "at": ["10.1.0.10", 8443],
        "right_end": True,
    }
    arrived |= {"client_seen_as": "198.18.1.1:42001", "client_kept": True, "checksums": True, "answered": True}
    seen = {"inbound": [arrived], "unmapped": {"tried": 2, "reached": []}, "unsolicited": {"private": False}}
    seen["hairpin"] = {"reached": True, "turned": True, "seen_as": "203.0.113.64", "answered": True}
    exposed = nat_judge.Exposed("portForward", frozenset({"203.0.113.64"}))
    assert nat_judge.judge("x", seen, exposed).state is State.PASS
    assert nat_judge.judge("x", {**seen, "inbound": [{**arrived, "right_end": False}]}, exposed).state is State.FAIL
    assert (
        nat_judge.judge("x", {**seen, "unmapped": {"tried": 2, "reached": [["tcp", 444]]}}, exposed).state is State.FAIL
    )
    assert nat_judge.judge("x", {**seen, "unsolicited": {"private": True}}, exposed).state is State.FAIL


def test_arrays_travel_in_json() -> None:
    data = {"a": [np.arange(5, dtype=np.uint16)], "b": 3, "c": np.int64(4)}
    back = unpacked(packed(data))
    assert back["a"][0].tolist() == [0, 1, 2, 3, 4]
    assert (back["b"], back["c"]) == (3, 4)
