from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from fabric.problem import InputError
from fabric.render.writer import MARKER, diff_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.unit

SITE = [("leaf-01", {"frr.conf": "a\nb\n", "network.sh": "#!/bin/sh\n"}), ("gw-01", {"gatewayctl": "#!x\n"})]


def test_files_land_in_a_folder_a_device(tmp_path: Path) -> None:
    done = write_tree(tmp_path / "out", SITE)
    assert done.written == ("leaf-01/frr.conf", "leaf-01/network.sh", "gw-01/gatewayctl")
    assert (tmp_path / "out/leaf-01/frr.conf").read_text() == "a\nb\n"


@pytest.mark.parametrize(
    ("path", "mode"), [("leaf-01/network.sh", 0o755), ("gw-01/gatewayctl", 0o755), ("leaf-01/frr.conf", 0o644)]
)
def test_programs_are_executable(tmp_path: Path, path: str, mode: int) -> None:
    write_tree(tmp_path, SITE)
    assert stat.S_IMODE((tmp_path / path).stat().st_mode) == mode


def test_lost_executable_bit_comes_back(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    (tmp_path / "leaf-01/network.sh").chmod(0o644)
    assert write_tree(tmp_path, SITE).written == ("leaf-01/network.sh",)


def test_unchanged_files_are_not_touched(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    before = (tmp_path / "leaf-01/frr.conf").stat()
    done = write_tree(tmp_path, SITE)
    after = (tmp_path / "leaf-01/frr.conf").stat()
    assert (done.written, done.unchanged) == ((), 3)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"frr.conf", "network.sh", "gatewayctl", MARKER}


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path, SITE)

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_tree(tmp_path, [("leaf-01", {"frr.conf": "new\n"})])
    assert (tmp_path / "leaf-01/frr.conf").read_text() == "a\nb\n"
    assert not list(tmp_path.rglob("*tmp"))


def test_files_of_removed_devices_and_files_are_stale(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    done = write_tree(tmp_path, [("leaf-01", {"frr.conf": "a\nb\n"})])
    assert set(done.stale) == {"leaf-01/network.sh", "gw-01/gatewayctl"}


def test_stale_is_said_until_deleted(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    write_tree(tmp_path, SITE[:1])
    assert write_tree(tmp_path, SITE[:1]).stale == ("gw-01/gatewayctl",)
    (tmp_path / "gw-01/gatewayctl").unlink()
    assert write_tree(tmp_path, SITE[:1]).stale == ()


def test_part_of_a_site_makes_nothing_stale_and_is_remembered(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    assert write_tree(tmp_path, SITE[:1], whole=False).stale == ()
    assert write_tree(tmp_path, SITE[:1]).stale == ("gw-01/gatewayctl",)


def test_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError) as caught:
        write_tree(tmp_path, SITE)
    assert caught.value.problems[0].rule == "render.foreign-folder"
    assert not (tmp_path / "leaf-01").exists()


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError) as caught:
        write_tree(tmp_path / "out", SITE)
    assert caught.value.problems[0].rule == "render.not-a-folder"


@pytest.mark.parametrize("text", ["", "[]", '{"files": 3}', '{"other": {}}', "\x00"])
def test_broken_manifest_is_a_problem_not_a_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(InputError) as caught:
        write_tree(tmp_path, SITE)
    assert caught.value.problems[0].rule == "render.bad-manifest"


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "/etc"])
def test_names_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        write_tree(tmp_path / "one", [(name, {"frr.conf": "x"})])
    with pytest.raises(InputError):
        write_tree(tmp_path / "two", [("leaf-01", {name: "x"})])


def test_manifest_lists_what_was_written(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    assert json.loads((tmp_path / MARKER).read_text())["files"] == {
        "gw-01": ["gatewayctl"],
        "leaf-01": ["frr.conf", "network.sh"],
    }


def test_diff_of_the_same_is_empty(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    assert diff_tree(tmp_path, SITE) == []


def test_diff_says_what_would_change_and_writes_nothing(tmp_path: Path) -> None:
    write_tree(tmp_path, SITE)
    found = diff_tree(tmp_path, [("leaf-01", {"frr.conf": "a\nc\n", "daemons": "new\n"})])
    states = {difference.path: difference.state for difference in found}
    assert states == {
        "leaf-01/frr.conf": "changed",
        "leaf-01/daemons": "added",
        "leaf-01/network.sh": "removed",
        "gw-01/gatewayctl": "removed",
    }
    changed = next(d for d in found if d.state == "changed")
    assert changed.lines[:2] == ("--- a/leaf-01/frr.conf", "+++ b/leaf-01/frr.conf")
    assert "-b" in changed.lines
    assert "+c" in changed.lines
    assert (tmp_path / "leaf-01/frr.conf").read_text() == "a\nb\n"


def test_diff_against_nothing_is_all_added(tmp_path: Path) -> None:
    found = diff_tree(tmp_path / "none", SITE)
    assert {difference.state for difference in found} == {"added"}
    assert not (tmp_path / "none").exists()


def test_a_run_that_is_cut_short_does_not_lock_the_folder(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[str, dict[str, str]]]:
        yield SITE[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_tree(tmp_path / "out", broken())
    assert write_tree(tmp_path / "out", SITE).written == ("gw-01/gatewayctl",)
