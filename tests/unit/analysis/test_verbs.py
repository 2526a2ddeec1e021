"""The verbs: exit codes, JSON that parses, and words on bad input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.cli.main import main
from fabric.render.registry import render_site
from fabric.render.writer import write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def test_check_passes_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "lab") == 0
    out = capsys.readouterr().out
    assert "0 errors" in out
    assert "rules over" in out


def test_check_of_a_spoilt_folder_fails_and_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    write_tree(folder, render_site(load_plan("lab")))
    conf = folder / "leaf-01" / "frr.conf"
    conf.write_text(conf.read_text().replace("maximum-paths 64", "maximum-paths 1"))
    assert run("check", "lab", "--from", str(folder), "--format", "json") == 1
    (problem, *_) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["rule"] == "bgp.ecmp-width"
    assert problem["file"] == str(conf)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", "lab", "--rule", "nonsense"), 2),
        (("check", "no-such-site"), 2),
        (("check",), 2),
        (("path", "lab", "--from", "nobody", "--to", "compute-001"), 2),
        (("path", "lab", "--from", "compute-001", "--to", "compute-003", "--class", "gold"), 2),
        (("path", "lab", "--from", "compute-001", "--to", "compute-003"), 0),
        (("path", "lab", "--from", "compute-001", "--to", "compute-003", "--source-port", "49153"), 0),
        (("path", "lab", "--from", "compute-001", "--to", "compute-003", "--source-port", "65536"), 2),
        (("path", "lab", "--from", "compute-001", "--to", "compute-002"), 2),
        (("path", "pods-100k", "--from", "compute-00001", "--to", "compute-00002"), 3),
        (("capacity", "lab", "--pattern", "rail", "--qps", "1"), 0),
        (("capacity", "lab", "--pattern", "rail", "--qps", "1", "--requests", "1000000"), 1),
        (("capacity", "lab", "--requests", "nan"), 2),
        (("capacity", "lab", "--life", "inf"), 2),
        (("failures", "lab", "--doubles"), 0),
        (("kv", "restore", "xoc-64", "--nodes", "2", "--size", "1GB"), 0),
        (("kv", "restore", "xoc-64", "--nodes", "2", "--size", "1TB"), 1),
        (("kv", "restore", "xoc-64", "--nodes", "2", "--size", "lots"), 2),
        (("kv", "restore", "xoc-64", "--nodes", "2", "--size", "1GB", "--fabric", "none"), 2),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "lab", "--list"),
        ("path", "lab", "--from", "compute-001", "--to", "compute-003"),
        ("capacity", "lab", "--pattern", "ingress"),
        ("failures", "lab", "--doubles"),
        ("kv", "restore", "xoc-64", "--nodes", "2", "--size", "1GB"),
    ],
)
def test_json_parses(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    run(*arguments, "--format", "json")
    assert json.loads(capsys.readouterr().out)


def test_heat_map_is_written(tmp_path: Path) -> None:
    assert run("failures", "lab", "--plot", str(tmp_path / "map.html")) == 0
    assert "<svg" in (tmp_path / "map.html").read_text()


def test_capacity_says_the_mode_of_an_exposure_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("capacity", "xoc-64", "--pattern", "ingress", "--qps", "1") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("acme ")]
    assert [row[1:3] for row in rows][:2] == [["masquerade", "8"], ["portForward", "forward"]]
