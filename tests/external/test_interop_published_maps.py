"""The plan's cabling against maps that others published: OCP's generated maps and Hedgehog wiring."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from fabric.build import load_plan
from fabric.interop.comparing import compare
from fabric.interop.formats import write
from fabric.interop.importing import import_files
from fabric.interop.output import write_files
from fabric.interop.readers import read_cable_map

pytestmark = pytest.mark.external

_ROOT = Path(__file__).resolve().parents[2]
_DATA = Path(os.environ.get("KVFABRIC_EXTERNAL_DATA", _ROOT.parent / "shared" / "data")) / "ocp"
_ENDS = ("a_device", "a_interface", "a_role", "b_device", "b_interface", "b_role", "status", "type", "zone")


def published(name: str) -> Path:
    path = _DATA / name
    if not path.is_file():
        pytest.skip(f"published map {name} is not here (set KVFABRIC_EXTERNAL_DATA)")
    return path


@pytest.mark.parametrize("size", ["256", "1024"])
def test_rail_plan_equals_the_published_map_row_by_row(size: str) -> None:
    path = published(f"xoc-{size}-clos-ro/connectivity-map.csv")
    theirs = list(csv.DictReader(path.open(newline="", encoding="utf-8")))
    text = write(load_plan(f"xoc-{size}-rail"), "connectivity-map")["connectivity-map.csv"]
    ours = list(csv.DictReader(text.splitlines()))
    assert len(ours) == len(theirs)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True), 2):
        assert {c: mine[c] for c in _ENDS} == {c: other[c] for c in _ENDS}, f"row {number}"


@pytest.mark.parametrize("name", ["connectivity-map.csv", "wiring-backend.yaml", "wiring-frontend.yaml"])
def test_compare_finds_the_published_rail_site_the_same(name: str) -> None:
    given = read_cable_map(published(f"xoc-256-clos-ro/{name}"))
    outcome = compare(load_plan("xoc-256-rail"), given)
    assert outcome.same, outcome.text()
    assert outcome.equal == len(given.cables)


@pytest.mark.parametrize("name", ["connectivity-map.csv", "wiring-backend.yaml"])
def test_compare_finds_that_the_single_homed_map_is_not_single_homed(name: str) -> None:
    given = read_cable_map(published(f"xoc-256-clos-sh/{name}"))
    outcome = compare(load_plan("xoc-256"), given, ("backend",))
    assert not outcome.same
    spread = outcome.findings[0]
    assert spread.kind == "pattern"
    assert "8 NIC ports over 4 leaves, 32 servers on a leaf" in spread.text
    assert "the plan is single-homed: 1 leaf a server, 8 servers on a leaf" in spread.text
    assert len(spread.rows) == 32


def test_compare_sees_that_the_single_homed_map_is_the_rail_map_under_another_name() -> None:
    given = read_cable_map(published("xoc-256-clos-sh/connectivity-map.csv"))
    outcome = compare(load_plan("xoc-256-rail"), given)
    assert outcome.same, outcome.text()
    assert [f.text for f in outcome.findings] == ["be-leaf-* is called be-rail-leaf-* in the plan (4 devices)"]


@pytest.mark.parametrize("name", ["xoc-256-clos-ro", "xoc-256-clos-sh", "xoc-1024-clos-ro"])
def test_a_published_planning_file_imports_to_its_own_published_map(name: str, tmp_path: Path) -> None:
    draft = import_files([published(f"{name}/topology-map.yaml")], name)
    write_files(draft.files(), tmp_path / name)
    outcome = compare(load_plan(tmp_path / name), read_cable_map(published(f"{name}/connectivity-map.csv")))
    assert outcome.same, outcome.text()
    assert outcome.equal == outcome.given


def test_the_converged_site_imports_to_its_converged_cables_and_says_what_it_left(tmp_path: Path) -> None:
    draft = import_files([published("opg-64-collapsed-conv/topology-map.yaml")], "opg-64")
    write_files(draft.files(), tmp_path / "opg-64")
    given = read_cable_map(published("opg-64-collapsed-conv/connectivity-map.csv"))
    outcome = compare(load_plan(tmp_path / "opg-64"), given, ("converged",))
    assert outcome.equal == outcome.planned == 162
    # the out-of-band uplinks into the converged spines are what cannot be said
    assert [f.cables for f in outcome.findings if f.differs] == [4]
    assert any("links between two fabrics" in note for note in draft.notes)


def test_the_virtual_site_imports_with_its_tenants(tmp_path: Path) -> None:
    files = ["wiring-diagram.yaml", "tenant-a-vpc.yaml", "tenant-b-vpc.yaml"]
    draft = import_files([published(f"xoc-64-virtual/{file}") for file in files], "virtual")
    write_files(draft.files(), tmp_path / "virtual")
    plan = load_plan(tmp_path / "virtual")
    assert [p.name for p in plan.tenants.values()] == ["tenant-a", "tenant-b"]
    for form in ("connectivity-map.csv", "wiring-diagram.yaml"):
        outcome = compare(plan, read_cable_map(published(f"xoc-64-virtual/{form}")))
        assert outcome.same, outcome.text()
        assert outcome.equal == 24
