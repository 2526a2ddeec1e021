"""What `accept`, `catalog`, `report` and `snapshot` do with files and words that are not what they should be."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabric.build import load_plan
from fabric.cli.main import main
from fabric.problem import InputError
from tests.unit.accept.simulated import SimulatedSite
from validators import runner_acceptance
from validators.catalog import Selection
from validators.devices.answers import Answer, Ask
from validators.devices.stored import Recorder, StoredDevices
from validators.journal import JsonLines
from validators.journal_records import Record, RunInfo
from validators.journal_undo import has_pending, replay
from validators.report.redact import Redactor
from validators.results import Result, State
from validators.runner_acceptance import Acceptance, accept, take_snapshot

pytestmark = pytest.mark.unit

_INFO = RunInfo("r", "lab", "distributed", "p", "c", "stored", "2026-01-01T00:00:00Z")
_RECORD = Record("a", "cabling", Result("cabling", "lab", State.PASS, "as planned"), "2026-01-01T00:00:01Z")
_FIRST = {"event": "run", **_INFO.to_dict()}
_CASE = {"event": "finished", **_RECORD.to_dict()}


def _run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(list(argv))
    out = capsys.readouterr()
    return int(caught.value.code or 0), out.out, out.err


def _run_of(folder: Path, *lines: dict[str, Any]) -> Path:
    folder.mkdir()
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_sound_journal_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = _run(capsys, "report", "show", str(_run_of(tmp_path / "r", _FIRST, _CASE)), "--format", "json")
    assert code == 0, err
    assert json.loads(out)


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (({"event": "run"},), ":1:"),
        (({**_FIRST, "versions": 3},), ":1:"),
        ((_FIRST, {"event": "finished"}), ":2:"),
        ((_FIRST, _CASE, {**_CASE, "result": {**_CASE["result"], "state": "green"}}), ":3:"),
    ],
)
def test_a_damaged_journal_names_its_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, lines: tuple[dict[str, Any], ...], where: str
) -> None:
    folder = str(_run_of(tmp_path / "r", *lines))
    for words in (("report", "show", folder), ("report", "diff", folder, folder)):
        code, out, err = _run(capsys, *words, "--format", "json")
        assert code == 2, err
        assert f"journal.jsonl{where}" in err
        assert json.loads(out)["problems"]


def test_a_case_that_was_taken_out_of_a_journal_is_missed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    end = {"event": "end", "at": "2026-01-01T00:00:09Z"}
    for count, verdict in ((1, "accepted"), (2, "not decided")):
        first = {**_FIRST, "cases": {"cabling": count}}
        folder = str(_run_of(tmp_path / str(count), first, _CASE, end))
        _, out, _ = _run(capsys, "report", "show", folder, "--format", "json")
        assert json.loads(out)["verdict"] == verdict
    assert "the journal lacks cases of a run that has ended: 1 of cabling" in out


def _with(**changes: Any) -> dict[str, Any]:
    return {**_CASE, "result": {**_CASE["result"], **changes}}


def _measured(**changes: Any) -> dict[str, Any]:
    return _with(measurements=[{"name": "rate", "value": 1.5, "unit": "Gb/s", **changes}])


@pytest.mark.parametrize("style", ["html", "junit", "json", "csv", "markdown", "prometheus", "diff"])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (_measured(value=float("nan")), "NaN is not a number of JSON"),
        (_measured(value=float("-inf")), "-Infinity is not a number of JSON"),
        (_with(duration_s=1e999), "Infinity"),
        (_measured(value="12"), "value of the measurement is no number"),
        (_measured(value=10**400), "larger than any number"),
        (_with(labels={"port": 4}), "port of the labels is no text"),
        (_with(text="a\ud800b"), "surrogates not allowed"),
        (_with(parts=[3]), "result is no object"),
        ({**_CASE, "tags": [{}]}, "tags of the case are not all text"),
    ],
)
def test_no_report_is_made_from_what_is_no_number_or_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, style: str, line: dict[str, Any], said: str
) -> None:
    folder = str(_run_of(tmp_path / "r", _FIRST, _measured(), line))
    words = ("report", "diff", folder, folder) if style == "diff" else ("report", "show", folder, "--format", style)
    code, _, err = _run(capsys, *words)
    assert code == 2, err
    assert "journal.jsonl:3: error" in err
    assert said in err


def test_evidence_of_any_shape_is_shown_without_its_drawing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence = {"matrix": {"rows": 5}, "idle": {"rows": [3]}, "ladder": {"points": [{}]}, "timeline": {"start_ms": 0}}
    folder = str(_run_of(tmp_path / "r", _FIRST, _with(evidence=evidence)))
    code, out, err = _run(capsys, "report", "show", folder, "--format", "html")
    assert code == 0, err
    assert "cannot be drawn" in out


@pytest.mark.parametrize("text", ["{", '{"panels": [{}]}', "[]", '{"width": NaN, "height": 1, "panels": []}', "\0"])
def test_a_damaged_drawing_is_refused_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str) -> None:
    folder = _run_of(tmp_path / "r", _FIRST, _CASE)
    (folder / "topology.json").write_text(text)
    code, _, err = _run(capsys, "report", "show", str(folder), "--format", "html")
    assert code == 2, err
    assert "topology.json:1: error" in err


def test_a_number_that_json_has_not_never_gets_into_a_journal(tmp_path: Path) -> None:
    with JsonLines(tmp_path / "journal.jsonl") as lines, pytest.raises(ValueError, match="JSON"):
        lines.append({"value": float("nan")})


@pytest.mark.parametrize("file", ["snapshot.json", "journal.jsonl"])
def test_answers_of_another_site_are_an_input_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, file: str
) -> None:
    folder = tmp_path / "stored"
    (folder / "devices" / "leaf-01").mkdir(parents=True)
    (folder / file).write_text(json.dumps({"event": "run", "site": "xoc-64"}) + "\n")
    code, _, err = _run(capsys, "accept", "lab", "--from", str(folder), "--out", str(tmp_path / "runs"))
    assert code == 2, err
    assert "holds the answers of site xoc-64, not of lab" in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("accept", "lab", "--list", "--check", "nope"), 2, "matches no check"),
        (("accept", "lab", "--list", "--limit", "leef-*"), 2, "matches no device"),
        (("accept", "lab", "--list", "--tenant", "nope"), 2, "matches no tenant"),
        (("accept", "lab", "--list", "--tags", "nope"), 4, ""),
        (("accept", "lab", "--list", "--check", ""), 2, "is empty"),
        (("accept", "lab", "--list", "--name", "../x"), 2, "no name of a folder"),
        (("accept", "lab", "--list", "--from", ""), 2, "is empty"),
        (("accept", "lab", "--list", "--out", ""), 2, "is empty"),
        (("accept", "lab", "--list", "--settle", "nan"), 2, "finite"),
        (("catalog", "--explain", ""), 2, "no check"),
        (("catalog", "--explain", "bgp-sesions"), 2, "did you mean bgp-sessions"),
        (("catalog", "--explain", "nosuch"), 2, "see `kvfabric catalog --list`"),
        (("catalog", "lab", "--list"), 2, "leave SITE out"),
        (("report", "diff", ".", ".", "--tolerance", "nan"), 2, "finite"),
        (("snapshot", "lab", "--out", ""), 2, "is empty"),
        (("snapshot", "lab", "--out", "x", "--samples", "0"), 2, "samples"),
    ],
)
def test_words_that_name_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    got, _, err = _run(capsys, *words)
    assert (got, said in err) == (code, True), err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "site: xoc-64\ncatalog:\n  preflight:\n    device-answers:\n      - {device: leaf-01}\n",
            "the catalog is of site xoc-64",
        ),
        ("site: lab\ncatalog:\n  cabling:\n    device-answers:\n      - {device: leaf-01}\n", "stands under 'cabling'"),
    ],
)
def test_a_catalog_of_another_site_or_stage_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "c.yaml").write_text(text)
    code, _, err = _run(capsys, "accept", "lab", "--list", "--catalog", str(tmp_path / "c.yaml"))
    assert code == 2, err
    assert said in err


def test_a_hosts_file_of_wrong_kinds_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("leaf-01: {hostname: '', data: {}}\nleaf-02: {data: 5}\n")
    code, _, err = _run(
        capsys, "snapshot", "lab", "--hosts", str(tmp_path / "hosts.yaml"), "--out", str(tmp_path / "s")
    )
    assert code == 2, err
    assert "hostname is empty" in err
    assert "data must be" in err


@pytest.mark.parametrize(
    "text",
    [
        "platform: []", "platform:", "hostname:", "hostname: [a]", "hostname: -oProxyCommand=id", "hostname: a b",
        "username: {a: b}", "password: 0123", "password: [hunter2]", "hostname: !!bool x", "port: !!int ''",
        "hostname: !!timestamp x", "hostname: a, hostname: b", "data: {dialect: hunter2}", "data: {key_file: /no/key}",
        "data: {password_env: [A]}", "data: {known_hosts: 5}", "data: {dialect: linux, dialect: linux}", "port: true",
        "data: {tester: {side: [], port: a, hop: 10.0.0.1, network: 10.0.0.0/24, hosts: [10.0.0.2, 10.0.0.3]}}",
        "data: {tester: {side: inside, port: [a], hop: 10.0.0.1, network: 10.0.0.0/24, hosts: [10.0.0.2, 10.0.0.3]}}",
    ],
)  # fmt: skip
def test_a_hosts_file_with_odd_fields_is_refused_with_its_line_and_a_fix(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    (tmp_path / "hosts.yaml").write_text(f"leaf-02: {{}}\nleaf-01: {{{text}}}\n")
    code, _, err = _run(capsys, "accept", "lab", "--hosts", str(tmp_path / "hosts.yaml"), "--list")
    assert code == 2
    assert re.search(r"hosts.yaml:[12]: error: ", err), err
    assert "fix: " in err
    assert "hunter2" not in err.replace("dialect 'hunter2'", "")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("fabric: nosuch", "the plan has no fabric 'nosuch'"),
        ("fabric: fabric, samples: true", "valid integer"),
        ("fabric: fabric, interval_s: '1e0'", "valid number"),
        ("fabric: fabric, interval_s: .nan", "finite"),
        ("fabric: fabric, samples: 1, samples: 2", "'samples' is already given in line 4"),
        ("fabric: fabric, tags: 5", "must be a list of words"),
        ("fabric: !!bool x", "not plain values"),
        ("fabric: fabric, samples: !!int ''", "not plain values"),
        ("fabric: fabric, [a]: b", "a key must be a plain word"),
        ("fabric: &a [*a]", "not plain values"),
    ],
)
def test_a_case_that_makes_no_sense_is_refused_with_its_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, case: str, said: str
) -> None:
    (tmp_path / "c.yaml").write_text(f"catalog:\n  cabling:\n    cabling:\n      - {{{case}}}\n")
    code, _, err = _run(capsys, "accept", "lab", "--list", "--catalog", str(tmp_path / "c.yaml"))
    assert code == 2
    assert "c.yaml:4: error" in err
    assert said in err


@pytest.mark.parametrize(
    "case",
    [
        ("gateways", "nat-behaviour", "tenant: acme, exposure: nosuch"),
        ("gateways", "connection-ladder", "tenant: acme, exposure: masquerade, protocol: x"),
        ("roce", "rdma-scenario", "tenant: acme, owner: 'compute-001:x', reader: x, scenario: access"),
        ("tenants", "tenant-matrix", "tenant: acme, count: 0"),
    ],
)
def test_a_case_about_what_the_plan_lacks_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, case: tuple[str, str, str]
) -> None:
    (tmp_path / "c.yaml").write_text("catalog:\n  {}:\n    {}:\n      - {{{}}}\n".format(*case))
    code, _, err = _run(capsys, "accept", "lab", "--list", "--catalog", str(tmp_path / "c.yaml"))
    assert (code, "c.yaml:4: error" in err) == (2, True), err


def test_nobody_to_ask_names_every_way(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path / "labs"))
    monkeypatch.delenv("KVFABRIC_LAB", raising=False)
    code, _, err = _run(capsys, "accept", "xoc-64", "--out", str(tmp_path / "runs"))
    assert code == 2
    assert "xoc-64: who is to be asked is not said, and no lab is running" in err
    assert [way for way in ("--hosts FILE", "--from DIR", "--engine uml", "--lab NAME") if way not in err] == []
    assert "lab up" not in err
    code, _, err = _run(capsys, "snapshot", "xoc-64", "--out", str(tmp_path / "snap"))
    assert code == 2
    assert "fix: --hosts FILE (real devices over SSH), or --lab NAME" in err
    assert "--engine" not in err
    assert not (tmp_path / "snap").exists()
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("accept", "lab", "--hosts", "nothere.yaml"), "be-leaf-01: {hostname: 192.0.2.11, username: admin"),
        (("snapshot", "lab", "--out", "x", "--hosts", "nothere.yaml"), "be-leaf-01: {hostname: 192.0.2.11"),
        (("accept", "lab", "--from", "nothere"), "kvfabric snapshot SITE --hosts FILE --out DIR"),
        (("accept", "lab", "--catalog", "nothere.yaml"), "kvfabric catalog SITE > catalog.yaml"),
        (("report", "show", "nothere"), "out/SITE/runs/NAME"),
    ],
)
def test_a_file_that_is_not_there_says_what_it_would_be(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], fix: str
) -> None:
    code, _, err = _run(capsys, *words)
    assert code == 2
    assert "does not exist" in err
    assert fix in err.partition("fix: ")[2]


def test_list_reads_the_hosts_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text("leef-01: {hostname: 192.0.2.1}\n")
    code, out, err = _run(capsys, "accept", "lab", "--hosts", str(path), "--list")
    assert (code, out) == (2, "")
    assert f"{path}:1: error: leef-01: is not a device of the plan" in err
    path.write_text("leaf-01: {hostname: 192.0.2.1}\n")
    assert _run(capsys, "accept", "lab", "--hosts", str(path), "--list")[0] == 0


def test_list_looks_at_the_snapshot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert _run(capsys, "accept", "lab", "--from", str(tmp_path), "--list")[0] == 2


@pytest.mark.parametrize("listed", [("--list",), ("--list", "--format", "json"), ("--from", ".")])
def test_a_selection_of_nothing_says_why(capsys: pytest.CaptureFixture[str], listed: tuple[str, ...]) -> None:
    code, out, err = _run(capsys, "accept", "lab", "--tags", "stabilty", *listed)
    assert (code, out.strip()) == (4, "[]" if "json" in listed else "")
    assert "no case has the tag 'stabilty': did you mean stability? tags here: " in err
    code, _, err = _run(capsys, "accept", "lab", "--tags", "cabling", "--check", "bgp-sessions", *listed)
    assert code == 4
    assert "no case has all of this at once" in err


def test_checks_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "catalog", "--list", "--format", "json")
    listed = {row["check"]: row for row in json.loads(out)}
    assert (code, listed["fabric-failover"]["disruptive"], listed["bgp-sessions"]["disruptive"]) == (0, True, False)
    code, out, _ = _run(capsys, "catalog", "--explain", "bgp-sessions", "--format", "json")
    assert (code, json.loads(out)) == (0, listed["bgp-sessions"])
    code, _, err = _run(capsys, "catalog", "lab", "--format", "json")
    assert (code, "a catalog is YAML" in err) == (2, True)


@pytest.mark.parametrize(
    "line", ['{"push": 1}', '{"push": "1", "device": "a", "command": "b", "text": "c"}', '{"done": []}', "{}"]
)
def test_a_damaged_list_of_deeds_is_refused_and_nobody_is_asked(tmp_path: Path, line: str) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "undo.jsonl").write_text('{"push":7,"device":"d","command":"c","text":"t"}\n' + line + "\n")
    with pytest.raises(InputError, match=r"undo.jsonl:2: error: .* taken back"):
        replay(tmp_path, SimulatedSite(load_plan("lab")))


def test_deeds_stay_pending_whatever_else_is_said_to_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "undo.jsonl"
    path.write_text('{"push":7,"device":"d","command":"c","text":"t"}\n{"done":3}\n')
    assert has_pending(path)


def test_a_run_that_is_there_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_plan("lab")
    site = SimulatedSite(plan)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    wanted = Acceptance(plan, tmp_path, name="r", selection=Selection(checks=("device-answers",)))
    accept(wanted)
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    site.physical, site.name = True, "another"
    for again in (wanted, replace(wanted, resume=True)):
        with pytest.raises(InputError):
            accept(again)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == kept


def test_runs_of_one_second_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load_plan("lab")
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (SimulatedSite(plan), Redactor([])))
    wanted = Acceptance(plan, tmp_path, selection=Selection(checks=("device-answers",)))
    folders = [accept(wanted)[1] for _ in range(3)]
    assert len(set(folders)) == 3
    # the last one is the one that was written to last, whatever it is called
    accept(replace(wanted, name="0-first"))
    assert accept(replace(wanted, resume=True))[1].name == "0-first"


def test_answers_of_an_earlier_snapshot_do_not_stand_in_for_those_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = load_plan("lab")
    site = SimulatedSite(plan)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    take_snapshot(Acceptance(plan, tmp_path), tmp_path / "s")
    assert StoredDevices(tmp_path / "s").gather([Ask("leaf-01", "bgp")])[Ask("leaf-01", "bgp")].ok
    site.broken[("leaf-01", "bgp")] = lambda _: Answer(error="bgpd does not run")
    take_snapshot(Acceptance(plan, tmp_path), tmp_path / "s", samples=1)
    assert StoredDevices(tmp_path / "s").gather([Ask("leaf-01", "bgp")])[Ask("leaf-01", "bgp")].error
    assert StoredDevices(tmp_path / "s").rounds == 1
    site.broken[("leaf-01", "version")] = lambda _: 1 / 0
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ZeroDivisionError):
        take_snapshot(Acceptance(plan, tmp_path), tmp_path / "s")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == kept


def test_a_sample_without_an_answer_is_not_the_sample_before(tmp_path: Path) -> None:
    site = SimulatedSite(load_plan("lab"))
    ask = Ask("leaf-01", "carrier")
    site.broken[ask] = lambda data, *, sample: Answer(error="dead") if sample else data
    recorder = Recorder(site, tmp_path, Redactor([]))
    for sample in range(2):
        recorder.gather([ask], sample)
    stored = StoredDevices(tmp_path)
    assert [stored.gather([ask], sample)[ask].error for sample in range(2)] == ["", "dead"]
    assert stored.gather([ask], 5)[ask].again
    (tmp_path / "devices" / "leaf-01" / "lldp.error.txt").write_bytes(b"\xff\n")
    assert not stored.gather([Ask("leaf-01", "lldp")])[Ask("leaf-01", "lldp")].ok
    (tmp_path / "devices" / "leaf-01" / "lldp.error.txt").write_text("")
    assert not stored.gather([Ask("leaf-01", "lldp")])[Ask("leaf-01", "lldp")].ok
