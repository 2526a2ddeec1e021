"""Every example of `kvfabric probe rdma`, in its help and in the documentation, asks for flows that its site has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from fabric.build import load_plan
from fabric.cli.verbs_probe.rdma import command
from validators.rdma import command as probe_command
from validators.rdma import probe
from validators.rdma.places import LabPlaces
from validators.rdma.question import rounds_of

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINE = re.compile(r"^ +kvfabric (probe rdma [a-z].*?)(?: {3,}.*)?$", re.MULTILINE)
EXAMPLES = sorted(
    {found for text in (command.help or "", *(p.read_text() for p in PAGES)) for found in LINE.findall(text)}
)


def test_every_set_has_an_example() -> None:
    kinds = {kind for kind in ("matrix", "cover", "bisection", "incast", "restore") for e in EXAMPLES if kind in e}
    assert kinds == {"matrix", "cover", "bisection", "incast", "restore"}
    assert any("--set" not in example for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_asks_for_flows_that_are_there(monkeypatch, example: str) -> None:
    asked: dict[str, Any] = {}

    def collect(plan, question, ask, *_: Any, **__: Any) -> list[Any]:
        asked.update(rounds=rounds_of(plan, question, ask.qps), ask=ask)
        return []

    monkeypatch.setattr(probe, "run", collect)
    monkeypatch.setattr(probe_command.probe, "run", collect)
    monkeypatch.setattr("validators.rdma.places.lab_places", lambda *_: LabPlaces.__new__(LabPlaces))
    site = shlex.split(example)[2]
    assert load_plan(site)
    command.main(shlex.split(example)[2:], standalone_mode=False)
    assert asked["rounds"]
    assert all(flow.owner.server != flow.reader.server for flows in asked["rounds"] for flow in flows)
    assert asked["ask"].groups
