"""Counters on a flow's way: which ports, what a round keeps of them, and what is said about it."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from fabric.problem import CouldNotRunError
from validators.agents.agent import Finished
from validators.counters.readings import BYTES, DROPS, PAUSE, Key, Readings
from validators.counters.rules import Expectation, expected_keys
from validators.rdma import probe
from validators.rdma.asking import asking
from validators.rdma.endpoints import find
from validators.rdma.judge import Limits
from validators.rdma.launch import Row
from validators.rdma.path import stages
from validators.rdma.path_judge import judge_counters, links_of_all_rounds, timeline
from validators.rdma.places import LabPlaces, SshPlaces
from validators.rdma.sets import Flow
from validators.rdma.watch import Sampler, ask_all, counting, stations_of
from validators.results import Result, State

pytestmark = pytest.mark.unit

A, B = "compute-001:be0-port0", "compute-003:be1-port0"


@pytest.fixture
def flow(lab_plan) -> Flow:
    found = Flow(find(lab_plan, A)[0], find(lab_plan, B)[0])
    assert found.owner.leaf != found.reader.leaf
    return found


class Node:
    """A device that answers what it is told to, or not at all."""

    name, python = "node", "python3"

    def __init__(self, said: list[str], answer: str | None = "", code: int = 0) -> None:
        self.said, self.answer, self.code = said, answer, code

    def execute(self, argv, stdin: bytes, timeout_s: float) -> Finished:
        self.said.append(argv[-1])
        if self.answer is None:
            raise CouldNotRunError("no route to host")
        return Finished(self.code, self.answer.encode(), b"refused")


class Lab(LabPlaces):
    def __init__(self, plan, **nodes: Node) -> None:
        self.nodes = frozenset([*plan.switches, *plan.servers])
        self.said: list[str] = []
        self.special = nodes

    def agent(self, device: str):
        return self.special.get(device.replace("-", "_")) or Node(self.said)


def test_a_flow_between_leaves_crosses_every_spine(lab_plan, flow: Flow) -> None:
    way = stages(lab_plan, flow)
    assert [stage.name for stage in way] == [
        "owner NIC", "owner's leaf in", "owner's leaf up", "spines in", "spines out", "reader's leaf in",
        "reader's leaf out", "reader NIC",
    ]  # fmt: skip
    assert {use.device for use in way[3].ports} == {"spine-01", "spine-02"}
    assert {use.direction for use in way[2].ports} == {"tx"}
    near = Flow(flow.owner, find(lab_plan, "compute-003:be0-port0")[0])
    short = stages(lab_plan, near)
    assert len(short) == (4 if near.reader.leaf == near.owner.leaf else 8)


def test_stations_are_what_can_be_reached(lab_plan, flow: Flow) -> None:
    lab = Lab(lab_plan)
    found = {station.device: station for station in stations_of(lab_plan, [flow], lab, "auto")}
    assert set(found) == {"compute-001", "compute-003", "leaf-01", "leaf-02", "spine-01", "spine-02"}
    assert found["compute-001"].rdma == {"be0-port0": "compute-001.be0-port0"}
    assert found["leaf-01"].virtual
    real = SshPlaces(lab_plan)
    assert {s.device: s.dialect for s in stations_of(lab_plan, [flow], real, "tcp")} == dict.fromkeys(
        ["leaf-01", "leaf-02", "spine-01", "spine-02"], "sonic"
    )


def test_the_table_goes_away_and_a_device_that_refuses_is_named(lab_plan, flow: Flow) -> None:
    lab = Lab(lab_plan, leaf_01=Node([], code=1), spine_01=Node([], None))
    stations = stations_of(lab_plan, [flow], lab, "tcp")
    seen: list[str] = []

    def interrupted() -> None:
        with counting(stations, lab, lab_plan.fabrics["fabric"].qos) as problems:
            seen.extend(problems)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [text.partition(":")[0] for text in seen] == ["leaf-01", "spine-01"]
    assert sum("chain rx.Ethernet" in text for text in lab.said) == 2
    assert sum(text.startswith("nft delete table") for text in lab.said) == 4
    sampler = Sampler(stations, lab, 0.01)
    sampler.start()
    samples = sampler.stop()
    assert [samples[0]["when"], samples[-1]["when"]] == ["before", "after"]
    assert samples[0]["devices"]["spine-01"] == {"error": "no route to host"}
    assert "said nothing to links" in samples[0]["devices"]["leaf-02"]["error"]


def test_a_device_that_is_asked_just_when_all_end_ends_too(lab_plan, flow: Flow) -> None:
    ended: list[bool] = []
    first, second = threading.Event(), threading.Event()

    class Late(Node):
        def execute(self, argv, stdin: bytes, timeout_s: float) -> Finished:
            first.wait(20)
            ended.append(second.wait(20))
            raise CouldNotRunError("ended")

    class Interrupted(Node):
        def execute(self, argv, stdin: bytes, timeout_s: float) -> Finished:
            raise KeyboardInterrupt

    class Ending(Lab):
        def abandon(self) -> None:
            (second if first.is_set() else first).set()

    lab = Ending(lab_plan, leaf_01=Interrupted([]), leaf_02=Late([]))
    with pytest.raises(KeyboardInterrupt):
        ask_all(stations_of(lab_plan, [flow], lab, "tcp"), lab)
    assert ended == [True]


def _interrupted(places: Lab, *held: threading.Event) -> list[Future[bool]]:
    """What an interrupt leaves that comes while threads are started: nobody has a program in hand yet."""
    begun: list[Future[bool]] = []

    def start() -> None:
        with asking(places, 1) as pool:
            begun.extend(pool.submit(one.wait, 2) for one in held)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start()
    return begun


def test_an_interrupt_while_threads_are_started_ends_what_they_run(lab_plan) -> None:
    ended = threading.Event()

    class Ending(Lab):
        def abandon(self) -> None:
            ended.set()

    first, second = _interrupted(Ending(lab_plan), ended, ended)
    assert first.result(), "it was ended, its deadline did not pass"
    assert second.cancelled()


def test_a_lab_that_has_gone_keeps_the_interrupt(lab_plan) -> None:
    class Gone(Lab):
        def abandon(self) -> None:
            raise CouldNotRunError("lab has gone")

    assert not _interrupted(Gone(lab_plan), threading.Event())[0].result()


def _row(flow: Flow, **changes) -> Row:
    return Row(
        flow, {"payload_gbps": 1.0, "bytes": 1000, "transfers": 3, "unmeasured": 2, "late_s": 0.0, **changes}, {}
    )


def _seen(plan, flow: Flow, grown: dict[tuple[str, Key], int]) -> dict:
    """Two samples of a lab in which every counter is there, and `grown` was added between them."""
    stations = stations_of(plan, [flow], Lab(plan), "tcp")
    expected = Expectation(plan.fabrics["fabric"].qos.lossless, 3)
    samples = []
    for number, when in enumerate(("before", "during", "after")):
        devices = {}
        for station in stations:
            values = dict.fromkeys(expected_keys(station, expected), 0)
            values |= {key: n * number // 2 for (device, key), n in grown.items() if device == station.device}
            devices[station.device] = {"rows": Readings(station.device, values).rows()}
        samples.append({"when": when, "at": 100.0 + number, "devices": devices})
    fields = ("device", "ports", "dialect", "host", "virtual", "rdma")
    return {
        "stations": [{name: getattr(s, name) for name in fields} for s in stations],
        "left_out": {}, "problems": [], "samples": samples,
    }  # fmt: skip


def _way(plan, flow: Flow, share: int = 6000, without: str = "") -> dict[tuple[str, Key], int]:
    """Every stage carries the bytes, over the first of its ports."""
    return {
        (stage.ports[0].device, Key(stage.ports[0].interface, BYTES, stage.ports[0].direction, 3)): share
        for stage in stages(plan, flow)
        if stage.name != without
    }


def _by_check(results, check: str):
    return [result for result in results if result.check == check]


def test_a_clean_way_passes_and_says_where_the_class_was_seen(lab_plan, flow: Flow) -> None:
    seen = _seen(lab_plan, flow, _way(lab_plan, flow))
    results = judge_counters(lab_plan, "pair", "kv", [_row(flow)], seen)
    assert {result.state for result in results} == {State.PASS}
    (marking,) = _by_check(results, "rdma.marking")
    assert "reader's leaf out" in marking.text
    leaf = next(r for r in results if r.subject.startswith("leaf-01"))
    assert [step["when"] for step in leaf.evidence["during"]] == ["during", "after"]
    assert leaf.labels["tenant"] == "acme"


@pytest.mark.parametrize("stage", ["owner NIC", "spines out", "reader NIC"])
def test_traffic_outside_its_class_fails_where_it_happens(lab_plan, flow: Flow, stage: str) -> None:
    seen = _seen(lab_plan, flow, _way(lab_plan, flow, without=stage))
    (marking,) = _by_check(judge_counters(lab_plan, "pair", "kv", [_row(flow)], seen), "rdma.marking")
    assert marking.state is State.FAIL
    assert marking.text.startswith(f"not in class kv at {stage}")


def test_losses_pauses_and_silence_are_told_apart(lab_plan, flow: Flow) -> None:
    way = _way(lab_plan, flow)
    uplink = stages(lab_plan, flow)[2].ports[0]
    lost = way | {(uplink.device, Key(uplink.interface, DROPS, "tx")): 4}
    results = judge_counters(lab_plan, "pair", "kv", [_row(flow)], _seen(lab_plan, flow, lost))
    assert [r.subject.split()[0] for r in results if r.state is State.FAIL] == [uplink.device]
    paused = way | {(uplink.device, Key(uplink.interface, PAUSE, "rx", 0)): 4}
    results = judge_counters(lab_plan, "pair", "kv", [_row(flow)], _seen(lab_plan, flow, paused))
    assert "on a lossy priority" in next(r.text for r in results if r.state is State.FAIL)
    seen = _seen(lab_plan, flow, way)
    seen["samples"][-1]["devices"]["spine-02"] = {"error": "no route to host"}
    results = judge_counters(lab_plan, "pair", "kv", [_row(flow)], seen)
    assert {r.state for r in results if r.subject == "spine-02"} == {State.ERROR}
    assert timeline(seen["samples"], "spine-02")[-1]["error"] == "spine-02: no route to host"


def test_a_cover_that_missed_a_link_does_not_pass(lab_plan, flow: Flow) -> None:
    seen = _seen(lab_plan, flow, _way(lab_plan, flow))
    (links,) = _by_check(judge_counters(lab_plan, "cover", "kv", [_row(flow)], seen), "rdma.links")
    assert links.state is State.UNKNOWN
    assert "not tested" in links.text


def test_counters_that_were_not_read_are_skipped_with_the_reason(lab_plan, flow: Flow) -> None:
    (result,) = judge_counters(lab_plan, "pair", "kv", [_row(flow)], {"skipped": "not read: no need"})
    assert (result.state, result.text) == (State.SKIPPED, "not read: no need")


def test_every_lossless_class_is_run_in_an_incast(lab_plan) -> None:
    question = probe.Question("incast", reader=A)
    assert probe.classes_of(lab_plan, question, "fabric") == ["kv"]
    assert Limits().least_share == 0


def test_a_link_that_another_round_met_is_not_silent() -> None:
    def one(**grown: int | None) -> Result:
        return Result("rdma.links", "cover", State.UNKNOWN, "of a round", evidence={"directions": grown})

    other = Result("rdma.marking", "a flow", State.PASS, "in its class")
    kept, links = links_of_all_rounds([one(a=0, b=5), other, one(a=7, c=3)])
    assert (kept, links.state) == (other, State.PASS)
    assert links.text == "3 directions of links carried the class"
    (_, links) = links_of_all_rounds([one(a=0, b=5), other, one(a=0)])
    assert links.state is State.UNKNOWN
    assert "nothing came by a: not tested" in links.text
