"""Checks that a site writes itself: a command, and what its output must and must not have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from fabric.build import load_plan
from fabric.problem import InputError
from tests.unit.accept.simulated import SimulatedSite
from validators import runner_acceptance
from validators.catalog import Selection
from validators.devices.answers import Answer
from validators.own.checks import CommandInputs
from validators.report.redact import Redactor
from validators.results import State
from validators.runner_acceptance import Acceptance, accept, cases_of

if TYPE_CHECKING:
    from validators.report.model import Run

pytestmark = pytest.mark.unit

PLAN = load_plan("lab")
CLOCK = '{name: clock, devices: ["leaf-[01-02]", "gw-*"], command: chronyc tracking, matches: "Leap status +: Normal"}'
GOOD = "Reference ID    : C0000201\nLeap status     : Normal\n"


class Talking(SimulatedSite):
    """Devices of which each answers a command with its own words."""

    words: dict[str, Answer]

    def run(self, device, command, timeout_s=30.0):
        self.ran.append((device, command))
        return self.words.get(device, Answer(GOOD))


def _file(folder: Path, *cases: str) -> Path:
    file = folder / "own.yaml"
    file.write_text("catalog:\n  stability:\n    device-command:\n" + "".join(f"      - {case}\n" for case in cases))
    return file


def _run(folder: Path, monkeypatch: pytest.MonkeyPatch, case: str = CLOCK, **words: str | Answer) -> Run:
    site = Talking(PLAN)
    site.words = {
        name.replace("_", "-"): said if isinstance(said, Answer) else Answer(said) for name, said in words.items()
    }
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    chosen = Selection(checks=("device-command",))
    return accept(Acceptance(PLAN, folder / "runs", name="r", selection=chosen, also=_file(folder, case)))[0]


def test_each_device_is_a_result(tmp_path, monkeypatch) -> None:
    run = _run(
        tmp_path, monkeypatch, leaf_02="Leap status     : Not synchronised\n", gw_01=Answer(error="exit 127: no")
    )
    (record,) = run.records
    assert [(part.labels["device"], part.state) for part in record.result.parts] == [
        ("leaf-01", State.PASS),
        ("leaf-02", State.FAIL),
        ("gw-01", State.ERROR),
        ("gw-02", State.PASS),
    ]
    failed = record.result.parts[1]
    assert "has no line with 'Leap status +: Normal'" in failed.text
    assert "Not synchronised" in failed.text
    assert failed.place == "leaf-02 `chronyc tracking`"
    assert record.result.subject == "clock"


def test_what_must_not_be_there_fails_with_its_line(tmp_path, monkeypatch) -> None:
    case = '{name: cores, devices: "leaf-*", command: ls /var/core, lacks: "^core"}'
    run = _run(tmp_path, monkeypatch, case, leaf_01="core.bgpd.17\n", leaf_02="")
    good, bad = sorted(run.records[0].result.parts, key=lambda part: part.state is State.FAIL)
    assert (good.state, bad.state) == (State.PASS, State.FAIL)
    assert "says 'core.bgpd.17', and must not have '^core'" in bad.text


def test_an_earlier_run_is_judged_again_offline(tmp_path, monkeypatch) -> None:
    first = _run(tmp_path, monkeypatch, leaf_02="unsynchronised")
    monkeypatch.undo()
    chosen = Selection(checks=("device-command",))
    again, _, _ = accept(
        Acceptance(PLAN, tmp_path, stored=tmp_path / "runs" / "r", selection=chosen, also=tmp_path / "own.yaml")
    )
    (before,), (after,) = first.records, again.records
    assert (after.result.text, after.result.parts) == (before.result.text, before.result.parts)


def test_own_cases_are_added_to_the_plans(tmp_path) -> None:
    plain = cases_of(Acceptance(PLAN, tmp_path))
    assert "device-command" not in {case.check.name for case in plain}
    file = _file(tmp_path, CLOCK)
    with_own = cases_of(Acceptance(PLAN, tmp_path, also=file))
    assert [case.id for case in with_own if case.check.name != "device-command"] == [case.id for case in plain]
    assert len(with_own) == len(plain) + 1
    stages = [case.check.stage.value for case in with_own]
    assert stages == sorted(stages, key=list(dict.fromkeys(case.check.stage.value for case in plain)).index)
    file.write_text("catalog: {control-plane: {bgp-sessions: [{device: leaf-01}]}}")
    assert len(cases_of(Acceptance(PLAN, tmp_path, also=file))) == len(plain), "what the plan asks is asked once"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ('{name: a, devices: "nix-*", command: "true", matches: x}', "no device is 'nix-*'"),
        ('{name: a, devices: "leaf-[02-01]", command: "true", matches: x}', "no device is 'leaf-[02-01]'"),
        ('{name: a, devices: "leaf-01", command: "true", matches: "(("}', "'((' is no regular expression"),
        ('{name: a, devices: "leaf-01", command: "true"}', "give 'matches' or 'lacks', else it could not fail"),
        ('{name: a, devices: "leaf-01", command: " ", matches: x}', "at least 1 character"),
        ("{name: a, devices: [], command: x, matches: x}", "at least 1 item"),
    ],
)
def test_a_case_that_cannot_be_asked_is_named_with_its_line(tmp_path, case, said) -> None:
    with pytest.raises(InputError) as caught:
        cases_of(Acceptance(PLAN, tmp_path, also=_file(tmp_path, CLOCK, case)))
    (problem,) = caught.value.problems
    assert said in problem.text
    assert problem.line == 5


def test_a_repetition_without_end_is_no_regular_expression():
    with pytest.raises(ValidationError, match="is no regular expression"):
        CommandInputs(name="a", devices=("leaf-01",), command="true", matches=("x{99999999999}",))
