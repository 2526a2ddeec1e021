"""The gateway probes as checks: a pass in the lab is one for all their cases, and what nobody measured is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fabric.build import load_plan
from fabric.problem import CouldNotRunError
from validators.catalog import generate
from validators.check import Context, NotJudgedError
from validators.connections import checks
from validators.connections.checks import ConnectionLadder, ExposureInputs, IdleInputs, IdleTimeouts, NatBehaviour
from validators.journal_records import result_to_dict
from validators.journal_undo import UndoLog, has_pending
from validators.results import Result, State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
GOOD = {"results": [result_to_dict(Result("probe", "x", State.PASS, "measured"))]}


def test_exposures_that_are_measured_by_another_one_are_named() -> None:
    said = {case.id.partition("#")[0]: case.check().judge(PLAN, case.inputs, GOOD).text for case in generate(
        PLAN, [NatBehaviour, IdleTimeouts, ConnectionLadder]
    )}  # fmt: skip
    assert said["nat-behaviour:acme forward"] == "measured; not measured: acme forward-2, alike by nat-rules"
    assert said["idle-timeouts:acme masquerade"] == "measured; not measured: globex masquerade, alike by nat-timeouts"
    assert said["connection-ladder:acme masquerade"] == "measured"
    # who asks for the other one himself is told nothing of the kind
    other = NatBehaviour().judge(PLAN, ExposureInputs(tenant="acme", exposure="forward-2"), GOOD)
    assert other.text == "measured"


def test_cases_that_differ_in_nothing_but_the_exposure_are_one_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passes: list[list[Any]] = []

    def probe(_check: Any, _context: Any, _lab: Any, group: list[Any]) -> list[Result]:
        passes.append(group)
        return [Result("x", inputs.exposure, State.PASS, inputs.tenant) for inputs in group]

    def prepare(_context: Any, _lab: Any, inputs: Any) -> None:
        if inputs.tenant == "globex":
            raise NotJudgedError("no server of it is in the lab", State.SKIPPED)

    monkeypatch.setattr(checks, "hosts_of", lambda _context: None)
    monkeypatch.setattr(checks, "lab_of", lambda _context: None)
    monkeypatch.setattr(checks, "prepare", prepare)
    monkeypatch.setattr(IdleTimeouts, "probe", probe)
    one, two, slow, gone = (
        IdleInputs(tenant="acme", exposure="masquerade"),
        IdleInputs(tenant="acme", exposure="forward"),
        IdleInputs(tenant="acme", exposure="forward-2", scale=0.5),
        IdleInputs(tenant="globex", exposure="forward"),
    )
    undo = UndoLog(tmp_path / "undo.jsonl", None)  # type: ignore[arg-type]
    context = Context(PLAN, None, undo)  # type: ignore[arg-type]
    undo.push("compute-001", "down", "remove the tester's stand")
    found = IdleTimeouts().collect_all(context, [one, slow, gone, two])
    assert not undo.pending
    assert not has_pending(tmp_path / "undo.jsonl")
    assert passes == [[one, two], [slow]]
    assert [seen["results"][0]["subject"] for seen in found if isinstance(seen, dict)] == [
        "masquerade",
        "forward-2",
        "forward",
    ]
    assert isinstance(found[2], NotJudgedError)
    with pytest.raises(NotJudgedError, match="no server of it"):
        IdleTimeouts().collect(context, gone)
    monkeypatch.setattr(IdleTimeouts, "probe", lambda *_: 1 / 0)
    undo.push("compute-001", "down", "remove the tester's stand")
    with pytest.raises(ZeroDivisionError):
        IdleTimeouts().collect(context, one)
    assert undo.pending  # what broke may have left its stand


def test_on_a_site_one_exposure_that_cannot_be_measured_is_nothing_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def testers(_plan: Any, _hosts: Any, target: Any) -> Any:
        raise CouldNotRunError(f"no agent for {target.exposure.name}")

    monkeypatch.setattr(checks, "hosts_of", lambda _context: {})
    monkeypatch.setattr(checks, "testers_of", testers)
    wanted = [ExposureInputs(tenant="acme", exposure=name) for name in ("masquerade", "static")]
    found = NatBehaviour().collect_all(Context(PLAN, None, None), wanted)  # type: ignore[arg-type]
    assert [str(error) for error in found] == ["no agent for masquerade", "no agent for static"]
