"""Hedgehog objects that lack a name, a role or a body are refused with their line, before anything is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fabric.build import load_plan
from fabric.cli.main import main
from fabric.interop.formats import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def wiring() -> str:
    return write(load_plan("lab"), "wiring")["wiring-fabric.yaml"]


def _import(capsys: pytest.CaptureFixture[str], path: Path, out: Path) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["import", str(path), "--out", str(out)])
    return int(caught.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("Switch", lambda d: d["metadata"].pop("name"), "a Switch without a name"),
        ("Switch", lambda d: d["metadata"].update(name=""), "a Switch without a name"),
        ("Switch", lambda d: d["metadata"].update(name=7), "a Switch without a name"),
        ("Switch", lambda d: d.update(metadata=[]), "a Switch without a name"),
        ("Switch", lambda d: d.pop("spec"), "a Switch without a spec"),
        ("Switch", lambda d: d["spec"].update(role="boss"), "'boss' is no role"),
        ("Switch", lambda d: d["spec"].pop("role"), "there is no role"),
        ("Switch", lambda d: d["metadata"].update(name="other"), "names leaf-01, of which there is no object"),
        ("Server", lambda d: d["metadata"].pop("name"), "a Server without a name"),
        ("Connection", lambda d: d["metadata"].pop("name"), "a Connection without a name"),
        ("Connection", lambda d: d.pop("spec"), "a Connection without a spec"),
        ("VPC", lambda d: d["metadata"].pop("name"), "a VPC without a name"),
    ],
)
def test_an_object_that_lacks_something_is_named_with_its_line(
    wiring: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    change: Callable[[dict[str, Any]], object],
    said: str,
) -> None:
    documents = list(yaml.safe_load_all(wiring))
    change(next(d for d in documents if d["kind"] == kind))
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    code, err = _import(capsys, path, tmp_path / "site")
    assert code == 2, err
    first = next(line for line in err.splitlines() if said in line)
    assert first.startswith(f"{path}:")
    assert int(first.split(":")[1]) > 0
    assert "fix:" in err
    assert not (tmp_path / "site").exists()


def test_a_switch_that_is_there_twice_is_refused(
    wiring: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = list(yaml.safe_load_all(wiring))
    path = tmp_path / "w.yaml"
    path.write_text(yaml.safe_dump_all([*documents, next(d for d in documents if d["kind"] == "Switch")]))
    code, err = _import(capsys, path, tmp_path / "site")
    assert code == 2
    assert "is there already in" in err


def test_two_fabrics_that_share_servers_are_refused_once_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, text in write(load_plan("xoc-256"), "wiring").items():
        files.append(tmp_path / name)
        files[-1].write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["import", *map(str, files), "--out", str(tmp_path / "site")])
    err = capsys.readouterr().err
    assert caught.value.code == 2
    assert err.count("[import.twice]") == 1
    assert "compute-[001-032]: in " in err
    assert "import one of these files at a time" in err
