"""The verbs: exit codes, where data and words go, and no traceback for anything a person may type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fabric.cli.main import _run
from fabric.interop.formats import write

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def test_cables_prints_data_on_stdout_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["cables", "lab", "--format", "netbox"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("side_a_device,")
    assert err == ""


def test_cables_writes_files_and_prints_all_yaml_streams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["cables", "xoc-64", "--format", "wiring", "--out", str(tmp_path / "new")]) == 0
    files = sorted(p.name for p in (tmp_path / "new").iterdir())
    assert files == ["wiring-backend.yaml", "wiring-frontend.yaml"]
    capsys.readouterr()
    assert _run(["cables", "xoc-64", "--format", "wiring"]) == 0
    assert capsys.readouterr().out.count("kind: VLANNamespace") == 2


def test_compare_exits_zero_for_the_same_and_one_for_another(
    lab: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = write(lab, "connectivity-map")["connectivity-map.csv"]
    path = tmp_path / "map.csv"
    path.write_text(text)
    assert _run(["compare", "lab", str(path)]) == 0
    assert capsys.readouterr().out.startswith("same: lab")
    path.write_text("\n".join(text.splitlines()[:-1]) + "\n")
    assert _run(["compare", "lab", str(path), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["same"] is False


def test_show_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["show", "lab", "acme", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["L3VNI"] == 100


def test_diagram_writes_both_kinds(tmp_path: Path) -> None:
    for name in ("a.svg", "b.HTML"):
        assert _run(["diagram", "lab", "--out", str(tmp_path / name)]) == 0
        assert "<svg" in (tmp_path / name).read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["cables", "nowhere"],
        ["cables", "lab", "--format", "xlsx"],
        ["cables", "lab", "--fabric", "x"],
        ["compare", "lab", "absent.csv"],
        ["compare", "lab", "."],
        ["show", "lab", "leaf-99"],
        ["show", "lab", "leaf-01", "nobody"],
        ["diagram", "lab", "--out", "x.png"],
        ["import", "absent.yaml", "--out", "new-site"],
        ["import", "--out", "new-site"],
    ],
)
def test_input_errors_exit_two_with_one_line_and_no_traceback(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _run(words) == 2
    err = capsys.readouterr().err
    assert err
    assert "Traceback" not in err


def test_output_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert _run(["cables", "lab", "--out", str(tmp_path / "file" / "below")]) == 2


def test_import_says_what_it_left_on_stderr(lab: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(write(lab, "wiring")["wiring-fabric.yaml"])
    # written, and a person must say which tenant serves
    assert _run(["import", str(path), "--out", str(tmp_path / "site")]) == 1
    out, err = capsys.readouterr()
    assert "site.yaml" in out
    assert "not taken over: VLAN and IPv4 namespaces" in err
    assert _run(["import", str(path), "--out", str(tmp_path / "site")]) == 2
