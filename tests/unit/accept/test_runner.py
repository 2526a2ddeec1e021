"""The contract, the catalog, the runner, and the journal that survives kill -9."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.analysis.rule import all_rules
from fabric.build import load_plan
from fabric.problem import CouldNotRunError, InputError
from tests.unit.accept.simulated import SimulatedSite
from validators.catalog import Selection, digest, generate, make_case
from validators.catalog_file import read_catalog, to_yaml
from validators.check import Check, CheckInputs, Stage
from validators.check_registry import all_checks
from validators.devices.answers import Answer
from validators.journal import Journal, read_journal
from validators.journal_records import Record, RunInfo, result_from_dict, result_to_dict
from validators.journal_undo import UndoLog, replay
from validators.results import Measurement, Result, State
from validators.runner import Runner, RunOptions, file_name

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
INFO = RunInfo("r", "lab", "distributed", PLAN.digest, "c", "simulated", "2026-01-01T00:00:00Z")
PAGE = """Something holds.

Pass: it does.
Fail: it does not.
Error: unknown.
Skipped: never.
Example:
    x: [{}]
"""


def define(doc=PAGE, stage=Stage.PREFLIGHT, inputs=CheckInputs, name="Probe", **more):
    body = {"__doc__": doc, "__module__": __name__, "cases": classmethod(lambda _cls, _plan: iter(())), **more}
    if stage:
        body["stage"] = stage
    if inputs:
        body["Inputs"] = inputs
    return type(name, (Check,), body)


@pytest.mark.parametrize(
    "lacking",
    [
        {"doc": None},
        {"doc": "Only a title."},
        {"stage": None},
        {"inputs": None},
        {"doc": PAGE.replace("Error:", "Oops:")},
        {"together": True},
    ],
)
def test_a_check_without_its_page_stage_or_inputs_is_refused(lacking):
    with pytest.raises(TypeError, match="is refused"):
        define(**lacking, name="Refused")


def test_every_check_and_rule_says_all_that_its_base_leaves_open():
    assert [c.__name__ for c in (*all_checks().values(), *all_rules().values()) if inspect.isabstract(c)] == []
    with pytest.raises(TypeError, match="abstract method judge"):
        define(name="Unfinished")()


@pytest.mark.parametrize("check", all_checks().values(), ids=lambda c: c.name)
def test_the_example_of_every_page_is_valid_catalog(check):
    ((name, items),) = yaml.safe_load(check.page.sections["Example"]).items()
    assert name == check.name
    assert all(check.Inputs.model_validate_json(json.dumps(item)) for item in items)


class Deed(Check, abstract=True):
    """Base of the test's disruptive checks."""

    @classmethod
    def cases(cls, plan):
        yield CheckInputs()

    stage, Inputs, disruptive, passive = Stage.FAILOVER, CheckInputs, True, False

    def collect(self, context, inputs):
        for number in (1, 2):
            context.undo.push("leaf-01", f"undo {number}", f"restore {number}")
            context.devices.run("leaf-01", f"do {number}")
        return self.then()


def deed(then, name):
    return type(
        name,
        (Deed,),
        {
            "__doc__": PAGE,
            "__module__": __name__,
            "then": lambda self: then(),
            "judge": lambda s, p, i, o: Result(s.name, "", State.PASS, "fine"),
        },
    )


def interrupt():
    raise KeyboardInterrupt


def crash():
    raise RuntimeError("bug")


def run(folder, cases, site=None, journal=None, **options):
    site = site or SimulatedSite(PLAN)
    journal = journal or Journal.start(folder, INFO)
    undo = UndoLog(folder / "undo.jsonl", site)
    try:
        return Runner(PLAN, site, journal, undo, folder, RunOptions(**options)).run(cases)
    finally:
        journal.close()
        undo.close()


@pytest.mark.parametrize(("then", "name"), [(dict, "Fine"), (crash, "Crashes"), (interrupt, "Interrupted")])
def test_deeds_are_taken_back_newest_first_whatever_happens(tmp_path, then, name):
    site = SimulatedSite(PLAN)
    case = make_case(PLAN, deed(then, name), CheckInputs())
    if then is interrupt:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, [case], site, allow_disruptive=True)
    else:
        (record,) = run(tmp_path, [case], site, allow_disruptive=True)
        assert record.result.state is (State.PASS if then is dict else State.ERROR)
    assert [command for _, command in site.ran] == ["do 1", "do 2", "undo 2", "undo 1"]


