from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from validators.connections import idle_judge, ladder_judge, nat, nat_judge
from validators.connections.controller import AgentProcess
from validators.connections.frames import build
from validators.connections.idle import KINDS, IdleSpec
from validators.connections.layout import PROTOCOLS, address
from validators.connections.nat_bench import Bench, Side
from validators.connections.passes import flows_during, idle_pass, ladder_step
from validators.connections.port import Port, PortSpec
from validators.connections.rig import INSIDE, INSIDE_HOP, OUTSIDE, OUTSIDE_HOP, Rig, Timers
from validators.connections.step import StepSpec
from validators.connections.tuples import TupleSpace
from validators.failover.flows import FlowsSpec
from validators.failover.judge import Declared, judge
from validators.results import State

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nft"),
]
POOL = [f"203.0.113.{i}" for i in range(8)]
SPACE = TupleSpace((address("10.1.1.1"), 16), (1024, 65000), (address("198.18.1.1"), 4), (1, 60000))
TIMERS = Timers(
    {"established": 4, "syn_sent": 2, "syn_recv": 2, "fin_wait": 3, "close_wait": 3, "close": 2},
    {"unreplied": 2, "replied": 4},
    {"unreplied": 2, "replied": 2},
    3,
)


@dataclass
class Around:
    rig: Rig
    inside: AgentProcess
    outside: AgentProcess
    gateway: AgentProcess
    runs: Iterator[int] = field(default_factory=lambda: iter(range(1, 15)))


@pytest.fixture(scope="module")
def around() -> Iterator[Around]:
    python = sys.executable
    with (
        Rig(TIMERS, gateways=3) as rig,
        AgentProcess("inside", rig.prefix(rig.inside), python=python) as inside,
        AgentProcess("outside", rig.prefix(rig.outside), python=python) as outside,
        AgentProcess("gateway", rig.prefix(rig.gateway), python=python) as gateway,
    ):
        inside.call("open", name="p", interface="tester", addresses=INSIDE, next_hop=INSIDE_HOP, ring_megabytes=8)
        outside.call("open", name="p", interface="tester", addresses=OUTSIDE, next_hop=OUTSIDE_HOP, ring_megabytes=8)
        yield Around(rig, inside, outside, gateway)


@pytest.mark.parametrize("protocol", ["udp", "tcp", "icmp"])
def test_every_connection_is_validated_through_masquerade(around: Around, protocol: str) -> None:
    spec = StepSpec(protocol, 3000, 5000, SPACE, answer_every=1, settle_s=0.2, run=next(around.runs))
    step = ladder_step(around.inside, around.outside, spec, gateway=around.gateway)
    result = ladder_judge.judge_step("rig", step, pool=POOL)
    # a busy host may make the tester late, but nothing may be lost
    assert result.state in (State.PASS, State.UNKNOWN), result.text
    assert step.validated == 3000
    assert step.gateway["count_peak"] >= 3000
    assert step.handshake_ms["p99"] > 0


def test_a_closed_gateway_fails_the_step(around: Around) -> None:
    spec = StepSpec("udp", 200, 2000, SPACE, settle_s=0.1, run=next(around.runs))
    around.rig.drain()
    try:
        step = ladder_step(around.inside, around.outside, spec)
    finally:
        around.rig.drain(undo=True)
    assert ladder_judge.judge_step("rig", step).state is State.FAIL


def test_idle_truth_table(around: Around) -> None:
    declared = TIMERS.declared()
    ages = {kind: idle_judge.ages_around(declared.get(kind, 2), beyond_s=1.5) for kind in KINDS}
    spec = IdleSpec("10.1.3.3", "198.18.3.3", ages, {"dns": 53}, run=next(around.runs))
    rows = idle_pass(around.inside, around.outside, spec)
    result = idle_judge.judge("rig", rows, declared)
    assert result.state is State.PASS, result.text
    wrong = idle_judge.judge("rig", rows, {**declared, "udp-two-way": 30})
    assert wrong.state is not State.PASS


def _bench(around: Around) -> Bench:
    bench = Bench(Side(around.inside), Side(around.outside), 0.06)
    bench.inside.listen()
    bench.outside.listen()
    return bench


