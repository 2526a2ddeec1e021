"""The management network's router: said by the site or the last address, and never a device's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fabric.allocation.ledger import Ledger, PoolExhaustedError
from fabric.build import load_plan, plan_site
from fabric.problem import InputError
from fabric.render.registry import render_site
from fabric.resources import data_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in (data_folder("inventories") / "lab").glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text())
    return tmp_path


def say(folder: Path, text: str) -> None:
    (folder / "pools.yaml").write_text(f"pools: {{{text}}}\n")


def row(folder: Path) -> tuple[str, Any]:
    files = dict(render_site(load_plan(folder), ["leaf-01"]))["leaf-01"]
    rows: dict[str, Any] = json.loads(files["config_db.json"])["MGMT_INTERFACE"]
    key, fields = rows.popitem()
    return key, fields["gwaddr"]


def addresses(folder: Path) -> set[str]:
    plan = load_plan(folder)
    devices = (*plan.switches.values(), *plan.gateways.values(), *plan.servers.values())
    return {device.management.partition("/")[0] for device in devices if device.management}


def test_it_is_the_last_address_or_the_one_that_is_said(folder: Path) -> None:
    usual = row(folder)
    assert usual[1] == "172.30.7.254"
    before = addresses(folder)
    said = usual[0].split("|")[1].split("/")[0]
    say(folder, f"management_gateway: {said}")
    key, gateway = row(folder)
    assert gateway == said
    assert key != usual[0]
    after = addresses(folder)
    assert said not in after
    assert len(after) == len(before)


@pytest.mark.parametrize("wrong", ["192.0.2.1", "172.30.0.0", "172.30.7.255", "router.example.net"])
def test_one_that_no_device_could_reach_is_refused_at_its_line(folder: Path, wrong: str) -> None:
    say(folder, f"management_gateway: {wrong}")
    with pytest.raises(InputError) as caught:
        plan_site(folder)
    [problem] = caught.value.problems
    assert "pools.yaml:1" in str(problem)
    assert "pools.management_gateway" in str(problem)


def test_a_full_pool_leaves_the_router_out(folder: Path) -> None:
    for more in ("", ", management_gateway: 192.0.2.1"):
        say(folder, f"management: 192.0.2.0/29{more}")
        with pytest.raises(InputError, match="pool 'management' has 5 numbers"):
            plan_site(folder)


def test_who_had_the_number_gets_another_and_it_is_told() -> None:
    ledger = Ledger()
    assert ledger.allocate("management", ["a", "b"], 3) == {"a": 0, "b": 1}
    assert ledger.allocate("management", ["a", "b"], 3, reserved=0) == {"a": 2, "b": 1}
    assert [one.text for one in ledger.lost] == ["management: a had number 0, which is reserved now"]
    with pytest.raises(PoolExhaustedError, match="has 2 numbers and 3 are wanted"):
        ledger.allocate("management", ["a", "b", "c"], 3, reserved=0)
