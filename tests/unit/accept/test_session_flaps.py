"""Sessions that go down while an acceptance runs: seen between two looks, live, on the floor, and from a run's files."""

from __future__ import annotations

import json

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import SimulatedSite
from validators import runner_acceptance
from validators.catalog import Selection
from validators.control_plane.check_flaps import SessionFlapInputs, SessionFlaps
from validators.devices.answers import Answer, unasked
from validators.devices.lab import MACHINE
from validators.report.redact import Redactor
from validators.results import State
from validators.runner_acceptance import Acceptance, accept

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
NEIGHBOUR = "Ethernet256"
PORT = "leaf-01 E1/33 (Ethernet256)"


@pytest.fixture(params=[False, True], ids=["lab", "hosts"])
def site(monkeypatch, request):
    site = SimulatedSite(PLAN, physical=request.param)
    real = runner_acceptance.open_devices
    monkeypatch.setattr(
        runner_acceptance, "open_devices", lambda w, *say: real(w) if w.stored else (site, Redactor([]))
    )
    return site


def _accept(folder, **more):
    chosen = Selection(checks=("device-answers", "session-flaps"))
    return accept(Acceptance(PLAN, folder, selection=chosen, settle_s=60.0, **more))


def _bad(run):
    return {r.result.subject: r.result for r in run.records if r.result.state is not State.PASS}


def _bgp(**facts):
    def change(data, *, sample):
        for table in data["default"].values() if sample else ():
            table["peers"].get(NEIGHBOUR, {}).update(facts)
        return data

    return change


def _bfd(deed):
    def change(data, *, sample):
        return deed(data) if sample else data

    return change


def test_steady_sessions_pass_and_say_what_came_before(site, tmp_path):
    run, _, _ = _accept(tmp_path)
    assert not _bad(run)
    (leaf,) = (r.result for r in run.records if r.case.startswith("session-flaps:leaf-01#"))
    assert leaf.text == "all 4 sessions stayed as they were for 0 s"
    assert leaf.parts[0].text == "steady; went down so far: BGP 1, BFD 1"


def test_a_session_that_went_down_and_came_back_is_named_with_its_place_and_what_ran(site, tmp_path):
    site.broken[("leaf-01", "bgp-counters")] = _bgp(connectionsDropped=3, peerUptimeMsec=0)
    run, folder, _ = _accept(tmp_path)
    assert run.verdict == "not accepted"
    (leaf,) = _bad(run).values()
    assert (leaf.check, leaf.state) == ("session-flaps", State.FAIL)
    assert "BGP went down 2 times, 0 are allowed" in leaf.text
    assert leaf.place.startswith(PORT)
    assert leaf.parts[0].labels["link"] in PLAN.links
    again, _, _ = accept(Acceptance(PLAN, tmp_path / "again", stored=folder, selection=Selection(checks=("session*",))))
    assert {s: r.state for s, r in _bad(again).items()} == {"leaf-01": State.FAIL}


def test_what_flaps_while_the_lab_stands_still_is_unknown_and_looked_at_once_more(tmp_path, monkeypatch):
    site = SimulatedSite(PLAN)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    looks = iter((1, 2, 2))  # at the start, then it has gone down, then not again

    def change(data):
        downs = next(looks)
        return [peer | {"session-down": downs} for peer in data]

    site.broken[("leaf-01", "bfd-counters")] = change
    site.broken[(MACHINE, "pauses-since")] = lambda _: "1000.0\n970.5 1.25\n980.0 0.30\n"
    run, _, _ = _accept(tmp_path)
    (leaf,) = (r.result for r in run.records if r.case.startswith("session-flaps:leaf-01#"))
    assert leaf.state is State.PASS
    assert leaf.text.startswith("all 4 sessions stayed as they were (second attempt; the first one: leaf-01 E1/")
    assert "BFD went down 1 time, 0 are allowed" in leaf.text
    assert "tester-limited: the lab's machine stood still for up to 1.2 s" in leaf.text
    assert run.verdict == "accepted"


