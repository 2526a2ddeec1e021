from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.problem import InputError
from fabric.render.registry import native_target, render_site, targets, targets_for

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def test_every_target_is_found_by_being_there() -> None:
    assert {"sonic", "frr", "gateway", "host"} <= set(targets())


def test_a_switch_has_the_target_of_its_nos(lab: Plan) -> None:
    assert [t.TARGET for t in targets_for(lab, "leaf-01")] == ["sonic"]
    assert native_target(lab, "leaf-01") == "sonic"


@pytest.mark.parametrize(("device", "target"), [("leaf-01", "frr"), ("gw-01", "gateway"), ("compute-001", "host")])
def test_override_changes_only_what_it_can_render(lab: Plan, device: str, target: str) -> None:
    assert [t.TARGET for t in targets_for(lab, device, "frr")] == [target]


def test_the_edge_router_is_not_ours(lab: Plan) -> None:
    assert targets_for(lab, "edge-01") == ()


def test_site_is_rendered_in_plan_order(lab: Plan) -> None:
    switches = list(lab.switches)
    assert [device for device, _ in render_site(lab, switches)] == switches


def test_limit_keeps_plan_order(lab: Plan) -> None:
    assert [device for device, _ in render_site(lab, ["spine-01", "leaf-02"])] == ["leaf-02", "spine-01"]


def test_unknown_and_unmanaged_devices_are_named_together(lab: Plan) -> None:
    with pytest.raises(InputError) as caught:
        list(render_site(lab, ["leaf-99", "edge-01", "leaf-01"]))
    assert {(p.rule, p.subject) for p in caught.value.problems} == {
        ("render.unknown-device", "device leaf-99"),
        ("render.unmanaged-device", "device edge-01"),
    }


def test_unknown_target_is_an_input_error(lab: Plan) -> None:
    with pytest.raises(InputError) as caught:
        list(render_site(lab, target="junos"))
    assert "sonic" in caught.value.problems[0].fix
    with pytest.raises(InputError):
        targets_for(lab, "edge-01", "junos")


@pytest.mark.parametrize("target", [None, "frr"])
def test_the_same_plan_gives_the_same_bytes(lab: Plan, target: str | None) -> None:
    switches = list(lab.switches)
    assert list(render_site(lab, switches, target)) == list(render_site(lab, switches, target))
