"""Watermarks around the sets of flows of `kvfabric probe rdma`: who is asked, how long it waits, what it comes to."""

from __future__ import annotations

import json

import pytest

from fabric.qos.headroom import lossless_ports
from tests.unit.accept.simulated import SimulatedSite
from validators.agents.agent import Finished
from validators.devices.answers import Ask as DeviceAsk
from validators.devices.dialects import DIALECTS, SONIC
from validators.rdma import probe, watermarks
from validators.rdma.endpoints import find
from validators.rdma.launch import Row
from validators.rdma.places import SshPlaces
from validators.rdma.sets import Flow
from validators.rdma.watch import stations_of
from validators.results import State

pytestmark = pytest.mark.unit

READER = "compute-001:be0-port0"
QUESTIONS = {command: question for question, command in DIALECTS[SONIC].items()}


class Site(SshPlaces):
    """A real site whose switches answer what SONiC would, and count what they were asked."""

    def __init__(self, plan, broken=None, silent=False) -> None:
        super().__init__(plan)
        self.site, self.silent = SimulatedSite(plan, broken, physical=True), silent
        self.looks: dict[tuple[str, str], int] = {}

    def agent(self, device):
        return Switch(self, device)


class Switch:
    python = "python3"

    def __init__(self, places, device) -> None:
        self.places, self.name = places, device

    def execute(self, argv, stdin, timeout_s):
        question = QUESTIONS.get(argv[-1])
        if question is None or self.places.silent:
            return Finished(127, b"", b"sh: 1: not found")
        asked = self.places.looks.setdefault((self.name, question), 0)
        self.places.looks[self.name, question] += 1
        ask = DeviceAsk(self.name, question)
        answer = self.places.site.gather([ask], asked)[ask]
        return Finished(1 if answer.error else 0, answer.text.encode(), answer.error.encode())


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(watermarks.time, "sleep", found.append)
    return found


@pytest.fixture
def quick(monkeypatch):
    """Rounds that take no time and count nothing."""

    def round_of(plan, flows, *_):
        drive = {"payload_gbps": 1.0, "bytes": 1, "transfers": 1, "unmeasured": 0, "late_s": 0.0}
        return [Row(flow, drive, {}) for flow in flows], {"skipped": "a test"}

    monkeypatch.setattr(probe, "_counted_round", round_of)


def _around(plan, places):
    flow = Flow(find(plan, READER)[0], find(plan, "compute-003:be0-port0")[0])
    return watermarks.Watermarks(stations_of(plan, [flow], places, "tcp"), places)


def test_switches_are_asked_twice_with_a_poll_of_the_asic_between(lab_plan, slept) -> None:
    said: list[str] = []
    places = Site(lab_plan)
    seen = json.loads(json.dumps(_around(lab_plan, places).finish("incast", said.append)))
    assert set(places.looks.values()) == {2}
    assert slept == [62.0]
    assert said == ["watermarks: the switches poll their ASICs once more within 62 s"]
    results = watermarks.judge_watermarks(lab_plan, seen, "fabric")
    assert {r.subject for r in results} == {"leaf-01", "leaf-02", "spine-01", "spine-02"}
    assert {r.state for r in results} == {State.PASS}
    assert results[0].text.endswith("; incast ran meanwhile")


def test_headroom_that_an_incast_used_up_fails_with_its_port(lab_plan, slept) -> None:
    port, planned = lossless_ports(lab_plan, lab_plan.switches["leaf-01"])[0]

    def full(text, *, sample):
        row = f"{port.interface} 0 0 0"
        return text.replace(f"{row} 0 ", f"{row} {planned.xoff} ") if sample else text

    places = Site(lab_plan, {("leaf-01", "headroom-watermark"): full})
    results = watermarks.judge_watermarks(
        lab_plan, _around(lab_plan, places).finish("incast", lambda _: None), "fabric"
    )
    (bad,) = (r for r in results if r.state is not State.PASS)
    assert (bad.state, bad.place) == (State.FAIL, f"leaf-01 {port.name} ({port.interface}) priority 3")
    assert "risen in this run from 0" in bad.text


def test_nobody_waits_for_switches_that_do_not_answer(lab_plan, slept) -> None:
    seen = _around(lab_plan, Site(lab_plan, silent=True)).finish("incast", lambda _: None)
    assert slept == []
    results = watermarks.judge_watermarks(lab_plan, seen, "fabric")
    assert {r.state for r in results} == {State.ERROR}
    assert "not found" in results[0].text


def test_a_lab_and_a_way_without_sonic_are_skipped_with_the_reason(lab_plan) -> None:
    for places, text in ((Site(lab_plan), "no SONiC switch"), (Site(lab_plan), "ports are virtual")):
        places.physical = "virtual" not in text
        around = watermarks.Watermarks([], places)
        (result,) = watermarks.judge_watermarks(lab_plan, around.finish("incast", lambda _: None), "fabric")
        assert (result.state, places.looks) == (State.SKIPPED, {})
        assert text in result.text


@pytest.mark.parametrize(
    ("kind", "counters", "looked"), [("incast", True, True), ("incast", False, False), ("pair", True, False)]
)
def test_only_counted_sets_of_flows_are_looked_at(lab_plan, slept, quick, kind, counters, looked) -> None:
    question = probe.Question(kind, "compute-003:be0-port0", READER, count=1 if kind == "incast" else 0)
    seen = probe.collect(lab_plan, question, probe.Ask(), Site(lab_plan), counters=counters, watermarks=True)
    assert ("watermarks" in seen) is looked
    assert "watermarks" not in probe.collect(lab_plan, question, probe.Ask(), Site(lab_plan), counters=counters)


def test_a_fabric_without_an_rdma_class_says_so(lab_plan, monkeypatch) -> None:
    flow = Flow(find(lab_plan, READER)[0], find(lab_plan, "compute-003:be0-port0")[0])

    class Plain:
        fabrics = {"fabric": type("Fabric", (), {"qos": None})}  # noqa: RUF012

    assert probe._why_not_counted(Plain, [[flow]], probe.Ask(), True) == "fabric fabric has no RDMA class to count by"
