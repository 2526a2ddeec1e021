"""The proof holds on the lab, and names the first hop, file and key that do not agree."""

from __future__ import annotations

from typing import Any

import pytest

from fabric.analysis.rendered import Rendered
from fabric.analysis.roce_path import prove
from fabric.problem import InputError

pytestmark = pytest.mark.unit

ENDS = ("compute-001:be0-port0", "compute-002:be0-port0")


def test_holds_on_every_path(site: Any) -> None:
    proof = prove(site.plan, Rendered(site.files), *ENDS)
    assert proof.holds
    assert [h.way for h in proof.hops][:2] == ["out", "in"]
    assert all(v.key and v.file for h in proof.hops for v in h.values)


def test_names_the_spine_that_lost_its_class() -> None:
    from fabric.build import load_plan
    from fabric.render.registry import render_site
    from tests.unit.analysis.conftest import Site

    plan = load_plan("xoc-256")
    spoilt = Site(plan, dict(render_site(plan)))
    spoilt.db("be-spine-02", lambda d: d["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"].update({"3": "0"}))
    proof = prove(plan, Rendered(spoilt.files), "compute-001", "compute-032")
    assert proof.tunnelled
    assert proof.paths == 2 * 16 * 16
    assert not proof.holds
    assert {h.device for h in proof.wrong} == {"be-spine-02"}
    value = proof.wrong[0].wrong[0]
    assert (value.name, value.value, value.want) == ("priority group", "0", "3")
    assert value.line


def test_names_the_nic(site: Any) -> None:
    site.text("compute-001", "roce.sh", "DSCP=26", "DSCP=0")
    proof = prove(site.plan, Rendered(site.files), *ENDS)
    assert proof.wrong[0].device == "compute-001"
    assert proof.wrong[0].wrong[0].key == "DSCP"


def test_linux_switches_are_unknown_not_good(linux_site: Any) -> None:
    proof = prove(linux_site.plan, Rendered(linux_site.files), *ENDS)
    assert not proof.holds
    assert proof.unknown


@pytest.mark.parametrize("name", ["nobody", "compute-001:eth9"])
def test_unknown_ends(site: Any, name: str) -> None:
    with pytest.raises(InputError):
        prove(site.plan, Rendered(site.files), name, "compute-002")
