"""What an acceptance says on stderr while it runs: a check that takes minutes is named now and then."""

from __future__ import annotations

import io
import threading
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import SimulatedSite
from tests.unit.accept.test_runner import INFO, PLAN, define
from validators.catalog import Case, make_case
from validators.check import CheckInputs, Stage
from validators.journal import Journal
from validators.journal_records import Record
from validators.journal_undo import UndoLog
from validators.preflight.checks import DeviceAnswers
from validators.results import Result, State
from validators.runner import Runner, RunOptions
from validators.runner_events import Progress

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def _case() -> Case:
    plan = load_plan("lab")
    return make_case(plan, DeviceAnswers, next(iter(DeviceAnswers.cases(plan))))


def test_a_long_case_is_named_with_its_seconds_and_a_short_one_is_not() -> None:
    now, out, case = [0.0], io.StringIO(), _case()
    progress = Progress(out, colour=False, every_s=30.0, clock=lambda: now[0])
    progress.stage_started(Stage.PREFLIGHT, 7)
    progress.case_started(case)
    now[0] = 29.0
    progress.still()
    assert out.getvalue() == ""
    now[0] = 61.4
    progress.still()
    assert out.getvalue() == f"  … preflight: 1/7, device-answers {case.subject}, for 61 s now\n"
    progress.case_finished(
        Record(case.id, "preflight", Result("device-answers", case.subject, State.PASS, "")), repeated=False
    )
    now[0] = 200.0
    progress.still()
    assert out.getvalue().count("\n") == 1


def test_questions_asked_ahead_are_named_too() -> None:
    now, out = [0.0], io.StringIO()
    progress = Progress(out, colour=False, every_s=30.0, clock=lambda: now[0])
    progress.stage_started(Stage.CABLING, 7)
    now[0] = 31.0
    progress.still()
    assert out.getvalue() == "  … cabling: 0/7, asking the devices, for 31 s now\n"


class _Told(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()

    def write(self, text: str) -> int:
        self.heard.set()
        return super().write(text)


def test_it_is_said_while_the_check_is_busy_and_no_more_afterwards() -> None:
    out, case = _Told(), _case()
    with Progress(out, colour=False, every_s=0.005) as progress:
        # a lab is started before the first stage, by forks that threads would endanger
        assert not [one for one in threading.enumerate() if one.name == "progress"]
        progress.stage_started(Stage.PREFLIGHT, 1)
        progress.case_started(case)
        assert out.heard.wait(30)
    said = out.getvalue()
    assert "device-answers" in said
    assert not [one for one in threading.enumerate() if one.name == "progress"]


def test_a_reader_that_has_left_ends_the_words_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    with Progress(out, colour=False, every_s=0.005) as progress:
        progress.stage_started(Stage.PREFLIGHT, 1)
        out.close()
        progress._pulse.join(30)
        assert not progress._pulse.is_alive()
    assert capsys.readouterr().err == ""


def test_the_line_of_a_stage_counts_skipped_parts_of_cases_that_passed(tmp_path: Path) -> None:
    parts = (Result("p", "a", State.PASS, ""), Result("p", "b", State.SKIPPED, "no"))
    check = define(name="HalfProbe", judge=lambda s, _p, _i, _o: Result(s.name, "", State.PASS, "", parts=parts))
    site, out = SimulatedSite(PLAN), io.StringIO()
    journal, undo = Journal.start(tmp_path, INFO), UndoLog(tmp_path / "undo.jsonl", site)
    with Progress(out, colour=False) as progress:
        cases = [make_case(PLAN, check, CheckInputs())]
        Runner(PLAN, site, journal, undo, tmp_path, RunOptions(), [progress]).run(cases)
    journal.close()
    undo.close()
    assert "preflight: 1 pass, 1 skipped as parts\n" in out.getvalue()


def test_a_stage_that_is_not_run_says_how_many_cases_it_has() -> None:
    out = io.StringIO()
    progress = Progress(out, colour=False)
    progress.stage_finished(Stage.FAILOVER, {"skipped": 4}, "not run, because stage cabling failed")
    progress.stage_finished(Stage.STABILITY, {"skipped": 2}, "")
    assert out.getvalue().splitlines() == [
        "- failover: 4 skipped: not run, because stage cabling failed",
        "- stability: 2 skipped",
    ]
