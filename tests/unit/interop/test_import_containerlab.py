"""containerlab topologies as inventories: our own come back as the same skeleton, foreign ones as far as they say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from fabric.build import load_plan
from fabric.cli.main import main
from fabric.interop.importing import import_files
from fabric.interop.importing.draft import check
from fabric.interop.output import write_files
from labs import slice as slicing
from labs.containerlab.kinds import Settings
from labs.containerlab.topology import topology

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def skeleton(plan: Plan) -> tuple[Counter[str], Counter[tuple[str, ...]]]:
    """Devices by kind and fabric, and links by fabric and what they join."""
    kinds = plan.kind_of
    switches = Counter(f"{s.kind} of {s.fabric}, {s.model}" for s in plan.switches.values())
    others = Counter(f"{kind} {name.rstrip('0123456789')}" for name, kind in kinds.items() if name not in plan.switches)
    links = Counter((k.fabric, kinds[k.a.device], kinds[k.b.device]) for k in plan.links.values())
    return switches + others, links


@pytest.mark.parametrize("site", ["lab", "minimal", "xoc-64", "xoc-256", "xoc-256-rail"])
def test_an_exported_site_comes_back_as_the_same_skeleton(site: str, tmp_path: Path) -> None:
    plan = load_plan(site)
    path = tmp_path / f"{site}.clab.yml"
    path.write_text(yaml.safe_dump(topology(plan, slicing.make(plan, site), Settings()), sort_keys=False))
    write_files(import_files([path], "again").files(), tmp_path / "again")
    assert check(tmp_path / "again") == []
    assert skeleton(load_plan(tmp_path / "again")) == skeleton(plan)


@pytest.mark.parametrize(
    ("site", "counts"),
    [
        ("xoc-256", {"leaves": 2, "spines": 2, "servers": 4}),
        ("xoc-256-rail", {"leaves": 2, "spines": 1, "servers": 9}),
        ("lab", {"leaves": 1, "spines": 1, "gateways": 0, "servers": 2}),
    ],
)
def test_a_slice_comes_back_as_a_site_that_plans(site: str, counts: dict[str, int], tmp_path: Path) -> None:
    plan = load_plan(site)
    lab = slicing.make(plan, "x", counts)
    path = tmp_path / "x.clab.yml"
    path.write_text(yaml.safe_dump(topology(plan, lab, Settings()), sort_keys=False))
    draft = import_files([path], "again")
    write_files(draft.files(), tmp_path / "again")
    assert check(tmp_path / "again") == []
    again = load_plan(tmp_path / "again")
    assert len(again.servers) == counts["servers"]


def test_a_slice_without_spines_is_said_to_lack_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = load_plan("xoc-256")
    path = tmp_path / "x.clab.yml"
    lab = slicing.make(plan, "x", {"leaves": 2, "spines": 0, "servers": 4})
    path.write_text(yaml.safe_dump(topology(plan, lab, Settings()), sort_keys=False))
    with pytest.raises(SystemExit) as caught:
        main(["import", str(path), "--out", str(tmp_path / "again")])
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert "backend: 2 leaves and no spine to join them" in said
    assert "fix: add `spine:` to the fabric" in said


def test_servers_that_a_slice_left_with_fewer_ports_are_a_class_of_their_own(tmp_path: Path) -> None:
    nodes = {name: {} for name in ("leaf1", "leaf2", "spine1", "srv1", "srv2", "srv3")}
    links = [pair("leaf1", "spine1"), pair("leaf2", "spine1"), *[pair("srv1", "leaf1"), pair("srv2", "leaf2")] * 2]
    draft = drafted(tmp_path, nodes, [*links, pair("srv3", "leaf1")])
    assert {name: spec["count"] for name, spec in draft.site["servers"].items()} == {"srv": 2, "srv-group2": 1}
    assert "srv3 have other ports than srv1: a class of their own, srv-group2" in draft.notes


def test_fabrics_whose_leaves_have_one_stem_get_names_apart(tmp_path: Path) -> None:
    nodes = {name: {} for name in ("leaf1", "leaf2", "srv1", "srv2")}
    draft = drafted(tmp_path, nodes, [pair("srv1", "leaf1"), pair("srv2", "leaf2")])
    names = [spec["leaf"]["name"] for spec in draft.site["fabrics"].values()]
    assert len(set(names)) == 2


def drafted(tmp_path: Path, nodes: dict[str, dict[str, object] | None], links: list[object], **top: object):
    path = tmp_path / "x.clab.yml"
    path.write_text(yaml.safe_dump({"name": "x", "topology": {**top, "nodes": nodes, "links": links}}))
    return import_files([path], "x")


def pair(a: str, b: str) -> dict[str, list[str]]:
    return {"endpoints": [f"{a}:eth1", f"{b}:eth1"]}


def test_switches_that_do_not_hang_together_are_fabrics_of_their_own(tmp_path: Path) -> None:
    nodes = {name: {} for name in ("be-leaf1", "be-spine1", "fe-leaf1", "fe-spine1", "srv1", "srv2")}
    links = [
        pair("be-leaf1", "be-spine1"),
        pair("fe-leaf1", "fe-spine1"),
        pair("srv1", "fe-leaf1"),
        pair("srv2", "fe-leaf1"),
    ]
    draft = drafted(tmp_path, nodes, [*links, *([pair("srv1", "be-leaf1"), pair("srv2", "be-leaf1")] * 4)])
    assert {name: spec["carries"] for name, spec in draft.site["fabrics"].items()} == {
        "be": ["backend"], "fe": ["frontend", "storage"],
    }  # fmt: skip
    assert draft.site["servers"]["srv"]["nics"]["be"]["nic"] == "4x cx7-1x400g"
    assert any("what each fabric carries (assumed" in note for note in draft.notes)


def test_placement_is_read_from_where_the_cables_go(tmp_path: Path) -> None:
    leaves = [f"leaf{n}" for n in range(1, 5)]
    nodes = {name: {} for name in [*leaves, "spine1", "srv1", "srv2"]}
    up = [pair(leaf, "spine1") for leaf in leaves]
    rail = drafted(tmp_path, nodes, [*up, *(pair(s, leaf) for s in ("srv1", "srv2") for leaf in leaves)])
    assert rail.site["servers"]["srv"]["nics"]["nic"]["placement"] == "rail-optimised"
    single = drafted(tmp_path, nodes, [*up, *[pair("srv1", "leaf1")] * 4, *[pair("srv2", "leaf2")] * 4])
    assert single.site["servers"]["srv"]["nics"]["nic"]["placement"] == "single-homed"
    both = drafted(tmp_path, nodes, [*up, *(pair(s, leaf) for s in ("srv1", "srv2") for leaf in leaves[:2])])
    assert both.site["servers"]["srv"]["nics"]["nic"]["placement"] == "alternating"


def test_labels_and_groups_are_inherited_as_containerlab_does(tmp_path: Path) -> None:
    nodes = {"a": {"kind": "linux", "group": "leaf"}, "b": {"group": "spine"}, "c": {"labels": {"role": "server"}}}
    draft = drafted(
        tmp_path, nodes, [pair("a", "b"), pair("c", "a")], defaults={"kind": "linux"},
        kinds={"linux": {"labels": {"model": "celestica-ds5000", "fabric": "Fabric One"}}},
    )  # fmt: skip
    assert list(draft.site["fabrics"]) == ["fabric-one"]
    assert draft.site["fabrics"]["fabric-one"]["leaf"]["model"] == "celestica-ds5000"


def test_what_is_on_no_leaf_and_what_has_no_leaf_is_said(tmp_path: Path) -> None:
    nodes = {name: {} for name in ("leaf1", "spine1", "spine9", "srv1", "srv2", "probe")}
    draft = drafted(tmp_path, nodes, [pair("leaf1", "spine1"), pair("srv1", "leaf1")])
    notes = "\n".join(draft.notes)
    assert "server srv2, which is on no leaf" in notes
    assert "switches without a leaf: spine9" in notes
    assert "is not to be told: probe" in notes