def test_what_would_only_repeat_a_failure_is_skipped_with_the_reason(tmp_path):
    site = SimulatedSite(PLAN, {("leaf-01", "links"): lambda d: d[0].update(master="Vrf-globex") or d})
    wanted = [all_checks()[name] for name in ("evpn-router-macs", "evpn-routes", "port-vrf", "port-mtu")]
    cases = generate(PLAN, wanted)
    assert [case.check.name for case in cases][-1] == "evpn-router-macs"
    states = {(r.result.check, r.result.subject): r.result for r in run(tmp_path / "a", cases, site)}
    assert {name for (name, _), r in states.items() if r.state is State.FAIL} == {"port-vrf"}
    assert states["evpn-routes", "leaf-02"].text == "not run, because port-vrf did not pass"
    assert states["evpn-router-macs", "leaf-02"].text == "not run, because evpn-routes did not pass"
    assert states["port-mtu", "leaf-01"].state is State.PASS
    everything = run(tmp_path / "b", cases, site, keep_going=True)
    assert State.SKIPPED not in {r.result.state for r in everything}


def test_what_was_done_in_one_lab_is_not_undone_in_another(tmp_path):
    site = SimulatedSite(PLAN)
    for engine in ("simulated", "lab other"):
        folder = tmp_path / engine.replace(" ", "-")
        Journal.start(folder, replace(INFO, engine=engine)).close()
        UndoLog(folder / "undo.jsonl", site).push("leaf-01", "undo", f"restore {engine}")
    assert replay(tmp_path, site) == ["leaf-01: restore simulated"]


def test_what_acts_is_tried_once_more_in_a_network_that_settles_and_says_so(tmp_path):
    states = iter([State.FAIL, State.PASS, State.FAIL])
    check = type(
        "Wobbly",
        (Deed,),
        {
            "__doc__": PAGE,
            "__module__": __name__,
            "then": lambda self: {},
            "judge": lambda s, p, i, o: Result(s.name, "", (state := next(states)), state.value),
        },
    )
    case = make_case(PLAN, check, CheckInputs())
    (record,) = run(tmp_path / "a", [case], allow_disruptive=True, settle_s=1.0, settle_step_s=0.0)
    assert (record.result.state, record.result.text) == (State.PASS, "pass (second attempt; the first one: fail)")
    (record,) = run(tmp_path / "b", [case], allow_disruptive=True)
    assert (record.result.state, record.result.text) == (State.FAIL, "fail")


def test_a_disruptive_check_needs_permission(tmp_path):
    site = SimulatedSite(PLAN)
    (record,) = run(tmp_path, [make_case(PLAN, deed(dict, "Unasked"), CheckInputs())], site)
    assert record.result.state is State.SKIPPED
    assert "--allow-disruptive" in record.result.text
    assert not site.ran


def test_what_a_killed_run_left_is_put_back_by_the_next_start(tmp_path):
    site = SimulatedSite(PLAN)
    log = UndoLog(tmp_path / "one" / "undo.jsonl", site)
    log.push("leaf-01", "undo 1", "restore 1")
    log.push("leaf-02", "undo 2", "restore 2")
    log.close()
    assert replay(tmp_path, site) == ["leaf-02: restore 2", "leaf-01: restore 1"]
    assert site.ran == [("leaf-02", "undo 2"), ("leaf-01", "undo 1")]
    assert replay(tmp_path, site) == []


def test_an_undo_that_fails_stays_pending_and_stops_the_next_run(tmp_path):
    site = SimulatedSite(PLAN)
    log = UndoLog(tmp_path / "one" / "undo.jsonl", site)
    log.push("leaf-01", "undo 1", "restore 1")
    log.close()
    site.run = lambda *_args, **_kw: Answer(error="no route to host")
    with pytest.raises(CouldNotRunError, match="cannot be put back"):
        replay(tmp_path, site)


