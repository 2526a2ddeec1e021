from __future__ import annotations

import pytest

from fabric.build import plan_site
from fabric.plan import Exposure, PoolShare, PortMap
from fabric.problem import InputError
from validators.connections.from_plan import Target, capacity_problems, targets

pytestmark = pytest.mark.unit

SHARES = (PoolShare("gw-1", "203.0.113.0", "203.0.113.7"), PoolShare("gw-2", "203.0.113.8", "203.0.113.15"))
MASQUERADE = Target(
    Exposure("out", "acme", "masquerade", "internet", ("10.1.0.0/24",), ("203.0.113.0/28",), 120, (), SHARES),
    "Vrf-acme",
)
STATIC = Target(Exposure("api", "acme", "static", "internet", ("10.1.0.16/30",), ("203.0.113.32/30",), 0), "Vrf-acme")
FORWARD = Target(
    Exposure(
        *("web", "acme", "portForward", "internet", ("10.1.0.10/32",), ("203.0.113.20/32",), 600),
        (PortMap("tcp", 443, "10.1.0.10", 8443),),
    ),
    "Vrf-acme",
)


def test_a_pool_is_that_of_the_gateway_that_owns_it() -> None:
    assert len(MASQUERADE.pool()) == 16
    assert "203.0.113.9" in MASQUERADE.pool("gw-2")
    assert "203.0.113.9" not in MASQUERADE.pool("gw-1")


def test_a_failover_must_end_on_the_other_gateways_addresses() -> None:
    declared = MASQUERADE.failover(1000, "gw-1")
    assert "203.0.113.1" in declared.before
    assert "203.0.113.9" in declared.after
    assert not declared.before & declared.after
    assert STATIC.failover(1000, "gw-1").survives


def test_declared_timers_come_from_the_exposure() -> None:
    assert MASQUERADE.idle()["tcp-established"] == 120
    assert FORWARD.idle()["tcp-established"] == 600
    assert STATIC.idle() == {}


def test_static_ends_are_a_pair_and_forwards_are_the_plans() -> None:
    assert STATIC.ends(("10.1.0.17", "10.1.0.18"), ("198.18.0.1", "198.18.0.2")).public == "203.0.113.33"
    ends = FORWARD.ends(("10.1.0.10", "10.1.0.10"), ("198.18.0.1", "198.18.0.2"))
    assert ends.forwards == (("tcp", 443, "10.1.0.10", 8443),)


def test_a_host_outside_the_exposure_is_refused() -> None:
    with pytest.raises(InputError, match=r"10\.9\.9\.9 is not part"):
        MASQUERADE.ends(("10.9.9.9", "10.1.0.2"), ("198.18.0.1", "198.18.0.2"))


def test_a_pool_too_small_for_the_ladder_is_found_before_it_runs() -> None:
    assert capacity_problems(MASQUERADE, 1_000_000) == []
    (problem,) = capacity_problems(MASQUERADE, 2_000_000)
    assert "16 public addresses" in problem.text
    assert capacity_problems(STATIC, 2_000_000) == []


def test_the_lab_site_has_exposures_of_known_modes_and_an_unknown_tenant_has_none() -> None:
    plan = plan_site("lab").plan
    found = targets(plan)
    assert {target.exposure.mode for target in found} <= {"masquerade", "portForward", "static"}
    assert all(target.pool() for target in found)
    with pytest.raises(InputError, match="exposes nothing"):
        targets(plan, tenant="nobody")


def test_an_exposure_that_is_none_is_answered_with_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        targets(plan_site("lab").plan, tenant="acme", exposure="out")
    assert "acme masquerade, acme forward, acme static" in caught.value.problems[0].fix
