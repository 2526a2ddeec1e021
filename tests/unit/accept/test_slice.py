"""A lab of a part of a site is not taken for the site."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fabric.build import load_plan
from fabric.problem import InputError
from labs import slice as slicing
from validators.catalog import Selection
from validators.runner_acceptance import Acceptance, open_devices

pytestmark = pytest.mark.unit

PLAN = load_plan("lab")


def _open(monkeypatch, folder, kinds, **more):
    running = SimpleNamespace(name="part", lab=slicing.make(PLAN, "part", kinds), folder=folder)
    monkeypatch.setattr("labs.client.attach", lambda _name="": running)
    return open_devices(Acceptance(PLAN, folder, **more))[0]


def test_a_slice_is_refused_with_what_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(InputError) as caught:
        _open(monkeypatch, tmp_path, {"leaves": 1, "servers": 2})
    (problem,) = caught.value.problems
    assert problem.rule == "accept.slice"
    assert "leaf-02" in problem.text
    assert "`kvfabric lab status` compares a slice" in problem.fix


def test_named_checks_and_snapshots_may_be_of_a_slice_and_a_whole_lab_is_none(monkeypatch, tmp_path):
    part = {"leaves": 1, "servers": 2}
    for more in ({"selection": Selection(checks=("nat-rules",))}, {"only_ask": True}):
        assert _open(monkeypatch, tmp_path, part, **more).name == "uml (lab part)"
    assert _open(monkeypatch, tmp_path, {}).name == "uml (lab part)"


def test_a_server_of_no_tenant_is_in_no_lab_and_makes_no_slice(monkeypatch, tmp_path):
    servers = {**PLAN.servers, "spare-001": replace(PLAN.servers["compute-001"], name="spare-001", ports=())}
    plan = replace(PLAN, servers=servers)
    running = SimpleNamespace(name="all", lab=slicing.make(plan, "all", {}), folder=tmp_path)
    monkeypatch.setattr("labs.client.attach", lambda _name="": running)
    assert open_devices(Acceptance(plan, tmp_path))[0].name == "uml (lab all)"