def test_a_failed_stage_stops_what_stands_on_it_and_says_why(tmp_path):
    def cut(data):
        data["lldp"]["interface"].pop()
        return data

    site = SimulatedSite(PLAN, {("leaf-01", "lldp"): cut})
    site.rounds = 1
    records = run(tmp_path, generate(PLAN, all_checks().values()), site)
    states = {
        r.stage: r.result.state for r in records if r.result.check in {"cabling", "bgp-sessions", "tenant-matrix"}
    }
    assert states == {"cabling": State.FAIL, "control-plane": State.SKIPPED, "tenants": State.SKIPPED}
    assert all("stage cabling failed" in r.result.text for r in records if r.stage in {"control-plane", "tenants"})


def test_a_bug_in_a_check_is_an_error_of_that_check_only(tmp_path):
    bad = define(name="BadProbe", judge=lambda s, p, i, o: 1 / 0)
    good = define(name="GoodProbe", judge=lambda s, p, i, o: Result(s.name, "", State.PASS, ""))
    records = run(tmp_path, [make_case(PLAN, c, CheckInputs()) for c in (bad, good)])
    assert [r.result.state for r in records] == [State.ERROR, State.PASS]
    assert "ZeroDivisionError" in records[0].result.text


def test_a_measurement_that_is_no_number_is_an_error_and_the_journal_stays_readable(tmp_path):
    half = Measurement("rate", float("nan"), "Gb/s")
    bad = define(
        name="NanProbe", judge=lambda s, p, i, o: Result(s.name, "x", State.PASS, "fast", measurements=(half,))
    )
    deep = define(
        name="InfProbe", judge=lambda s, p, i, o: Result(s.name, "x", State.PASS, "", evidence={"a": [1e999]})
    )
    records = run(tmp_path, [make_case(PLAN, c, CheckInputs()) for c in (bad, deep)])
    assert [r.result.state for r in records] == [State.ERROR, State.ERROR]
    assert "rate is nan Gb/s" in records[0].result.text
    assert "it said: pass, fast" in records[0].result.text
    assert len(read_journal(next(tmp_path.rglob("journal.jsonl")).parent)[1]) == 2


def test_case_ids_are_unique_and_stable_and_their_files_too():
    cases = generate(PLAN, all_checks().values())
    ids = [case.id for case in cases]
    assert len(set(ids)) == len(ids) == len({file_name(i) for i in ids})
    assert ids == [case.id for case in generate(load_plan("lab"), all_checks().values())]


@pytest.mark.parametrize("site", ["lab", "xoc-64", "minimal"])
def test_a_catalog_survives_yaml(tmp_path, site):
    plan = load_plan(site)
    cases = generate(plan, all_checks().values())
    (tmp_path / "c.yaml").write_text(to_yaml(plan, cases))
    assert digest(read_catalog(tmp_path / "c.yaml", plan, all_checks())) == digest(cases)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("catalog: {cabling: {cablin: [{fabric: x}]}}", "catalog.unknown-check"),
        ("catalog: {cabling: {cabling: [{fabrik: x}]}}", "catalog.inputs"),
        ("catalog: {control-plane: {bgp-sessions: [{device: nobody}]}}", "catalog.inputs"),
        ("catalog: {control-plane: {bgp-sessions: [{device: leaf-01}, {device: leaf-01}]}}", "catalog.duplicate"),
        ("catalog: {cabling: {cabling: 5}}", "catalog.shape"),
        ("other: 1", "catalog.shape"),
        ("a: [", "catalog.yaml"),
    ],
)
def test_a_wrong_catalog_is_named_with_its_line(tmp_path, text, rule):
    (tmp_path / "c.yaml").write_text("\n" + text)
    with pytest.raises(InputError) as caught:
        read_catalog(tmp_path / "c.yaml", PLAN, all_checks())
    assert rule in {p.rule for p in caught.value.problems}
    assert all(p.line for p in caught.value.problems)


def test_selection_by_tag_device_tenant_and_check():
    cases = generate(PLAN, all_checks().values())
    chosen = [c for c in cases if Selection(tags=("spine",), checks=("bgp*",)).keeps(c)]
    assert [c.subject for c in chosen] == ["spine-01", "spine-02"]
    chosen = [c for c in cases if Selection(tenants=("acme",), tags=("tenants",)).keeps(c)]
    assert [c.subject for c in chosen] == ["acme"]
    assert all("leaf-02" in c.devices for c in cases if Selection(devices=("leaf-02",)).keeps(c))


