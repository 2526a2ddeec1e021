"""A run that was ended before its end is never accepted, says where it stopped and how to go on, in every format."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fabric.build import load_plan
from fabric.cli.main import main
from tests.unit.accept.simulated import SimulatedSite
from validators import runner_acceptance
from validators.catalog import Selection
from validators.report.redact import Redactor
from validators.report.write import FORMATS, load_run
from validators.runner import Runner
from validators.runner_acceptance import Acceptance, accept

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
_CHECKS = ("device-answers", "bgp-sessions", "gateway-serving")


@pytest.fixture(autouse=True)
def site(monkeypatch: pytest.MonkeyPatch) -> SimulatedSite:
    site = SimulatedSite(PLAN)
    site.rounds = 2
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    return site


def _ended_in_gateways(monkeypatch: pytest.MonkeyPatch, end: Any) -> None:
    real = Runner._stage

    def stage(self: Runner, stage: Any, cases: Any, blocked: str) -> Any:
        if stage.value == "gateways":
            end()
        return real(self, stage, cases, blocked)

    monkeypatch.setattr(Runner, "_stage", stage)


def _wanted(out: Path, **more: Any) -> Acceptance:
    return Acceptance(PLAN, out, name="r", selection=Selection(checks=_CHECKS), **more)


def _check_every_format(texts: dict[str, str]) -> None:
    assert set(texts) == set(FORMATS)
    assert not [name for name, text in texts.items() if "interrupted" not in text]
    assert json.loads(texts["json"])["verdict"] == "interrupted"
    assert json.loads(texts["json"])["counts"]["error"] == 1
    assert texts["markdown"].startswith("# Acceptance of lab: interrupted")
    assert ElementTree.fromstring(texts["junit"]).get("errors") == "1"
    rows = list(csv.DictReader(io.StringIO(texts["csv"])))
    assert [(r["state"], r["stage"]) for r in rows if r["state"] != "pass"] == [("error", "run")]
    assert 'verdict="interrupted"' in texts["prometheus"]
    assert 'class="verdict v-interrupted"' in texts["html"]
    assert not [name for name, text in texts.items() if name != "html" and ": accepted" in text]


def test_a_terminated_run_is_interrupted_in_every_format_and_names_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _ended_in_gateways(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as caught:
        main(["accept", "lab", "--out", str(tmp_path), "--name", "r", "--check", ",".join(_CHECKS)])
    assert caught.value.code == 143
    last = capsys.readouterr().err.splitlines()[-1]
    assert "ended by SIGTERM" in last
    assert "--resume" in last
    assert str(tmp_path / "r") in last
    _check_every_format({name: (tmp_path / "r" / file).read_text() for name, (file, _) in FORMATS.items()})


def test_a_killed_run_whose_journal_has_no_end_is_interrupted_and_accepted_when_it_went_on(tmp_path: Path) -> None:
    accept(_wanted(tmp_path))
    journal = tmp_path / "r" / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"stage":"gateways"' not in line and '"end"' not in line))
    killed = load_run(tmp_path / "r")
    assert killed.verdict == "interrupted"
    assert f"{len(killed.records) - 1} of {len(lines) - 2} cases ended; not run: 2 of gateways" in (
        killed.records[-1].result.text
    )
    _check_every_format({name: make(killed) for name, (_, make) in FORMATS.items()})
    run, _, _ = accept(_wanted(tmp_path, resume=True))
    assert run.verdict == "accepted"


def test_a_run_that_lost_only_its_end_is_not_accepted_either(tmp_path: Path) -> None:
    accept(_wanted(tmp_path))
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    assert load_run(tmp_path / "r").verdict == "interrupted"
