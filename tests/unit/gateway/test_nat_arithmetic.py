"""Pairs, shares, prefixes and capacity."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.gateway import capacity, nat, timeouts
from fabric.gateway.targets import default_route_target

pytestmark = pytest.mark.unit


def _prefixes(base: str, lengths: list[int]) -> list[str]:
    """Lay prefixes of the given lengths out one after another, each aligned."""
    at = int(IPv4Address(base))
    found = []
    for length in lengths:
        block = 1 << (32 - length)
        at = -(-at // block) * block
        found.append(str(IPv4Network((at, length))))
        at += block
    return found


@given(st.lists(st.integers(26, 32), min_size=1, max_size=5), st.randoms())
def test_static_pairs_map_the_nth_address_to_the_nth(lengths: list[int], random: object) -> None:
    shuffled = list(lengths)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    private, public = _prefixes("10.1.0.0", lengths), _prefixes("203.0.112.0", shuffled)
    pairs = nat.static_pairs(private, public)
    inside = [a for prefix in private for a in IPv4Network(prefix)]
    outside = [a for prefix in public for a in IPv4Network(prefix)]
    mapped = [(a, b) for left, right in pairs for a, b in zip(left, right, strict=True)]
    assert mapped == list(zip(inside, outside, strict=True))


def test_static_sides_must_be_equal() -> None:
    with pytest.raises(ValueError, match="256 private and 4 public"):
        nat.static_pairs(["10.1.0.0/24"], ["203.0.113.0/30"])


@given(st.integers(22, 32), st.integers(1, 10))
def test_shares_are_a_partition_in_order(length: int, gateways: int) -> None:
    names = [f"gw-{n}" for n in range(gateways)]
    pool = str(IPv4Network((int(IPv4Address("203.0.112.0")), length)))
    count = IPv4Network(pool).num_addresses
    if count < gateways:
        with pytest.raises(ValueError, match="gateways"):
            nat.shares(pool, names)
        return
    found = nat.shares(pool, names)
    addresses = [a for s in found for p in nat.prefixes_of(s.first, s.last) for a in IPv4Network(p)]
    assert addresses == list(IPv4Network(pool))
    assert [s.gateway for s in found] == names
    sizes = [nat.size(nat.prefixes_of(s.first, s.last)) for s in found]
    assert max(sizes) - min(sizes) <= 1


def test_capacity_of_a_pool() -> None:
    assert capacity.concurrency(2) == 129_024
    # a /31, sessions of 10 s that are then silent for two minutes
    assert capacity.sustained_rate(2, 10, 120) == pytest.approx(992.5, abs=0.1)
    rates = capacity.pool_capacity(1, 120, 10).rates
    assert rates["udp"] == pytest.approx(64_512 / 130)
    assert rates["tcp-closed"] > rates["tcp-abandoned"]


def test_no_timer_is_longer_than_the_idle_timeout_and_established_is_exactly_it() -> None:
    for idle in (1, 7, 120, 86_400):
        assert timeouts.tcp(idle)["established"] == timeouts.tcp(idle)["unack"] == timeouts.udp(idle)["replied"] == idle
        every = [*timeouts.tcp(idle).values(), *timeouts.udp(idle).values(), *timeouts.dns(idle).values()]
        assert max(every) == idle
        assert min(every) >= 1


def test_the_default_route_has_a_route_target_that_no_peer_imports() -> None:
    assert default_route_target("64512:100") == "64512:100000100"
    assert default_route_target("64512:16777215") == "64512:116777215"
