"""Files of what left the plan: named with the way to be rid of them; only what kvfabric wrote is removed. And a copied
inventory does not write over the files of the one that it was copied from."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fabric.render.stale import prune, stale_line
from fabric.resources import data_folder
from tests.conftest import run_cli

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


def _site(folder: Path, servers: int = 3) -> Path:
    """The lab's inventory with so many compute servers."""
    source = data_folder("inventories") / "lab"
    folder.mkdir(exist_ok=True)
    for name in ("site.yaml", "tenants.yaml"):
        (folder / name).write_text((source / name).read_text())
    text = (folder / "site.yaml").read_text()
    assert "count: 3" in text
    (folder / "site.yaml").write_text(text.replace("count: 3", f"count: {servers}", 1))
    if servers > 3:
        tenants = (folder / "tenants.yaml").read_text()
        (folder / "tenants.yaml").write_text(tenants.replace("compute-003]", "compute-003, compute-004]", 1))
    return folder


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def shrunk(tmp_path: Path) -> Path:
    """An inventory whose last server has left since `out` was built."""
    site = _site(tmp_path / "site", 4)
    assert run_cli("build", str(site), "--out", str(tmp_path / "out")).returncode == 0
    _site(site, 3)
    return site


def test_build_names_the_folder_that_left_and_prune_removes_it(shrunk: Path, tmp_path: Path) -> None:
    configs = tmp_path / "out/lab/configs"
    before = _files(configs / "compute-004")
    assert before
    built = run_cli("build", str(shrunk), "--out", str(tmp_path / "out"))
    assert f"stale in {configs}, not in the plan any more: compute-004/; `--prune` removes" in built.stderr
    assert _files(configs / "compute-004") == before
    told = run_cli("build", str(shrunk), "--out", str(tmp_path / "out"), "--format", "json")
    assert set(json.loads(told.stdout)["stale"]) == {f"compute-004/{name}" for name in before}
    pruned = run_cli("build", str(shrunk), "--out", str(tmp_path / "out"), "--prune")
    assert f"removed from {configs}: compute-004/" in pruned.stderr
    assert not (configs / "compute-004").exists()


def test_diff_says_how_to_be_rid_of_it_and_is_quiet_afterwards(shrunk: Path, tmp_path: Path) -> None:
    configs = tmp_path / "out/lab/configs"
    argv = ("render", str(shrunk), "--out", str(configs))
    seen = run_cli(*argv, "--diff")
    assert seen.returncode == 1
    assert "not in the plan any more: compute-004/; `--prune` removes" in seen.stderr
    assert "compute-004/" in run_cli(*argv).stderr
    assert run_cli(*argv, "--diff").returncode == 1
    assert run_cli(*argv, "--prune").returncode == 0
    again = run_cli(*argv, "--diff")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_prune_leaves_what_others_put_there(shrunk: Path, tmp_path: Path) -> None:
    configs = tmp_path / "out/lab/configs"
    (configs / "compute-004/notes.txt").write_text("call Ann first")
    (configs / "spare").mkdir()
    (configs / "spare/frr.conf").write_text("mine")
    done = run_cli("render", str(shrunk), "--out", str(configs), "--prune")
    assert _files(configs / "compute-004") == {"notes.txt"}
    assert _files(configs / "spare") == {"frr.conf"}
    assert "with files that kvfabric did not write: compute-004/" in done.stderr


def test_prune_does_not_follow_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "frr.conf").write_text("of somebody else")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/leaf-09").symlink_to(elsewhere)
    assert prune(tmp_path / "out", ["leaf-09/frr.conf"]) == ["leaf-09"]
    assert (elsewhere / "frr.conf").exists()


@pytest.mark.parametrize("other", ["--diff", "--limit"])
def test_prune_is_of_the_whole_site_and_writes(other: str, tmp_path: Path) -> None:
    words = (other, "leaf-01") if other == "--limit" else (other,)
    done = run_cli("render", "lab", "--out", str(tmp_path), "--prune", *words)
    assert done.returncode == 2
    assert "leave" in done.stderr


def test_many_names_are_counted(tmp_path: Path) -> None:
    assert "host-7/ and 12 more;" in stale_line(tmp_path, [f"host-{n}/" for n in range(20)])


def test_a_copied_inventory_does_not_write_over_the_first(tmp_path: Path) -> None:
    first = _site(tmp_path / "first")
    configs = tmp_path / "out/lab/configs"
    assert run_cli("build", str(first), "--out", str(tmp_path / "out")).returncode == 0
    shutil.copytree(first, tmp_path / "second")
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
    for verb in (("build", "--out", str(tmp_path / "out")), ("render", "--out", str(configs))):
        done = run_cli(verb[0], str(tmp_path / "second"), *verb[1:])
        assert done.returncode == 2
        assert f"{tmp_path}/second/site.yaml:" in done.stderr
        assert f"holds the files of {first}, an inventory with the same name [render.other-inventory]" in done.stderr
        assert "fix: give this one a name of its own" in done.stderr
    assert before == {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in before}
    # to look is no harm
    assert run_cli("render", str(tmp_path / "second"), "--out", str(configs), "--diff").returncode == 0


def test_the_same_inventory_by_another_way_and_a_renamed_one_go_on(tmp_path: Path) -> None:
    site = _site(tmp_path / "site")
    out = str(tmp_path / "out")
    assert run_cli("render", str(site), "--out", out).returncode == 0
    (tmp_path / "link").symlink_to(site)
    assert run_cli("render", str(tmp_path / "link"), "--out", out).returncode == 0
    assert run_cli("render", str(site / "site.yaml"), "--out", out).returncode == 0
    site.rename(tmp_path / "renamed")
    assert run_cli("render", str(tmp_path / "renamed"), "--out", out).returncode == 0


def test_a_shipped_site_and_a_copy_of_it(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert run_cli("render", "lab", "--out", out).returncode == 0
    assert run_cli("render", "lab", "--out", out).returncode == 0
    done = run_cli("render", str(_site(tmp_path / "copy")), "--out", out)
    assert (done.returncode, "render.other-inventory" in done.stderr) == (2, True)