@pytest.mark.parametrize(("paused", "state"), [("1000.0\n970.5 0.40\n", State.FAIL), ("", State.FAIL)])
def test_a_lab_that_let_its_routers_run_excuses_no_flap(tmp_path, monkeypatch, paused, state):
    site = SimulatedSite(PLAN)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    site.broken[("leaf-01", "bgp-counters")] = _bgp(connectionsDropped=2)
    site.broken[(MACHINE, "pauses-since")] = lambda _: paused
    assert {name: result.state for name, result in _bad(_accept(tmp_path)[0]).items()} == {"leaf-01": state}


def test_real_devices_are_asked_for_nothing_of_a_lab(tmp_path, monkeypatch):
    site = SimulatedSite(PLAN, physical=True)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    _accept(tmp_path)
    assert MACHINE not in {device for device, _ in site.asked}


def test_bfd_alone_can_flap_and_a_daemon_that_starts_anew_is_told(site, tmp_path):
    site.broken[("leaf-01", "bfd-counters")] = _bfd(lambda peers: [p | {"session-down": 2} for p in peers])
    site.broken[("spine-01", "bfd-counters")] = _bfd(lambda peers: [p | {"session-down": 0} for p in peers])
    site.broken[("leaf-02", "bfd-counters")] = _bfd(lambda peers: peers[1:])
    said = {name: result.text for name, result in _bad(_accept(tmp_path)[0]).items()}
    assert "BFD went down 1 time," in said["leaf-01"]
    assert said["leaf-01"].endswith("(and 3 more)")
    assert "BFD counts from nothing again" in said["spine-01"]
    assert "BFD had a session at the start, and has none now" in said["leaf-02"]


def test_a_session_that_comes_up_meanwhile_is_no_flap(site, tmp_path):
    def later(data, *, sample):
        if not sample:
            for table in data["default"].values():
                table["peers"].pop(NEIGHBOUR, None)
        return data

    site.broken[("leaf-01", "bgp-counters")] = later
    assert not _bad(_accept(tmp_path)[0])


def test_a_router_that_says_nothing_is_an_error_and_a_shell_without_counters_is_skipped(site, tmp_path):
    site.broken[("leaf-01", "bgp-counters")] = lambda _: Answer(error="bgpd is not running")
    site.broken[("spine-01", "bfd-counters")] = lambda _: unasked("sonic-cli", "bfd-counters")
    site.broken[("spine-02", "bgp-counters")] = lambda data: json.loads(
        json.dumps(data).replace("connectionsDropped", "x")
    )
    bad = _bad(_accept(tmp_path)[0])
    assert bad["leaf-01"].state is State.ERROR
    assert bad["spine-01"].state is State.SKIPPED
    assert (bad["spine-02"].state, "does not say how often" in bad["spine-02"].text) == (State.ERROR, True)


def test_what_ran_when_bgp_came_back_is_said():
    site = SimulatedSite(PLAN)
    looks = []
    for number, downs in enumerate((1, 2)):
        site.broken[("leaf-01", "bgp-counters")] = _bgp(connectionsDropped=downs, peerUptimeMsec=45_200)
        asks = SessionFlaps().asks_at_start(PLAN, SessionFlapInputs(device="leaf-01"))
        answers = site.gather(asks, number)
        looks.append({"leaf-01": {ask.question: answer.to_dict() for ask, answer in answers.items()}})
    ran = [["nat-behaviour acme static", 80.0, 60.0], ["connection-ladder acme masquerade", 60.0, 20.0]]
    seen = {"before": looks[0], "after": looks[1], "seconds": 400.0, "ran": ran}
    result = SessionFlaps().judge(PLAN, SessionFlapInputs(device="leaf-01"), seen)
    assert "up since 45 s before the end, when connection-ladder acme masquerade ran" in result.text
    assert SessionFlaps().judge(PLAN, SessionFlapInputs(device="leaf-01", most=1), seen).state is State.PASS


def test_a_snapshot_is_one_look_and_cannot_show_a_flap(site, tmp_path):
    runner_acceptance.take_snapshot(
        Acceptance(PLAN, tmp_path, selection=Selection(checks=("bgp-sessions",))), tmp_path / "s"
    )
    run, _, _ = accept(Acceptance(PLAN, tmp_path, stored=tmp_path / "s", selection=Selection(checks=("session*",))))
    assert {r.state for r in _bad(run).values()} == {State.SKIPPED}
