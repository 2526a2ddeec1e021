"""Cases that are collected at the same time: each has its own result and seconds, and one that fails is tried alone."""

from __future__ import annotations

import time

import pytest

from fabric.build import load_plan
from fabric.problem import CouldNotRunError
from tests.unit.accept.simulated import SimulatedSite
from tests.unit.accept.test_runner import PAGE, run
from validators.catalog import make_case
from validators.check import Check, DeviceInputs, NotJudgedError, Stage
from validators.results import Result, State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
DEVICES = ("leaf-01", "leaf-02", "spine-01", "spine-02")


def _check(name, collect_all):
    body = {
        "__doc__": PAGE,
        "__module__": __name__,
        "stage": Stage.GATEWAYS,
        "Inputs": DeviceInputs,
        "disruptive": True,
        "passive": False,
        "together": True,
        "cases": classmethod(lambda _cls, _plan: iter(())),
        "collect_all": lambda self, context, cases: collect_all([inputs.device for inputs in cases]),
        "judge": lambda s, _p, inputs, seen: Result(s.name, inputs.device, State(seen["state"]), seen["text"]),
    }
    return type(name, (Check,), body)


def _run(tmp_path, check, **options):
    cases = [make_case(PLAN, check, DeviceInputs(device=device)) for device in DEVICES]
    return run(tmp_path, cases, SimulatedSite(PLAN), allow_disruptive=True, **options)


def test_all_cases_of_a_check_are_collected_in_one_pass_and_share_its_seconds(tmp_path):
    passes = []

    def collect(devices):
        passes.append(devices)
        time.sleep(0.2)
        return [{"state": "pass", "text": device} for device in devices]

    records = _run(tmp_path, _check("InOnePass", collect))
    assert passes == [list(DEVICES)]
    assert [record.result.text for record in records] == list(DEVICES)
    assert all(0.04 < record.result.duration_s < 0.15 for record in records)
    assert 0.2 <= sum(record.result.duration_s for record in records) < 0.5
    assert len(list((tmp_path / "raw" / "cases").iterdir())) == len(DEVICES)


def test_what_kept_one_case_from_being_observed_is_its_own(tmp_path):
    def collect(devices):
        good = {"state": "pass", "text": ""}
        return [CouldNotRunError("agent silent"), NotJudgedError("no server", State.SKIPPED), good, good]

    states = [record.result.state for record in _run(tmp_path, _check("SomeFail", collect))]
    assert states == [State.ERROR, State.SKIPPED, State.PASS, State.PASS]


def test_a_pass_that_broke_is_an_error_of_each_of_its_cases_and_of_no_other(tmp_path):
    def collect(devices):
        raise RuntimeError("bug")

    records = _run(tmp_path, _check("BrokenPass", collect))
    assert {record.result.state for record in records} == {State.ERROR}
    assert all("RuntimeError: bug" in record.result.text for record in records)


def test_a_case_that_is_tried_once_more_is_tried_alone(tmp_path):
    passes = []

    def collect(devices):
        passes.append(devices)
        bad = len(passes) == 1
        return [{"state": "fail" if bad and device == "leaf-02" else "pass", "text": device} for device in devices]

    records = _run(tmp_path, _check("TriedAgain", collect), settle_s=1.0, settle_step_s=0.0)
    assert passes == [list(DEVICES), ["leaf-02"]]
    assert [record.result.state for record in records] == [State.PASS] * 4
    assert "second attempt" in records[1].result.text
    assert all(record.result.duration_s >= 0 for record in records)
