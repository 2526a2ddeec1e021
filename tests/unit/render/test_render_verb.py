from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from fabric.cli.verbs.render import command
from fabric.problem import InputError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

LIMIT = ["--limit", "leaf-01,spine-01"]


def test_render_then_diff_is_quiet(tmp_path: Path) -> None:
    run = CliRunner()
    assert run.invoke(command, ["lab", "--out", str(tmp_path), *LIMIT]).exit_code == 0
    assert (tmp_path / "leaf-01/config_db.json").is_file()
    again = run.invoke(command, ["lab", "--out", str(tmp_path), *LIMIT, "--diff"])
    assert (again.exit_code, again.stdout) == (0, "")


def test_diff_shows_and_ends_with_one(tmp_path: Path) -> None:
    run = CliRunner()
    run.invoke(command, ["lab", "--out", str(tmp_path), *LIMIT])
    (tmp_path / "leaf-01/frr.conf").write_text("hostname other\n")
    found = run.invoke(command, ["lab", "--out", str(tmp_path), *LIMIT, "--diff"])
    assert found.exit_code == 1
    assert "-hostname other" in found.stdout
    assert (tmp_path / "leaf-01/frr.conf").read_text() == "hostname other\n"


def test_diff_as_json(tmp_path: Path) -> None:
    found = CliRunner().invoke(
        command, ["lab", "--out", str(tmp_path), "--limit", "spine-01", "--diff", "--format", "json"]
    )
    assert found.exit_code == 1
    assert {row["path"] for row in json.loads(found.stdout)} == {"spine-01/config_db.json", "spine-01/frr.conf"}


def test_target_makes_linux_routers(tmp_path: Path) -> None:
    CliRunner().invoke(command, ["lab", "--out", str(tmp_path), *LIMIT, "--target", "frr"])
    assert (tmp_path / "leaf-01/network.sh").is_file()
    assert not (tmp_path / "leaf-01/config_db.json").exists()


def test_stale_files_are_said(tmp_path: Path) -> None:
    run = CliRunner()
    run.invoke(command, ["lab", "--out", str(tmp_path), "--target", "frr"])
    done = run.invoke(command, ["lab", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.exception
    assert f"stale in {tmp_path}, not in the plan any more: leaf-01/daemons, " in done.stderr


def test_unknown_device_is_an_input_error(tmp_path: Path) -> None:
    found = CliRunner().invoke(command, ["lab", "--out", str(tmp_path), "--limit", "nobody"])
    assert isinstance(found.exception, InputError)
