"""Fair shares against an exact reference, ECMP choices, restore bursts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.analysis.flows.maxmin import link_load, max_min
from fabric.analysis.flows.network import Network, mix
from fabric.analysis.flows.restore import restore
from fabric.analysis.flows.traffic import PATTERNS, pairs_of, run
from fabric.build import load_plan
from fabric.problem import InputError

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
    paths = network.paths(list(source), list(target), mix(np.arange(8, dtype=np.uint64)))
    rates = max_min(paths, network.capacity)
    assert (link_load(paths, rates, len(network.capacity)) <= network.capacity + 1e-6).all()
    assert (rates > 0).all()


def test_hash_spreads_over_every_uplink_and_polarisation_does_not() -> None:
    network = Network(load_plan("xoc-256"), "backend")
    leaf = [e.leaf for e in network.endpoints]
    a = leaf.index(0)
    b = leaf.index(1)
    entropy = mix(np.arange(4000, dtype=np.uint64))
    paths = network.paths([a] * 4000, [b] * 4000, entropy)
    ups = np.unique(paths[:, 1])
    assert len(ups) == 32
    polarised = network.paths([a] * 4000, [b] * 4000, entropy, polarised=True)
    assert len(np.unique(polarised, axis=0)) < len(np.unique(paths, axis=0)) / 4


@pytest.mark.parametrize("pattern", PATTERNS)
def test_more_qps_come_nearer_to_ideal(pattern: str) -> None:
    plan = load_plan("xoc-256")
    fabric = "frontend" if pattern == "ingress" else "backend"
    network = Network(plan, fabric)
    assert pairs_of(network, pattern)
    one, many = run(network, pattern, 1), run(network, pattern, 16)
    assert one is not None
    assert many is not None
    assert one.hashed <= many.hashed * 1.02 <= many.ideal * 1.03


def test_restore_of_the_reference_example() -> None:
    """8 x 20 GB in 1 s is 160 GB/s and 4 ports of 49 GB/s."""
    plan = load_plan("xoc-256")
    answer = restore(plan, 8, 20e9, 1.0, pool=("compute-031", "compute-032"), pool_ports=4, qps=16)
    assert answer.demand_gb_s == pytest.approx(160)
    assert answer.pool_ports_needed == 4
    few = restore(plan, 8, 20e9, 1.0, pool=("compute-031", "compute-032"), pool_ports=2, qps=16)
    assert few.max_s == pytest.approx(160 / (2 * 49), rel=0.02)
    assert few.late == 8
    assert few.binding_tier == "server to leaf"


def test_restore_without_enough_servers() -> None:
    with pytest.raises(InputError):
        restore(load_plan("lab"), 500, 1e9, 1.0)
