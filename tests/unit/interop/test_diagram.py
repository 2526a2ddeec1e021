"""The picture is well formed, complete, the same every time, and needs nothing from elsewhere."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fabric.interop.diagram import diagram, model
from fabric.interop.diagram.layout import lay_out
from fabric.interop.diagram.model import MOST_IN_TIER, panels, span

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("site", ["lab", "xoc256"])
def test_every_device_is_in_the_picture_and_every_link_in_a_bundle(site: str, request: pytest.FixtureRequest) -> None:
    plan: Plan = request.getfixturevalue(site)
    drawn = panels(plan)
    assert {member for p in drawn for nodes in p.tiers.values() for n in nodes for member in n.members} == set(
        plan.kind_of
    )
    assert sum(bundle.count for panel in drawn for bundle in panel.bundles) == len(plan.links)


@pytest.mark.parametrize("html", [False, True])
def test_the_picture_is_the_same_every_time_and_self_contained(lab: Plan, html: bool) -> None:
    text = diagram(lab, html=html)
    assert text == diagram(lab, html=html)
    outside = set(re.findall(r"https?://[^\s\"'<>]+", text)) - {"http://www.w3.org/2000/svg"}
    assert outside == set()
    assert "<script src" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_svg_is_well_formed_and_names_are_escaped(lab: Plan) -> None:
    root = ET.fromstring(diagram(replace(lab, site="<lab> & co")))
    assert root.tag.endswith("svg")
    assert "<lab> & co" in "".join(root.itertext())


@pytest.mark.parametrize("site", ["lab", "xoc64", "xoc256"])
def test_boxes_neither_overlap_nor_leave_the_page(site: str, request: pytest.FixtureRequest) -> None:
    page = lay_out(panels(request.getfixturevalue(site)), 100)
    for panel in page.panels:
        rows: dict[float, list[tuple[float, float]]] = {}
        for box in panel.boxes:
            rows.setdefault(box.y, []).append((box.x, box.x + box.width))
            assert box.x >= 0
            assert box.x + box.width <= page.width
            assert panel.y <= box.y <= panel.y + panel.height - box.height
        for spans in rows.values():
            spans.sort()
            assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans))


def test_many_leaves_are_drawn_as_blocks(xoc256: Plan) -> None:
    leaf = xoc256.switches["be-leaf-01"]
    more = {f"be-leaf-{n:02d}": replace(leaf, name=f"be-leaf-{n:02d}") for n in range(1, 101)}
    plan = replace(xoc256, switches={**xoc256.switches, **more})
    leaves = next(p for p in panels(plan) if p.fabric == "backend").tiers["leaf"]
    assert len(leaves) <= MOST_IN_TIER
    assert sum(len(node.members) for node in leaves) == 100
    assert leaves[0].title == "be-leaf-01 … 05"


def test_servers_under_one_block_of_leaves_are_one_box(xoc256: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "MOST_IN_TIER", 2)
    backend = next(p for p in panels(xoc256) if p.fabric == "backend")
    assert [node.title for node in backend.tiers["leaf"]] == ["be-leaf-01 … 02", "be-leaf-03 … 04"]
    assert [node.title for node in backend.tiers["server"]] == [
        "compute-001 … 016",
        "compute-017 … 028",
        "compute-029 … 032",
    ]


def test_spans_do_not_hide_gaps() -> None:
    assert span(["a-001"]) == "a-001"
    assert span(["a-001", "a-002", "a-003"]) == "a-001 … 003"
    assert span(["a-001", "a-003"]) == "a-001, 003"
    assert span(["a-001", "a-003", "a-005", "a-007"]) == "a-001 and 3 more"
    assert span(["x", "y", "z"]) == "x and 2 more"
