"""Failure sweeps: known single failures, and double failures by class against every pair one by one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from fabric.analysis.capacity import capacity, layers, spare_ports, tiers
from fabric.analysis.failures import Sweep
from fabric.analysis.gateway_room import PORTS_PER_ADDRESS, Requests, gateway_room
from fabric.analysis.heat_map import page_of, severity_of
from fabric.build import load_plan
from fabric.charts.page import write_plot
from fabric.problem import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def sweep(lab: Plan) -> Sweep:
    return Sweep(lab)


def test_spine_halves_the_fabric(sweep: Sweep) -> None:
    spine = next(i for i in sweep.singles() if i.parts == ("spine-01",))
    assert (spine.residual, spine.cut, spine.split) == (0.5, (), 0)


def test_both_gateways_end_the_groups(sweep: Sweep) -> None:
    parts = [p for p in sweep.parts if p.kind == "gateway"]
    impact = sweep.impact(parts)
    assert set(impact.groups_dead) == {"internet", "partners"}
    assert impact.gateways_left == 0


def test_two_links_split_two_leaves(sweep: Sweep) -> None:
    names = {"leaf-01:E1/33--spine-01:E1/1", "leaf-02:E1/34--spine-02:E1/2"}
    impact = sweep.impact([p for p in sweep.parts if p.name in names and p.kind == "link"])
    assert impact.split == 1


def test_leaf_of_single_homed_servers_cuts_them() -> None:
    plan = load_plan("xoc-64")
    leaf = next(p for p in Sweep(plan).parts if p.kind == "switch" and p.name == "be-leaf-01")
    assert Sweep(plan).impact([leaf]).cut


def test_the_end_of_every_gateway_is_the_worst_double() -> None:
    """Both border leaves of XOC-256: 4 storage servers, and the way out of every tenant."""
    sweep = Sweep(load_plan("xoc-256"))
    by_name = {p.name: p for p in sweep.parts if p.kind == "switch"}
    border, leaf = (
        sweep.impact([by_name[f"{name}-01"], by_name[f"{name}-02"]]) for name in ("fe-border-leaf", "fe-leaf")
    )
    assert len(border.cut) < len(leaf.cut)
    assert border.gateways_left == 0
    assert border.badness < leaf.badness


def test_doubles_by_class_equal_every_pair_one_by_one(sweep: Sweep) -> None:
    every: Counter[tuple[float, ...]] = Counter()
    for one, two in combinations(sweep.parts, 2):
        if not (one.links <= two.links or two.links <= one.links):
            every[sweep.impact((one, two)).badness] += 1
    classes: Counter[tuple[float, ...]] = Counter()
    for impact in sweep.doubles():
        classes[impact.badness] += impact.alike
    assert classes == every


def test_heat_map(sweep: Sweep, tmp_path: Path) -> None:
    singles = sweep.singles()
    page = page_of(sweep.plan, singles, sweep.doubles(), 10)
    for name in ("map.html", "map.svg"):
        write_plot(tmp_path / name, page)
        text = (tmp_path / name).read_text()
        assert text.count("<title>") >= len(singles)
        assert f"hsl({round(120 * (1 - max(map(severity_of, singles))))} 65% 50%)" in text
    ElementTree.fromstring((tmp_path / "map.svg").read_text())
    assert "Left out" in (tmp_path / "map.html").read_text()
    assert 0 <= min(map(severity_of, singles)) < max(map(severity_of, singles)) <= 1
    with pytest.raises(InputError):
        write_plot(tmp_path / "map.png", page)


def test_tiers_of_the_reference_are_non_blocking() -> None:
    backend = next(t for t in tiers(load_plan("xoc-256")) if t.fabric == "backend")
    assert (backend.switches, backend.above, backend.endpoints, backend.ratio) == (4, 2, 256, 1.0)


def test_gateway_room_counts_nat_ports_and_refuses_too_much() -> None:
    plan = load_plan("xoc-256")
    pool = next(g for g in gateway_room(plan, Requests(1e6, 10)) if g.mode == "masquerade")
    assert pool.nat_ports == 8 * PORTS_PER_ADDRESS
    assert pool.new_per_s == pytest.approx(8 * PORTS_PER_ADDRESS / 130)
    assert pool.at_once == 1e6 * 130
    assert pool.binds == "NAT ports, conntrack table"
    assert not pool.enough


def test_gateway_room_of_throughput_and_handshakes() -> None:
    plan = load_plan("xoc-256")
    good, bad = (gateway_room(plan, Requests(1000, 10, size, 0.03))[0] for size in (1e6, 1e8))
    assert good.enough
    assert (good.asked_gbps, good.handshaking, good.handshake_s) == pytest.approx((8.0, 30.0, 0.06))
    assert bad.binds == "Gb/s"
    assert bad.asked_gbps > bad.gbps == 400


def test_spare_ports_are_counted_by_zone_and_speed() -> None:
    plan = load_plan("xoc-256")
    spare = {(p.fabric, p.kind, p.zone, p.speed): p.ports for p in spare_ports(plan)}
    assert spare["frontend", "leaf", "down", 200] == 2 * 128 - 64
    assert sum(spare.values()) == sum(not port.link for s in plan.switches.values() for port in s.ports)


def test_capacity_says_its_model(lab: Plan) -> None:
    answer = capacity(lab, patterns=("ingress",), qps=(1,)).to_dict()
    assert "max-min" in answer["model"].lower()
    assert answer["outcomes"]


def test_layers_name_what_moves_the_cache() -> None:
    answer = capacity(load_plan("xoc-64"), patterns=("prefill-decode",), qps=(8,))
    rows = {layer: text for layer, text, _ in layers(answer)}
    assert {"prefill", "decode", "KV", "router"} <= rows.keys()
    assert "GB/s" in rows["KV"]
