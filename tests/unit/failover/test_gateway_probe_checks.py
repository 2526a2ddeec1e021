"""The gateway probes as checks of an acceptance: what is judged, drawn, left out, and how everything is taken back."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from types import SimpleNamespace

import pytest

from fabric.build import load_plan
from fabric.problem import CouldNotRunError
from labs import model
from labs import slice as slicing
from labs.client import Done
from tests.unit.accept.simulated import SimulatedSite
from validators.catalog import make_case
from validators.check import judged
from validators.devices.lab import MACHINE, LabDevices
from validators.failover import drain_in_lab, in_lab
from validators.failover import judge as failover
from validators.failover.check_gateways import GatewayDrain, GatewayFailover
from validators.failover.observed import FlowsSeen, Silence, SlotSeen
from validators.failover.timeline import timeline
from validators.journal import Journal
from validators.journal_records import RunInfo, result_to_dict
from validators.journal_undo import UndoLog
from validators.report.model import Run
from validators.report.plots import plots_of
from validators.results import Result, State
from validators.runner import Runner, RunOptions
from validators.session import in_lab as sessions
from validators.session.checks import RequestSessions
from validators.session.client import SessionSeen
from validators.session.judge import CaseSeen
from validators.session.judge import judge as judge_session

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
INFO = RunInfo("r", "lab", "distributed", PLAN.digest, "c", "lab", "2026-01-01T00:00:00Z")
(FAILOVER,) = GatewayFailover.cases(PLAN)
(DRAIN,) = GatewayDrain.cases(PLAN)
(SESSIONS,) = RequestSessions.cases(PLAN)
EVENT_NS = 10_000_000_000
BACK = Silence(EVENT_NS, EVENT_NS + 900_000_000, 900.0)
GONE = Silence(EVENT_NS, None, 4000.0)
LIVED = SlotSeen(0, BACK, BACK, False, False, "203.0.113.30", "", None)
DIED = SlotSeen(0, GONE, GONE, True, False, "203.0.113.1", "203.0.113.4", 1400.0)


def flows(mode, slot, case="process lost", **change):
    pools = (frozenset({"203.0.113.1"}), frozenset({"203.0.113.4"})) if mode == "masquerade" else ()
    seen = replace(FlowsSeen((slot,), 0, 52.0, 0, 60, 55, BACK), **change)
    labels = {"tenant": "acme", "mode": mode, "gateway": "gw-01", "case": case}
    declared = failover.Declared(mode, 5000.0, *pools)
    result = failover.judge(f"gw-01 {case}: tenant acme {mode}", seen, declared, labels=labels)
    result.evidence["event_ns"] = EVENT_NS
    return result


def outcome(check, inputs, *results):
    return judged(check(), PLAN, inputs, {"results": [result_to_dict(one) for one in results]})


def test_a_failover_as_declared_passes_says_what_was_not_tried_and_is_drawn():
    result = outcome(GatewayFailover, FAILOVER, flows("masquerade", DIED), flows("static", LIVED))
    assert result.state is State.PASS
    assert result.text == (
        "new connections were out for at most 900 ms, 5000 ms are allowed; not tried: link, silent, node, power"
    )
    assert result.labels == {"tenant": "acme", "vrf": "Vrf-acme", "device": "gw-01"}
    assert {part.state for part in result.parts} == {State.PASS}
    assert len(result.parts) == 7
    drawn = result.evidence["timeline"]
    assert drawn["flows"] == [
        {"name": "masquerade 1", "gaps": [[0.0, 1400.0]]},
        {"name": "static 1", "gaps": [[0.0, 900.0]]},
    ]
    assert (drawn["start_ms"], drawn["end_ms"], drawn["events"]) == (
        -500,
        1900,
        [{"at_ms": 0, "text": "dies (process)"}],
    )


@pytest.mark.parametrize(
    ("results", "state", "text"),
    [
        ([flows("static", replace(LIVED, towards=GONE))], State.FAIL, "1 died"),
        ([flows("masquerade", replace(DIED, remade_ms=None))], State.FAIL, "0 of 1 dead connections were made again"),
        ([flows("masquerade", replace(DIED, public_after="203.0.113.9"))], State.FAIL, "203.0.113.9"),
        ([flows("static", LIVED, new_silence=replace(BACK, outage_ms=7000.0))], State.FAIL, "out for 7000 ms"),
        ([flows("static", LIVED), flows("static", LIVED, never_opened=2)], State.ERROR, "2 flows never opened"),
        ([flows("static", LIVED, resolution_ms=1300.0)], State.UNKNOWN, "tester-limited"),
        ([flows("static", LIVED, slots=())], State.ERROR, "opened before the event"),
        ([Result("gateway.failover", "tenant acme static", State.SKIPPED, "no server")], State.SKIPPED, "no server"),
        ([], State.UNKNOWN, ""),
    ],
)
def test_a_failover_that_is_not_as_declared_does_not_pass(results, state, text):
    result = outcome(GatewayFailover, FAILOVER, *results)
    assert result.state is state
    assert text in result.text
    assert state is State.SKIPPED or (("gw-01" if results else "acme") in result.place)


def test_a_flow_that_never_came_back_is_silent_to_the_end_of_the_drawing():
    drawn = timeline([flows("masquerade", replace(DIED, remade_ms=None)), flows("static", LIVED)], "dies")
    assert drawn["flows"][0]["gaps"] == [[0.0, drawn["end_ms"]]]
    assert timeline([Result("x", "y", State.PASS, "")], "dies") == {}


def test_a_late_frame_is_not_drawn_as_a_silence():
    short = Silence(EVENT_NS, EVENT_NS + 90_000_000, 90.0)
    assert timeline([flows("static", replace(LIVED, towards=short, back=short))], "x")["flows"][0]["gaps"] == []


def drained(state, text):
    labels = {"tenant": "acme", "mode": "masquerade", "gateway": "gw-01", "case": "drain"}
    evidence = {"gatewayctl": ["drained"], "exit_code": 0, "slots": [asdict(LIVED)], "event_ns": EVENT_NS}
    part = Result("gateway.drain", "established flows", state, text, labels=labels)
    return Result("gateway.drain", "gw-01 drain", state, text, parts=(part,), labels=labels, evidence=evidence)


def test_a_drain_is_judged_by_what_it_cut():
    good = outcome(GatewayDrain, DRAIN, drained(State.PASS, "none of 6 established flows was cut"))
    assert good.state is State.PASS
    assert good.text == "nothing established was cut in 1 exposures, 4 flows each"
    assert good.evidence["timeline"]["flows"]
    assert good.evidence["gatewayctl"] == ["drained"]
    bad = outcome(GatewayDrain, DRAIN, drained(State.FAIL, "2 of 6 established flows were cut before the deadline"))
    assert (bad.state, "2 of 6 established flows were cut" in bad.text) == (State.FAIL, True)
    assert bad.place.startswith("gw-01")


def asked(**change):
    session = SessionSeen("worker-0", "t", 60, 60, connections=2, breaks=["ConnectionResetError"], finished=True)
    session = replace(session, outages_ms=[80.0], outages_from_ms=[700.0], seconds=6.1, **change)
    facts = {"t": {"pieces": 60, "makers": ["a"] * 60, "refused": 0}}
    seen = CaseSeen("worker", [session], facts, must_break=True)
    return judge_session("tenant acme forward", seen, labels={"tenant": "acme", "gateway": "gw-01"})


def test_requests_are_judged_by_their_answers_and_drawn():
    good = outcome(RequestSessions, SESSIONS, asked())
    assert good.state is State.PASS
    assert good.text.endswith("; not tried: drain, gateway")
    drawn = good.evidence["timeline"]
    assert drawn["flows"] == [{"name": "worker-0", "gaps": [[700.0, 780.0]]}]
    assert drawn["end_ms"] == 6100
    bad = outcome(RequestSessions, SESSIONS, asked(received=59, wrong=1))
    assert bad.state is State.FAIL
    assert "1 wrong" in bad.text
    assert outcome(RequestSessions, SESSIONS, asked(breaks=[])).state is State.UNKNOWN


@dataclass
class FakeLab:
    """A lab that runs nothing and remembers what was asked of it."""

    lab: model.Lab = field(default_factory=lambda: slicing.make(PLAN, "lab"))
    name: str = "lab"
    ran: list[tuple[str, str]] = field(default_factory=list)

    def run(self, node, argv, stdin=b"", timeout_s=60):
        self.ran.append((node, argv[-1]))
        return Done(node, tuple(argv), 0, b"", b"")

    def close(self):
        pass


def run(folder, check, inputs, lab):
    devices = LabDevices(lab, "lab")
    journal = Journal.start(folder, INFO)
    undo = UndoLog(folder / "undo.jsonl", devices)
    try:
        runner = Runner(PLAN, devices, journal, undo, folder, RunOptions(allow_disruptive=True))
        (record,) = runner.run([make_case(PLAN, check, inputs)])
    finally:
        journal.close()
        undo.close()
    return record


PROBES = [
    (GatewayFailover, FAILOVER, in_lab, "run_failover", flows("static", LIVED)),
    (GatewayDrain, DRAIN, drain_in_lab, "run_drain", drained(State.PASS, "")),
    (RequestSessions, SESSIONS, sessions, "run_session", asked()),
]


@pytest.mark.parametrize(("check", "inputs", "module", "name", "result"), PROBES)
def test_the_probe_is_run_and_the_gateway_healed_before_it_is_undrained(
    tmp_path, monkeypatch, check, inputs, module, name, result
):
    lab, given = FakeLab(), {}
    monkeypatch.setattr(module, name, lambda plan, lab, **more: given.update(more) or [result])
    record = run(tmp_path, check, inputs, lab)
    assert record.result.state is State.PASS, record.result.text
    assert given["tenant"] == "acme"
    done = [
        (node, "heal" if "faults.heal" in text else "undrain" if "undrain" in text else "") for node, text in lab.ran
    ]
    assert done.index(("", "heal")) < done.index(("gw-01", "undrain"))
    assert plots_of(Run(INFO, (record,)))["timeline"][0]["lanes"]


@pytest.mark.parametrize(("check", "inputs", "module", "name", "result"), PROBES)
@pytest.mark.parametrize(
    "broken", [KeyboardInterrupt(), CouldNotRunError("the lab is not as planned: x"), OSError("x")]
)
def test_whatever_happens_to_the_probe_its_deeds_are_taken_back(
    tmp_path, monkeypatch, check, inputs, module, name, result, broken
):
    del result
    lab = FakeLab()

    def breaks(*_args, **_more):
        raise broken

    monkeypatch.setattr(module, name, breaks)
    if isinstance(broken, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, check, inputs, lab)
    else:
        assert run(tmp_path, check, inputs, lab).result.state is State.ERROR
    assert any("faults.heal" in text and "gw-01" in text for node, text in lab.ran if node == "")
    assert not UndoLog(tmp_path / "undo.jsonl", LabDevices(lab)).pending


def test_what_a_lab_cannot_show_is_skipped_with_the_reason(tmp_path):
    record = run(tmp_path, GatewayFailover, FAILOVER, FakeLab(slicing.make(PLAN, "lab", {"gateways": 0})))
    assert record.result.state is State.SKIPPED
    assert "no gateway of group internet" in record.result.text


def test_a_site_without_a_lab_is_skipped():
    site = SimulatedSite(PLAN)
    assert MACHINE not in PLAN.kind_of
    from validators.check import Context, NotJudgedError

    with pytest.raises(NotJudgedError, match="kvfabric probe") as error:
        GatewayDrain().collect(Context(PLAN, site, UndoLog.__new__(UndoLog)), DRAIN)
    assert error.value.state is State.SKIPPED


class LabThatStaysDown:
    """A lab that is as planned until something is cut in it."""

    name = "lab"

    def __init__(self):
        self.cuts = []

    def call(self, verb, **asked):
        if verb == "cut":
            self.cuts.append(asked["how"])
        missing = ["gw-01: no session with leaf-01 is up"] if self.cuts else []
        return {"converge": {"missing": missing}, "faults": [], "cut": {}}[verb]


def test_a_gateway_that_does_not_come_back_fails_by_name_and_ends_the_cases(monkeypatch):
    """What the loss showed is told as well: it was no reason to return nothing."""

    class Traffic:
        def __init__(self, *_):
            pass

        def begin(self):
            pass

        def end(self):
            return []

        def clock_ns(self):
            return EVENT_NS

    layout = SimpleNamespace(gateway="gw-01", left_out=(), places={}, blocks=())
    monkeypatch.setattr(in_lab, "lay", lambda *_: layout)
    monkeypatch.setattr(in_lab, "Stand", lambda *_: nullcontext())
    monkeypatch.setattr(in_lab, "Traffic", Traffic)
    monkeypatch.setattr(in_lab.time, "sleep", lambda _s: None)
    lab = LabThatStaysDown()
    (result,) = in_lab.run_failover(PLAN, lab, tenant="acme", cases=["process", "node"])
    assert (result.state, result.subject, result.place) == (State.FAIL, "gw-01 process", "gw-01")
    assert result.text == "gw-01 is not back: the lab is not as planned: gw-01: no session with leaf-01 is up"
    assert lab.cuts == ["daemons"]
