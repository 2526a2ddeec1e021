"""Hints name the nearest of what there is and all of it, never one as if it were all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.hints import names_hint
from fabric.inventory.scaffold import Scaffold, scaffold, write_scaffold
from fabric.problem import InputError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("group: internet", "group: internets", "did you mean internet? groups here: internet, partners"),
        ("group: internet", "group: world", "groups here: internet, partners"),
        ("compute-001:8443", "compute-011:8443", "did you mean compute-001? servers with a service address: compute-[001-004]"),
        ("peers: [storage]", "peers: [storag]", "did you mean storage? tenants here: globex, initech, storage"),
        ("peers: [storage]", "peers: [nobody]", "tenants here: globex, initech, storage"),
        ("peers: [storage]", "peers: [acme]", "remove it"),
    ],
)  # fmt: skip
def test_the_fix_names_the_nearest_and_all(tmp_path: Path, old: str, new: str, fix: str) -> None:
    files = scaffold(Scaffold("fresh", "xoc-64"))
    assert old in files["tenants.yaml"]
    files["tenants.yaml"] = files["tenants.yaml"].replace(old, new, 1)
    write_scaffold(files, tmp_path / "site")
    with pytest.raises(InputError) as caught:
        load_plan(tmp_path / "site")
    assert fix in [problem.fix for problem in caught.value.problems]


def test_of_many_the_first_are_shown_and_of_none_that() -> None:
    assert names_hint("x", [], "groups here") == "groups here: none"
    hint = names_hint("q", [f"{letter}{letter}" for letter in "abcdefghijklmnop"], "tenants here")
    assert hint == "tenants here: aa, bb, cc, dd, ee, ff, gg, hh, ii, jj, kk, ll and 4 more"
