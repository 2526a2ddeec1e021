"""The medium of a cable: the shortest reach that is enough, one a breakout cable, and an error where none is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.problem import InputError
from fabric.resources import data_folder
from fabric.topology.media import medium

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit
DEFAULT = {"dac": 2, "aec": 5, "smf": 2000}


@pytest.mark.parametrize(
    ("speed", "length", "said"),
    [(400, 1, "dac"), (400, 2, "dac"), (400, 3, "aec"), (800, 5, "aec"), (800, 6, "smf"), (200, 2000, "smf"),
     (200, 2001, ""), (1, 30, "cat6")],
)  # fmt: skip
def test_the_shortest_reach_that_is_enough(speed: int, length: int, said: str) -> None:
    assert medium(DEFAULT, speed, length) == said


def test_the_order_they_are_written_in_does_not_matter() -> None:
    assert medium({"smf": 500, "mmf": 50, "dac": 2, "aoc": 30}, 400, 10) == "aoc"


def plan_with(tmp_path: Path, cables: str) -> Plan:
    for file in (data_folder("inventories") / "xoc-64").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    site = tmp_path / "site.yaml"
    site.write_text(site.read_text().replace("cables: {server-leaf: 5m, leaf-spine: 30m}", f"cables: {{{cables}}}"))
    return load_plan(tmp_path)


def test_media_are_by_length_and_legs_of_a_cable_are_alike(tmp_path: Path) -> None:
    plan = plan_with(tmp_path, "server-leaf: 5m, leaf-spine: 30m")
    assert {k.medium for k in plan.links.values() if k.length_m == 30} == {"smf"}
    cages: dict[tuple[str, str], set[str]] = {}
    lengths: dict[tuple[str, str], set[int]] = {}
    for link in plan.links.values():
        if link.kind in {"server", "gateway"}:
            cage = link.b.device, link.b.port.rpartition("/")[0]
            cages.setdefault(cage, set()).add(link.medium)
            lengths.setdefault(cage, set()).add(link.length_m)
    mixed = [cage for cage, found in lengths.items() if found == {5, 10}]
    assert mixed, "a gateway shares a cage with a server here"
    assert all(cages[cage] == {"smf"} for cage in mixed), "the longest leg decides"
    assert {"aec"} in cages.values()
    assert all(len(found) == 1 for found in cages.values())


def test_the_inventory_can_say_other_media(tmp_path: Path) -> None:
    plan = plan_with(tmp_path, "server-leaf: 3m, leaf-spine: 30m, media: {dac: 3m, aoc: 30m, smf: 500m}")
    assert {k.medium for k in plan.links.values()} == {"dac", "aoc", "smf"}


def test_a_cable_that_nothing_reaches_is_an_error_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        plan_with(tmp_path, "leaf-spine: 60m, media: {dac: 3m, mmf: 50m}")
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field) == ("cables.length", "cables.leaf-spine")
    assert problem.line > 1
    assert "mmf to 50 m" in problem.text
