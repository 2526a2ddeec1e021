"""What stays when a site grows, is renamed, or has a ledger that was spoilt: numbers, labels, addresses, MACs, ports."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from fabric.build import plan_site
from fabric.interop.cable_map import of_plan
from fabric.interop.comparing import compare
from fabric.interop.comparing.growth import growth
from fabric.problem import InputError, Severity
from fabric.resources import data_folder
from tests.conftest import run_cli

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.build import PlannedSite
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def site(folder: Path, change: Callable[[dict], object] = lambda data: None, name: str = "xoc-64") -> PlannedSite:
    """Plan a shipped site with a change, in a folder of its own whose ledger stays."""
    data: dict = {}
    for file in ("site.yaml", "tenants.yaml"):
        data |= yaml.safe_load((data_folder("inventories") / name / file).read_text())
    change(data)
    (folder / "site.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    return plan_site(folder)


def labels(plan: Plan) -> dict[str, int]:
    return {f"{link.a.device}:{link.a.port}": link.cable for link in plan.links.values()}


@pytest.mark.parametrize(
    "grow",
    [
        lambda d: d["servers"]["compute"].update(count=12),
        lambda d: d["gateways"]["gw"].update(count=4),
        lambda d: d["edge"].update(count=2),
        lambda d: d.update(servers={"cache": {**deepcopy(d["servers"]["storage"]), "count": 2}, **d["servers"]}),
        lambda d: d["gateways"].update({"aa": {**d["gateways"]["gw"], "count": 1}}),
    ],
)
def test_growth_moves_no_label_and_no_cable(tmp_path: Path, grow: Callable[[dict], object]) -> None:
    def start(data: dict) -> None:
        data["edge"]["count"] = 1

    before = site(tmp_path, start)
    before.save_ledger()
    after = site(tmp_path, lambda d: (start(d), grow(d)))
    old, new = labels(before.plan), labels(after.plan)
    assert len(new) > len(old)
    assert {key: new[key] for key in old} == old
    assert len(set(new.values())) == len(new)
    assert before.plan.links.keys() <= after.plan.links.keys()


def test_a_removed_cables_number_is_held_for_it(tmp_path: Path) -> None:
    first = site(tmp_path)
    first.save_ledger()
    less = site(tmp_path, lambda d: d["edge"].update(count=1))
    less.save_ledger()
    again = site(tmp_path)
    assert labels(again.plan) == labels(first.plan)


def test_a_renamed_gateway_class_keeps_everything(tmp_path: Path) -> None:
    def rename(data: dict) -> None:
        data["gateways"] = {"nat": {**data["gateways"]["gw"], "was": "gw"}}
        data["groups"] = {k: [m.replace("gw-", "nat-") for m in v] for k, v in data["groups"].items()}

    before = site(tmp_path)
    before.save_ledger()
    after = site(tmp_path, rename)
    for number in ("01", "02"):
        old, new = before.plan.gateways[f"gw-{number}"], after.plan.gateways[f"nat-{number}"]
        assert (new.router_id, new.vtep, new.management, new.router_mac) == (
            old.router_id,
            old.vtep,
            old.management,
            old.router_mac,
        )
        for side in ("uplinks", "externals"):
            ends = [
                [
                    (k.a.address, k.b.address, k.b.device, k.b.port, k.cable, k.vlan)
                    for k in (p.links[i] for i in getattr(g, side))
                ]
                for p, g in ((before.plan, old), (after.plan, new))
            ]
            assert ends[0] == ends[1]
    # and it stays so when the word `was` is taken out again
    after.save_ledger()
    later = site(tmp_path, lambda d: (rename(d), d["gateways"]["nat"].pop("was")))
    assert later.plan.gateways == after.plan.gateways


def test_a_renamed_leaf_class_keeps_addresses_positions_and_macs(tmp_path: Path) -> None:
    def numbered(data: dict) -> None:
        data["fabrics"]["backend"]["links"] = "numbered"

    before = site(tmp_path, numbered)
    before.save_ledger()

    def rename(data: dict) -> None:
        numbered(data)
        data["fabrics"]["backend"]["leaf"].update(name="rack", was="be-leaf")

    after = site(tmp_path, rename)
    for name, old in before.plan.switches.items():
        new = after.plan.switches[name.replace("be-leaf-", "rack-")]
        assert (new.mac, new.asn, new.router_id, new.vtep, new.management) == (
            old.mac,
            old.asn,
            old.router_id,
            old.vtep,
            old.management,
        )
    ends = [
        [(k.a.address, k.b.address, k.a.port, k.b.port, k.cable) for k in p.links.values() if k.fabric == "backend"]
        for p in (before.plan, after.plan)
    ]
    assert ends[0] == ends[1]
    assert any(address for address, *_ in ends[0])


def test_a_renamed_server_class_keeps_ports_and_cables(tmp_path: Path) -> None:
    before = site(tmp_path)
    before.save_ledger()

    def rename(data: dict) -> None:
        data["servers"] = {
            "node": {**data["servers"]["compute"], "was": "compute", "kind": "compute"},
            "storage": data["servers"]["storage"],
        }
        text = json.dumps(data["tenants"]).replace("compute-", "node-")
        data["tenants"] = json.loads(text)

    after = site(tmp_path, rename)
    for name, old in before.plan.servers.items():
        new = after.plan.servers[name.replace("compute-", "node-")]
        assert [(p.name, p.address, p.gateway) for p in new.ports] == [
            (p.name, p.address, p.gateway) for p in old.ports
        ]
    assert {k.replace("compute-", "node-"): v for k, v in labels(before.plan).items()} == labels(after.plan)


def test_a_new_device_with_a_former_name_gets_its_own_mac(tmp_path: Path) -> None:
    before = site(tmp_path)
    before.save_ledger()

    def swap(data: dict) -> None:
        gateway = data["gateways"]["gw"]
        data["gateways"] = {"nat": {**gateway, "was": "gw"}, "gw": {**gateway}}
        data["groups"] = {k: [m.replace("gw-", "nat-") for m in v] + v for k, v in data["groups"].items()}

    after = site(tmp_path, swap)
    macs = [g.router_mac for g in after.plan.gateways.values()]
    assert len(set(macs)) == len(macs) == 4
    assert after.plan.gateways["nat-01"].router_mac == before.plan.gateways["gw-01"].router_mac


@pytest.mark.parametrize(
    ("book", "key", "value"),
    [
        ("pins", "cabling/backend", "be-leaf-01:E1/99/9"),
        ("pins", "cabling/backend", "be-leaf-2000:E1/1/1"),
        ("pins", "uplinks/backend", "nowhere"),
        ("pools", "loopback", 10**30),
    ],
)
def test_what_the_ledger_held_and_cannot_be_kept_is_said(tmp_path: Path, book: str, key: str, value: object) -> None:
    site(tmp_path).save_ledger()
    path = tmp_path / "ledger.json"
    data = json.loads(path.read_text())
    first = next(iter(data[book][key]))
    data[book][key][first] = value
    path.write_text(json.dumps(data, indent=1))
    planned = plan_site(tmp_path)
    found = [p for p in planned.problems if p.rule == "ledger.lost"]
    assert [p.severity for p in found] == [Severity.WARNING]
    assert first in found[0].text
    assert found[0].file == str(path)
    assert json.dumps(value) in path.read_text().splitlines()[found[0].line - 1]
    assert len(planned.plan.switches) < 100


def test_a_rack_of_unknown_devices_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        site(tmp_path, lambda d: d.update(racks={"r1": {"devices": ["be-leaf-01", "be-leef-02", "compute-[001-003]"]}}))
    (problem,) = caught.value.problems
    assert problem.rule == "rack.unknown-device"
    assert "be-leef-02" in problem.text
    assert problem.line


def test_a_tenant_called_edge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        site(
            tmp_path,
            lambda d: d["tenants"].update(edge={"servers": "compute-001:be", "subnets": {"backend": "10.9.0.0/24"}}),
        )
    assert "tenant.reserved" in {p.rule for p in caught.value.problems}


def test_servers_with_one_port_use_both_leaves_of_a_pair(tmp_path: Path) -> None:
    def one_port(data: dict) -> None:
        data["servers"]["watch"] = {
            "count": 6,
            "nics": {"fe": {"nic": "cx7-1x400g", "fabric": "frontend", "placement": "alternating"}},
        }
        leaf = data["fabrics"]["frontend"]["leaf"]
        leaf["down"] = [{"ports": "1-31:2", "breakout": "4x200G"}, {"ports": "33-39:2", "breakout": "2x400G"}]
        leaf["up"] = {"ports": "2-32:2", "breakout": "1x800G"}

    plan = site(tmp_path, one_port).plan
    on = [link.b.device for link in plan.links.values() if link.a.device.startswith("watch")]
    assert on == ["fe-leaf-01", "fe-leaf-02"] * 3


def test_changes_are_values_and_json(tmp_path: Path) -> None:
    site(tmp_path)
    done = run_cli("plan", str(tmp_path), "--changes", "--format", "json")
    assert done.returncode == 0
    rows = {(row["pool"], row["key"]): row["new"] for row in json.loads(done.stdout)}
    assert rows["leaf-asn", "be-leaf-01"] == "65101"
    assert rows["loopback", "be-leaf-01"].startswith("172.30.8.")
    assert rows["tenant", "acme"] == "1 (VNI 100)"
    assert rows["tenant/acme/backend", "compute-001"].startswith("10.1.0.")
    text = run_cli("plan", str(tmp_path), "--changes").stdout
    assert "leaf-asn: be-leaf-01 new, 65101" in text
    assert text.startswith("nothing is remembered yet: ")


def test_changes_begin_with_tiers_and_cables_as_compare_counts_them(tmp_path: Path) -> None:
    before = site(tmp_path, name="xoc-256")
    before.save_ledger()
    grown = site(tmp_path, lambda data: data["servers"]["compute"].update(count=40), "xoc-256")
    told = growth(grown)
    assert told.text().splitlines()[:4] == [
        "backend: 5 leaves instead of 4",
        "backend: 4 spines instead of 2",
        "compute: 40 servers instead of 32",
        "120 cables move, 112 new, 440 stay",
    ]
    assert "cabling: be-leaf-01 E1/41 be-spine-01 E1/9 -> be-spine-02 E1/1" in told.text().splitlines()
    compared = compare(grown.plan, of_plan(before.plan))
    counts: Counter[str] = Counter()
    for finding in compared.findings:
        counts[finding.kind] += finding.cables
    assert (len(told.moves), told.new, told.stay) == (
        counts["moved"] + counts["swapped"],
        counts["missing"],
        compared.equal,
    )
    assert len(told.rows()) == 120
    # the smaller site again: everything goes back, and the cables of the 33rd and later servers are gone
    grown.save_ledger()
    back = growth(site(tmp_path, name="xoc-256"))
    assert back.tiers == tuple(
        f"{what} {now} instead of {had}"
        for what, now, had in (
            ("backend:", "4 leaves", 5), ("backend:", "2 spines", 4), ("compute:", "32 servers", 40),
        )
    )  # fmt: skip
    assert (len(back.moves), back.gone) == (120, 112)


def test_renamed_devices_are_the_same_devices(tmp_path: Path) -> None:
    site(tmp_path).save_ledger()

    def rename(data: dict) -> None:
        data["fabrics"]["backend"]["spine"].update(name="core", was="be-spine")

    told = growth(site(tmp_path, rename))
    assert (told.tiers, told.moves, told.new, told.gone) == ((), (), 0, 0)
