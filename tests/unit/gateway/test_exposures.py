"""Each rule of an exposure has an inventory that breaks it, and the problem points at the line."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.unit

MASQUERADE = "- {mode: masquerade, public: 203.0.113.0/29, group: internet}"
FORWARD = "- {mode: portForward, public: 203.0.113.20/32, tcp: {443: 'compute-001:8443'}, group: internet}"
STATIC = "- {mode: static, private: compute-002, public: 203.0.113.30/32, group: internet}"


def test_the_three_modes_become_what_the_plan_says(expose: Any) -> None:
    plan, problems = expose("\n".join([MASQUERADE, FORWARD, STATIC]))
    assert plan is not None
    assert not problems
    masquerade, forward, static = plan.tenants["acme"].exposures
    assert (masquerade.name, masquerade.idle_timeout_s, masquerade.private) == ("masquerade", 120, ("10.1.0.0/24",))
    assert [(s.gateway, s.first, s.last) for s in masquerade.shares] == [
        ("gw-01", "203.0.113.0", "203.0.113.3"),
        ("gw-02", "203.0.113.4", "203.0.113.7"),
    ]
    assert [(m.protocol, m.public_port, m.private_address, m.private_port) for m in forward.ports] == [
        ("tcp", 443, "10.1.0.1", 8443)
    ]
    assert static.idle_timeout_s == 0
    assert plan.gateways["gw-01"].tenants == ("acme",)


def test_names_are_kept_when_another_mode_is_added(expose: Any) -> None:
    plan, _ = expose("\n".join([FORWARD, STATIC, FORWARD.replace("113.20", "113.21")]))
    assert plan is not None
    assert [e.name for e in plan.tenants["acme"].exposures] == ["forward", "static", "forward-2"]


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("gateway.group", "- {mode: masquerade, public: 203.0.113.0/29}"),
        ("gateway.group", "- {mode: masquerade, public: 203.0.113.0/29, group: internett}"),
        ("gateway.special-use", "- {mode: masquerade, public: 127.0.0.0/29, group: internet}"),
        ("gateway.special-use", "- {mode: static, private: compute-001, public: 224.0.0.1/32, group: internet}"),
        ("gateway.private-public", "- {mode: masquerade, public: 10.9.0.0/29, group: internet}"),
        ("gateway.public-overlap", "- {mode: masquerade, public: 10.1.0.128/29, group: internet}"),
        ("gateway.public-overlap", "- {mode: masquerade, public: 172.30.8.0/29, group: internet}"),
        ("gateway.pool-size", "- {mode: masquerade, public: 203.0.113.1/32, group: internet}"),
        ("gateway.pool-size", "- {mode: masquerade, public: 32.0.0.0/8, group: internet}"),
        ("gateway.ports", "- {mode: portForward, public: 203.0.113.20/32, group: internet}"),
        ("gateway.ports", "- {mode: portForward, public: 203.0.113.20/31, tcp: {1: 'compute-001:1'}, group: internet}"),
        ("gateway.ports", FORWARD.replace("compute-001:8443", "compute-009:8443")),
        ("gateway.ports", FORWARD.replace("compute-001:8443", "compute-001:0")),
        ("gateway.ports", FORWARD.replace("compute-001:8443", "compute-001:70000")),
        ("gateway.ports", FORWARD.replace("compute-001:8443", "compute-001:80-90")),
        ("gateway.ports", FORWARD.replace("compute-001:8443", "8443")),
        ("gateway.outside-subnet", FORWARD.replace("compute-001:8443", "10.2.0.1:8443")),
        (
            "gateway.outside-subnet",
            "- {mode: masquerade, private: 10.1.0.0/16, public: 203.0.113.0/29, group: internet}",
        ),
        ("gateway.one-mode", MASQUERADE.replace("group", "tcp: {443: 'compute-001:1'}, group")),
        ("gateway.static", "- {mode: static, public: 203.0.113.30/32, group: internet}"),
        ("gateway.static-size", "- {mode: static, private: 10.1.0.0/28, public: 203.0.113.32/30, group: internet}"),
        ("gateway.timeout", STATIC.replace("group", "idle_timeout: 2m, group")),
        ("gateway.timeout", MASQUERADE.replace("group", "idle_timeout: 0s, group")),
        ("gateway.timeout", MASQUERADE.replace("group", "idle_timeout: 25h, group")),
        ("gateway.private", STATIC.replace("compute-002", "compute-003")),
        ("gateway.name", MASQUERADE.replace("group", "name: forward, group") + "\n" + FORWARD),
        ("gateway.one-group", MASQUERADE + "\n" + FORWARD.replace("internet", "partners")),
        ("gateway.public-shared", MASQUERADE + "\n" + MASQUERADE.replace("/29", "/28")),
        ("gateway.public-shared", MASQUERADE + "\n" + STATIC.replace("113.30", "113.1")),
        ("gateway.public-share", MASQUERADE + "\n" + FORWARD.replace("113.20", "113.6")),
        ("gateway.port-twice", FORWARD + "\n" + FORWARD),
        ("gateway.private-overlap", STATIC + "\n" + STATIC.replace("113.30", "113.31")),
        ("gateway.private-overlap", FORWARD + "\n" + STATIC.replace("compute-002", "compute-001")),
        (
            "gateway.private-overlap",
            MASQUERADE + "\n" + MASQUERADE.replace("113.0/29", "113.8/29, private: 10.1.0.0/25"),
        ),
    ],
)
def test_a_broken_exposure_is_refused_where_it_is_written(expose: Any, rule: str, lines: str) -> None:
    plan, problems = expose(lines)
    found = [problem for problem in problems if problem.rule == rule]
    if rule == "gateway.private-overlap" and "/25" in lines:
        assert plan is None
    assert plan is None, problems
    assert found, problems
    assert all(problem.file and problem.line > 15 and problem.fix for problem in found)


def test_masquerade_and_forward_may_share_an_address_of_the_preferred_gateway(expose: Any) -> None:
    plan, problems = expose(MASQUERADE + "\n" + FORWARD.replace("113.20", "113.2"))
    assert plan is not None
    assert not problems


def test_static_may_be_a_part_of_what_masquerade_covers(expose: Any) -> None:
    plan, problems = expose(MASQUERADE + "\n" + STATIC)
    assert plan is not None
    assert not problems


def test_tenants_may_have_one_private_prefix_but_never_one_public_address(expose: Any) -> None:
    plan, problems = expose(MASQUERADE, MASQUERADE.replace("113.0/29", "113.8/29"))
    assert plan is not None
    assert not problems
    plan, problems = expose(MASQUERADE, MASQUERADE.replace("/29", "/30"))
    assert plan is None
    assert [problem.rule for problem in problems] == ["gateway.public-shared"]
    assert "tenant acme" in problems[0].text
    assert "globex" in problems[0].subject