def test_nat_of_the_three_modes(around: Around) -> None:
    bench = _bench(around)
    ends = nat.Ends("10.1.3.1", "10.1.3.2", "198.18.1.1", "198.18.1.2", "203.0.113.1")
    seen = nat.masquerade(bench, ends)
    result = nat_judge.judge("masquerade", seen, nat_judge.Exposed("masquerade", frozenset(POOL)))
    assert result.state is State.PASS, result.text
    # the same observations under a smaller declared pool are a failure
    assert nat_judge.judge("masquerade", seen, nat_judge.Exposed("masquerade", frozenset(POOL[:1]))).state is State.FAIL

    forwards = (("tcp", 443, "10.1.0.10", 8443), ("udp", 4433, "10.1.0.10", 8433))
    ends = nat.Ends("10.1.0.10", "10.1.3.2", "198.18.1.1", "198.18.1.2", "203.0.113.64", forwards=forwards)
    exposed = nat_judge.Exposed("portForward", frozenset({"203.0.113.64"}))
    result = nat_judge.judge("forward", nat.port_forward(bench, ends), exposed)
    assert result.state is State.PASS, result.text

    ends = nat.Ends("10.1.200.3", "10.1.200.4", "198.18.1.1", "198.18.1.2", "203.0.113.131")
    exposed = nat_judge.Exposed("static", frozenset({"203.0.113.131"}))
    result = nat_judge.judge("static", nat.static(bench, ends, around.gateway), exposed)
    assert result.state is State.PASS, result.text


@pytest.mark.parametrize(("source", "mode"), [("10.1.3.1", "masquerade"), ("10.1.200.1", "static")])
def test_failover_kills_stateful_flows_and_spares_static_ones(around: Around, source: str, mode: str) -> None:
    around.rig.switch(0)

    def event() -> None:
        around.rig.cut()
        around.rig.switch(1)

    run = next(around.runs)
    spec = FlowsSpec("udp", source, "198.18.1.1", 7000, 20, canaries=2000, run=run, first_port=20000 + 2000 * run)
    seen = flows_during(around.inside, around.outside, spec, event, before_s=0.5, after_s=2.0)
    # a loaded test host may be slow: only the semantics are held to here, not the resolution
    result = judge("rig", seen, Declared(mode, 2500.0, frozenset(), frozenset()))
    assert result.state is State.PASS, result.text
    if mode == "masquerade":
        assert {slot.public_after for slot in seen.slots} <= {f"203.0.113.{i}" for i in range(8, 16)}
    around.rig.switch(0)


def test_a_connection_that_is_made_again_on_a_gateway_that_dies_too_is_followed(around: Around) -> None:
    around.rig.switch(0)

    def event() -> None:
        for member in (1, 2):
            around.rig.cut()
            around.rig.switch(member)
            time.sleep(1.0)

    run = next(around.runs)
    spec = FlowsSpec("udp", "10.1.3.1", "198.18.1.1", 7000, 10, canaries=1000, run=run, first_port=20000 + 2000 * run)
    seen = flows_during(around.inside, around.outside, spec, event, before_s=0.5, after_s=1.0)
    assert {slot.public_after for slot in seen.slots} <= {f"203.0.113.{i}" for i in range(16, 24)}
    assert not [slot for slot in seen.slots if slot.remade_ms is None]
    around.rig.switch(0)


def test_a_small_ring_holds_a_trickle_that_nobody_reads_for_a_while(around: Around) -> None:
    run, count = next(around.runs), 300
    spec = FlowsSpec("udp", "10.1.4.1", "198.18.2.1", 7000, 1, interval_s=0.002, canaries=1, run=run)
    port = Port(PortSpec("tester", "198.18.2.0/24", OUTSIDE_HOP, netns=around.rig.outside, ring_megabytes=4))
    try:
        ring = port.ring(PROTOCOLS["udp"])
        ring.begin()
        tester = Port(PortSpec("tester", "10.1.4.0/24", INSIDE_HOP, netns=around.rig.inside))
        for _ in range(count):
            tester.sender.send(build(tester.template(PROTOCOLS["udp"]), 1, **_one(spec)))
            time.sleep(0.002)
        tester.close()
        time.sleep(0.1)
        frames, _ = ring.read()
        assert (len(frames), ring.statistics()["drops"]) == (count, 0)
        ring.drops = 3
        ring.begin()
        assert port.drops()["ring_drops"] == 0  # what an earlier measurement lost is not this one's
    finally:
        port.close()


def _one(spec: FlowsSpec) -> dict[str, int]:
    ends = {"src": address(spec.source), "sport": 20000, "dst": address(spec.destination), "dport": spec.dport}
    return {**ends, "flow": 0, "number": 0}


def test_an_agent_that_cannot_open_a_port_says_why(around: Around) -> None:
    from fabric.problem import CouldNotRunError

    with pytest.raises(CouldNotRunError, match="nowhere"):
        around.inside.call("open", name="x", interface="nowhere", addresses=INSIDE, next_hop=INSIDE_HOP)
    with pytest.raises(CouldNotRunError, match="no command"):
        around.inside.call("fly")


def test_closing_a_rig_leaves_nothing() -> None:
    with Rig() as rig:
        names = [rig.inside, rig.outside, *rig.gateways]
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout.split()
    assert not set(names) & set(left)