names = st.text(min_size=1, max_size=12)
results = st.builds(
    Result, check=names, subject=names, state=st.sampled_from(State), text=st.text(max_size=30), place=st.text(max_size=9),
    measurements=st.lists(st.builds(Measurement, name=names, value=st.floats(allow_nan=False), unit=names), max_size=2).map(tuple),
    labels=st.dictionaries(names, names, max_size=2),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(results, st.lists(results, max_size=3))
def test_results_survive_json(whole, parts):
    whole = Result(
        whole.check, whole.subject, whole.state, whole.text, measurements=whole.measurements, parts=tuple(parts)
    )
    assert result_from_dict(json.loads(json.dumps(result_to_dict(whole)))) == whole


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.data())
def test_a_journal_cut_at_any_byte_keeps_every_complete_line(tmp_path_factory, count, data):
    folder = tmp_path_factory.mktemp("j")
    journal = Journal.start(folder, INFO)
    ends = []
    for number in range(count):
        journal.finish(Record(f"case-{number}", "cabling", Result("x", str(number), State.PASS, "ü\n")))
        ends.append((folder / "journal.jsonl").stat().st_size)
    journal.close()
    raw = (folder / "journal.jsonl").read_bytes()
    cut = data.draw(st.integers(raw.index(b"\n") + 1, len(raw)))
    (folder / "journal.jsonl").write_bytes(raw[:cut])
    again = Journal.resume(folder, INFO)
    assert list(again.finished) == [f"case-{n}" for n, end in enumerate(ends) if end <= cut]
    again.finish(Record("after", "cabling", Result("x", "y", State.PASS, "")))
    again.close()
    assert "after" in {r.case for r in read_journal(folder)[1]}


def test_resume_refuses_another_plan_and_a_second_writer(tmp_path):
    journal = Journal.start(tmp_path, INFO)
    with pytest.raises(InputError, match="another run is writing"):
        Journal.resume(tmp_path, INFO)
    journal.close()
    with pytest.raises(InputError, match="another plan"):
        Journal.resume(tmp_path, RunInfo(**(INFO.to_dict() | {"plan": "x"})))
    with pytest.raises(InputError, match="already holds a run"):
        Journal.start(tmp_path, INFO)


_CHILD = """
import sys, time
sys.path[:0] = [{root!r}]
from tests.unit.accept.test_runner import *
class Slow(SimulatedSite):
    def gather(self, asks, sample=0):
        time.sleep(0.004)
        return super().gather(asks, sample)
site = Slow(PLAN); site.rounds = 1
class Counted:
    def case_finished(self, record, repeated):
        if not repeated:
            with open({count!r}, "a") as f: f.write(record.case + chr(10))
    def __getattr__(self, name): return lambda *a, **k: None
from pathlib import Path
folder = Path({folder!r})
journal = Journal.resume(folder, INFO)
Runner(PLAN, site, journal, UndoLog(folder / "undo.jsonl", site), folder, RunOptions(settle_step_s=0), [Counted()]).run(
    [c for c in generate(PLAN, all_checks().values()) if c.check.passive])
"""


def test_kill_9_at_any_moment_then_resume_neither_loses_nor_repeats(tmp_path):
    """Killed three times at different points, then run to the end: each case finished exactly once."""
    root = str(Path(__file__).parents[3])
    count = tmp_path / "count"
    code = _CHILD.format(root=root, count=str(count), folder=str(tmp_path / "run"))
    journal = tmp_path / "run" / "journal.jsonl"
    for lines in (3, 11, 26):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=root)
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_bytes().count(b"\n") >= lines:
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.001)
        process.wait(20)
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, timeout=60)
    _, records = read_journal(tmp_path / "run")
    expected = [c.id for c in generate(PLAN, all_checks().values()) if c.check.passive]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    finished = [line["case"] for line in lines if line["event"] == "finished"]
    assert sorted(finished) == sorted(expected)
    assert len(records) == len(expected)
    # a case that was told of is in the journal; none was told of twice
    told = count.read_text().split("\n")[:-1]
    assert len(told) == len(set(told))
    assert set(told) <= set(finished)
