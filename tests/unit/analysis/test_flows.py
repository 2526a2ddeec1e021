"""Fair shares against an exact reference, ECMP choices, restore bursts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.analysis.flows.maxmin import link_load, max_min
from fabric.analysis.flows.network import Network, mix
from fabric.analysis.flows.restore import Arrivals, Burst, restore
from fabric.analysis.flows.traffic import PATTERNS, Played, hashed_rates, pairs_of
from fabric.build import load_plan
from fabric.problem import InputError
from fabric.resources import data_folder

pytestmark = pytest.mark.unit


def exact(paths: list[list[int]], capacity: list[int]) -> list[Fraction]:
    """Textbook water filling in fractions: one tightest link a round."""
    rates: list[Fraction | None] = [None] * len(paths)
    left = [Fraction(c) for c in capacity]
    while any(r is None for r in rates):
        share = {}
        for link in range(len(capacity)):
            users = sum(r is None and link in p for r, p in zip(rates, paths, strict=True))
            if users:
                share[link] = left[link] / users
        tight = min(share, key=lambda k: share[k])
        for i, path in enumerate(paths):
            if rates[i] is None and tight in path:
                rates[i] = share[tight]
                for link in path:
                    left[link] -= share[tight]
    return [r for r in rates if r is not None]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_equals_the_exact_reference(data: st.DataObject) -> None:
    links = data.draw(st.integers(1, 8))
    capacity = data.draw(st.lists(st.integers(1, 1000), min_size=links, max_size=links))
    path = st.lists(st.integers(0, links - 1), min_size=1, max_size=4, unique=True)
    paths = data.draw(st.lists(path, min_size=1, max_size=20))
    padded = np.array([p + [-1] * (4 - len(p)) for p in paths])
    got = max_min(padded, np.array(capacity, dtype=float))
    want = np.array([float(r) for r in exact(paths, capacity)])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_known_case() -> None:
    paths = np.array([[0, 1], [0, -1], [1, -1]])
    np.testing.assert_allclose(max_min(paths, np.array([10.0, 4.0])), [2, 8, 2])


def test_no_link_is_overfull_and_none_could_give_more() -> None:
    network = Network(load_plan("xoc-64"), "backend")
    source, target = np.arange(8), np.arange(8)[::-1] + 8
    paths = network.paths(np.array(source), np.array(target), mix(np.arange(8, dtype=np.uint64)))
    rates = max_min(paths, network.capacity)
    assert (link_load(paths, rates, len(network.capacity)) <= network.capacity + 1e-6).all()
    assert (rates > 0).all()


def test_hash_spreads_over_every_uplink_and_polarisation_does_not() -> None:
    network = Network(load_plan("xoc-256"), "backend")
    leaf = [e.leaf for e in network.endpoints]
    a = leaf.index(0)
    b = leaf.index(1)
    entropy = mix(np.arange(4000, dtype=np.uint64))
    paths = network.paths(np.full(4000, a), np.full(4000, b), entropy)
    ups = np.unique(paths[:, 1])
    assert len(ups) == 32
    polarised = network.paths(np.full(4000, a), np.full(4000, b), entropy, polarised=True)
    assert len(np.unique(polarised, axis=0)) < len(np.unique(paths, axis=0)) / 4


@pytest.mark.parametrize("pattern", PATTERNS)
def test_more_qps_come_nearer_to_ideal(pattern: str) -> None:
    plan = load_plan("xoc-256")
    fabric = "frontend" if pattern == "ingress" else "backend"
    network = Network(plan, fabric)
    assert pairs_of(network, pattern)
    played = Played.on(network, pattern)
    assert played
    one, many = played.run(1), played.run(16)
    assert one.hashed <= many.hashed * 1.02 <= many.ideal * 1.03


_POOL = ("compute-031", "compute-032")


def test_restore_of_the_reference_example() -> None:
    """8 x 20 GB in 1 s is 160 GB/s and 4 ports of 49 GB/s."""
    plan = load_plan("xoc-256")
    answer = restore(plan, Burst(8, 20e9, 1.0, pool=_POOL, pool_ports=4, qps=16))
    assert answer.demand_gb_s == pytest.approx(160)
    assert answer.pool_ports_needed == 4
    few = restore(plan, Burst(8, 20e9, 1.0, pool=_POOL, pool_ports=2, qps=16))
    assert few.max_s == pytest.approx(160 / (2 * 49), rel=0.02)
    assert few.late == 8
    assert few.binding_tier == "server to leaf"


def test_what_would_help_is_played_and_sorted() -> None:
    few = restore(load_plan("xoc-256"), Burst(8, 20e9, 1.0, pool=_POOL, pool_ports=2))
    by_change = {f.change: f for f in few.fixes}
    assert few.fixes == tuple(sorted(few.fixes, key=lambda f: (f.late, f.max_s)))
    ports = by_change["4 pool ports instead of 2"]
    assert ports.max_s < few.max_s * 0.6
    # more ports at the readers cannot help when the pool's bind
    assert by_change["2 ports a reader"].max_s == pytest.approx(few.max_s, rel=0.05)
    spread = next(f for f in few.fixes if "staggering" in f.change)
    assert spread.max_s < few.max_s
    assert any("placement" in change for change in by_change)


def test_readers_bind_until_they_use_two_ports() -> None:
    one = restore(load_plan("xoc-256"), Burst(2, 20e9, 0.3))
    assert one.binding_tier == "leaf to server"
    assert one.fixes[0].change == "2 ports a reader"
    assert one.fixes[0].late == 0


def test_a_burst_inside_its_window_needs_no_fix() -> None:
    answer = restore(load_plan("xoc-256"), Burst(8, 20e9, 1.0))
    assert (answer.late, answer.fixes) == (0, ())


@pytest.mark.parametrize("arrivals", [Arrivals.EVEN, Arrivals.POISSON])
def test_arrivals_spread_the_load(arrivals: Arrivals) -> None:
    plan = load_plan("xoc-256")
    together = restore(plan, Burst(8, 20e9, 1.0, pool=_POOL, pool_ports=2))
    spread = restore(plan, Burst(8, 20e9, 1.0, pool=_POOL, pool_ports=2, arrivals=arrivals, over_s=4.0))
    assert spread.p50_s < together.p50_s
    assert spread.all_done_s > together.all_done_s
    assert len(spread.done_s) == 8
    assert spread.done_s == tuple(sorted(spread.done_s))


def test_restore_over_three_tiers() -> None:
    answer = restore(load_plan("pods-100k"), Burst(64, 20e9, 1.0, pool=("compute-12544",)))
    assert answer.late == 64
    assert answer.max_s == pytest.approx(64 * 20 / (8 * 49), rel=0.02)


@pytest.mark.parametrize("nodes", [500, 10**9])
def test_restore_without_enough_servers(nodes: int) -> None:
    with pytest.raises(InputError):
        restore(load_plan("lab"), Burst(nodes, 1e9, 1.0))


def test_ingress_from_gateways_on_spines(tmp_path: Path) -> None:
    """A gateway on a spine sends down from that spine only, and no leaf's uplink carries it."""
    site = yaml.safe_load((data_folder("inventories") / "xoc-64" / "site.yaml").read_text())
    site["gateways"]["gw"]["attach"] = "spine"
    spine = site["fabrics"]["frontend"]["spine"]
    spine["down"] = [{"ports": "1-48", "breakout": "1x800G"}, {"ports": "49-63:2", "breakout": "4x200G"}]
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    (tmp_path / "tenants.yaml").write_text((data_folder("inventories") / "xoc-64" / "tenants.yaml").read_text())
    plan = load_plan(tmp_path)
    network = Network(plan, "frontend")
    on_spine = [e for e in network.endpoints if plan.kind_of[e.device] == "gateway"]
    assert on_spine
    assert all(e.leaf == -1 and e.spine >= 0 for e in on_spine)
    played = Played.on(network, "ingress")
    assert played
    paths, rates = hashed_rates(network, played.source, played.target, 4, seed=0)
    assert (paths[:, 1] == -1).all()  # nothing goes up
    assert (paths[:, 4] >= 0).all()
    for path in paths[:20]:
        gateway_to, spine_from = (network.name_of(int(path[k])).split(" -> ") for k in (0, 4))
        assert gateway_to[1].split()[0] == spine_from[0].split()[0]
    loads = {t.tier for t in played.run(4).loads}
    assert loads == {"gateway to spine", "spine to leaf", "leaf to server"}
    assert rates.sum() == pytest.approx(played.ideal, rel=0.2)


def test_ingress_comes_from_the_active_gateway_of_each_tenant() -> None:
    plan = load_plan("xoc-256")
    network = Network(plan, "frontend")
    group = {t.name: {plan.groups[e.group].gateways[0] for e in t.exposures} for t in plan.tenants.values()}
    ends = network.endpoints
    pairs = pairs_of(network, "ingress")
    assert pairs
    assert all(ends[a].device in group[ends[b].tenant] for a, b in pairs)


def test_every_tier_is_loaded_and_full_links_are_named() -> None:
    played = Played.on(Network(load_plan("xoc-256"), "backend"), "prefill-decode")
    assert played
    loads = {t.tier: t for t in played.run(1, links=3).loads}
    assert list(loads) == ["server to leaf", "leaf to spine", "spine to leaf", "leaf to server"]
    assert len(loads["leaf to spine"].fullest) == 3
    for tier in loads.values():
        assert 0 < tier.mean <= tier.most <= 800.001
    # what goes up comes down
    assert loads["leaf to spine"].mean * loads["leaf to spine"].links == pytest.approx(
        loads["spine to leaf"].mean * loads["spine to leaf"].links
    )
