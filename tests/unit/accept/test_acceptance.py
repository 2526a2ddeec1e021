"""A whole acceptance: live on a simulated site, offline from its snapshot and from its run, and on the command line."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from fabric.build import load_plan
from fabric.cli.main import cli
from tests.unit.accept.tenant_traffic import LiveSite
from validators import runner_acceptance
from validators.catalog import Selection, generate
from validators.catalog_file import to_yaml
from validators.check_registry import all_checks
from validators.devices.answers import Answer
from validators.report.redact import Redactor
from validators.report.write import FORMATS, load_run
from validators.runner_acceptance import Acceptance, accept, take_snapshot

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")


@pytest.fixture
def live(monkeypatch):
    site = LiveSite(PLAN)
    site.rounds = 2
    real = runner_acceptance.open_devices
    monkeypatch.setattr(
        runner_acceptance, "open_devices", lambda w, *say: real(w) if w.stored else (site, Redactor(["s3cret"]))
    )
    return site


def test_accept_then_judge_its_own_run_offline(tmp_path, live):
    run, folder, files = accept(Acceptance(PLAN, tmp_path, name="live"))
    assert run.verdict == "accepted", [
        r.result.text for r in run.records if r.result.state.value not in {"pass", "skipped"}
    ]
    assert set(files) == set(FORMATS)
    asked = len(live.asked)
    again, _, _ = accept(Acceptance(PLAN, tmp_path, name="offline", stored=folder))
    assert again.verdict == "accepted"
    assert {r.case: r.result.state for r in again.records} == {r.case: r.result.state for r in run.records}
    assert len(live.asked) == asked


def test_a_snapshot_is_judged_like_the_site_and_says_what_must_run_live(tmp_path, live):
    live.broken[("leaf-01", "bgp")] = lambda d: (
        d["default"]["ipv4Unicast"]["peers"]["Ethernet256"].update(state="Idle") or d
    )
    counts = take_snapshot(Acceptance(PLAN, tmp_path), tmp_path / "snap", samples=2)
    assert counts["without answer"] == 0
    run, _, _ = accept(Acceptance(PLAN, tmp_path / "runs", stored=tmp_path / "snap", keep_going=True))
    bad = [r.result for r in run.records if r.result.state.value in {"fail", "error"}]
    assert [(r.check, r.subject) for r in bad] == [("bgp-sessions", "leaf-01")]
    assert all("must run live" in r.result.text for r in run.records if r.stage == "tenants")


def test_what_was_dropped_from_a_catalog_or_edited_in_it_stands_beside_the_verdict(tmp_path, live):
    kept = to_yaml(PLAN, [c for c in generate(PLAN, all_checks().values()) if c.check.name != "bfd-sessions"])
    kept = kept.replace("      - {device: leaf-02}\n", "", 1).replace(
        "{fabric: fabric}", "{fabric: fabric, samples: 1}", 1
    )
    (tmp_path / "c.yaml").write_text(kept)
    run, folder, files = accept(Acceptance(PLAN, tmp_path, name="edited", catalog=tmp_path / "c.yaml"))
    lacks = "left out of the catalog: device-answers (leaf-02), bfd-sessions (6 cases)"
    assert run.verdict == "accepted"
    assert lacks in run.without
    assert "with other inputs than the plan's: cabling (fabric)" in run.without
    assert [name for name, path in files.items() if lacks in path.read_text()] == [f for f in FORMATS if f != "csv"]
    assert load_run(folder).without == run.without
    whole, _, _ = accept(Acceptance(PLAN, tmp_path, name="whole"))
    assert not whole.info.dropped
    assert not [text for text in whole.without if "catalog" in text or "inputs" in text]
    few = Acceptance(
        PLAN, tmp_path, name="few", catalog=tmp_path / "c.yaml", selection=Selection(checks=("b*-sessions",))
    )
    assert list(accept(few)[0].info.dropped) == ["bfd-sessions"]


def test_secrets_never_reach_the_run_folder(tmp_path, live):
    live.broken[("leaf-01", "version")] = lambda _d: "version s3cret\npassword s3cret"
    live.broken[("leaf-02", "version")] = lambda _d: Answer(error="login with s3cret failed")
    _, folder, _ = accept(Acceptance(PLAN, tmp_path, name="x"))
    assert not [path for path in folder.rglob("*") if path.is_file() and "s3cret" in path.read_text()]


def test_resume_of_a_finished_run_asks_nobody(tmp_path, live):
    accept(Acceptance(PLAN, tmp_path, name="x"))
    asked = len(live.asked)
    run, _, _ = accept(Acceptance(PLAN, tmp_path, resume=True))
    assert run.verdict == "accepted"
    assert len(live.asked) == asked


def test_the_command_line(tmp_path, live):
    ran = CliRunner().invoke(
        cli, ["accept", "lab", "--out", str(tmp_path), "--name", "a", "--format", "json"], standalone_mode=False
    )
    assert ran.return_value == 0
    said = json.loads(ran.stdout)
    assert said["verdict"] == "accepted"
    assert said["without"][0].startswith("disruptive checks skipped: 14 (nat-behaviour 5, ")
    live.broken[("leaf-01", "links")] = lambda d: d[0].update(master="Vrf-globex") or d
    ran = CliRunner().invoke(cli, ["accept", "lab", "--out", str(tmp_path), "--name", "b"], standalone_mode=False)
    assert ran.return_value == 1
    verdict, wrong, *_ = ran.stdout.splitlines()
    assert verdict.startswith("not accepted, without: not run: ")
    assert wrong.startswith(
        "fail: port-vrf leaf-01: leaf-01 E1/1/1: VRF is Vrf-globex, the plan says Vrf-acme [leaf-01 E1/1/1"
    )
    ran = CliRunner().invoke(cli, ["report", "diff", str(tmp_path / "a"), str(tmp_path / "b")], standalone_mode=False)
    assert ran.return_value == 1
    assert "VRF is Vrf-globex, the plan says Vrf-acme" in ran.stdout
    ran = CliRunner().invoke(cli, ["accept", "lab", "--list", "--tags", "nothing"], standalone_mode=False)
    assert ran.return_value == 4


class Running:
    """A lab that answers `uname`, and remembers whether it was stopped or only left."""

    name, ended = "accept-x", ""

    def run(self, node, argv, timeout_s=60):
        return SimpleNamespace(rc=0, out="Linux 6.12\ndaemons: zebra bgpd bfdd", err="")

    def stop(self):
        self.ended = "stopped"

    def close(self):
        self.ended = "left"


@pytest.mark.parametrize("fate", ["well", "interrupted"])
def test_a_lab_started_for_a_run_ends_with_it_whatever_happens(tmp_path, monkeypatch, fate):
    running, said = Running(), []
    started = SimpleNamespace(running=running, complaints=("gw-01: odd",), missing=())
    monkeypatch.setattr("labs.site.start", lambda site, name, engine, say: said.append((site, engine)) or started)
    if fate == "interrupted":
        monkeypatch.setattr(running, "run", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    wanted = Acceptance(PLAN, tmp_path, site="lab", engine="uml", selection=Selection(checks=("device-answers",)))
    if fate == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            accept(wanted)
    else:
        run, _, _ = accept(wanted)
        assert (run.verdict, run.info.engine) == ("accepted", "uml")
    assert said == [("lab", "uml")]
    assert running.ended == "stopped"


def test_one_place_to_ask_is_enough():
    ran = CliRunner().invoke(cli, ["accept", "lab", "--engine", "uml", "--lab", "x"])
    assert ran.exit_code == 2
    assert "--engine or --lab" in ran.output


def test_what_acted_by_another_plan_says_nothing_of_this_one(tmp_path, live):
    _, folder, _ = accept(Acceptance(PLAN, tmp_path, name="live"))
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace(PLAN.digest, "0" * 64, 1))
    run, _, _ = accept(Acceptance(PLAN, tmp_path, name="offline", stored=folder))
    acted = [r.result for r in run.records if r.result.check == "tenant-matrix"]
    assert {result.state.value for result in acted} == {"skipped"}
    assert all("was by another plan" in result.text for result in acted)
