"""Files of switches played by SONiC's virtual switch, asked of SONiC's YANG models and FRR's parser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.outside import vtysh, yang
from labs import slice as slicing
from labs.containerlab import virtual_sonic

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.external


@pytest.fixture(scope="module", params=["sonic-vs", "sonic-vm"])
def files(request: pytest.FixtureRequest, lab_plan: Plan) -> dict[str, dict[str, str]]:
    lab = slicing.make(lab_plan, "lab")
    return virtual_sonic.files(lab_plan, lab, dict.fromkeys(lab_plan.switches, request.param))


def _complaints(files: dict[str, dict[str, str]], folder: Path, tool: object) -> list[str]:
    if reason := tool.available():
        pytest.skip(reason)
    found = []
    for device, texts in files.items():
        (folder / device).mkdir()
        for name, text in texts.items():
            (folder / device / name).write_text(text)
        found += [str(problem) for problem in tool.validate(folder / device, device)]
    return found


def test_tables_are_valid(files: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert len(files) == 4
    assert _complaints(files, tmp_path, yang) == []


def test_routing_is_understood_by_frr(files: dict[str, dict[str, str]], tmp_path: Path) -> None:
    assert _complaints(files, tmp_path, vtysh) == []


def test_a_port_that_is_not_there_would_be_noticed(files: dict[str, dict[str, str]], tmp_path: Path) -> None:
    tables = json.loads(files["leaf-01"]["config_db.json"])
    del tables["PORT"]["Ethernet40"]
    broken = {"leaf-01": {"config_db.json": json.dumps(tables)}}
    assert _complaints(broken, tmp_path, yang)


def test_a_big_slice_keeps_to_the_ports_that_there_are() -> None:
    plan = load_plan("xoc-256")
    lab = slicing.make(plan, "xoc-256", slicing.parse_counts("leaves=2,spines=2,gateways=1,servers=2"))
    made = virtual_sonic.files(plan, lab, {"be-leaf-01": "sonic-vm", "fe-border-leaf-01": "sonic-vm"})
    for device, texts in made.items():
        assert yang.complaints(texts["config_db.json"]) == [], device
