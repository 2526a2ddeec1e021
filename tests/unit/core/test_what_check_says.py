"""What a wrong inventory is told: each fault is found, at its line, with a fix that does not repeat it."""

from __future__ import annotations

from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from fabric.build import plan_site
from fabric.problem import InputError, Problem
from fabric.resources import data_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return copytree(data_folder("inventories") / "xoc-64", tmp_path / "site")


def edit(site: Path, *changes: tuple[str, str]) -> Path:
    """Replace text in the site's files; each old text must be there."""
    for old, new in changes:
        files = [f for f in site.glob("*.yaml") if old in f.read_text()]
        assert files, old
        for file in files:
            file.write_text(file.read_text().replace(old, new))
    return site


def told(site: Path, *changes: tuple[str, str]) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        plan_site(edit(site, *changes))
    return caught.value.problems


def line_of(file: Path, text: str) -> int:
    return 1 + next(i for i, line in enumerate(file.read_text().splitlines()) if text in line)


ACME = "{backend: 10.1.0.0/20, frontend: 10.1.16.0/20}"


def test_a_peers_subnet_in_another_fabric_may_not_overlap(site: Path) -> None:
    (problem,) = told(site, (ACME, "{backend: 10.250.0.0/20, frontend: 10.4.16.0/20}"))
    tenants = site / "tenants.yaml"
    assert problem.rule == "tenant.overlap"
    assert problem.line == line_of(tenants, "10.250.0.0/22")
    assert f"{tenants}:{line_of(tenants, '10.250.0.0/20')}" in problem.text
    assert f"{tenants}:{problem.line}" in problem.text
    assert "disjoint" in problem.fix


def test_a_tenants_own_subnets_may_not_overlap(site: Path) -> None:
    (problem,) = told(site, (ACME, "{backend: 10.1.0.0/16, frontend: 10.1.16.0/20}"))
    assert (problem.rule, problem.line) == ("tenant.overlap", line_of(site / "tenants.yaml", "10.1.0.0/16"))
    assert "backend of acme" in problem.text
    assert "frontend of acme" in problem.text


def test_peers_peers_that_never_meet_may_overlap_across_fabrics(site: Path) -> None:
    """Storage has no port in the backend: acme's backend subnet is nowhere beside globex's frontend subnet."""
    edit(site, (ACME, "{backend: 10.2.16.0/20, frontend: 10.1.16.0/20}"))
    plan_site(site)


@pytest.mark.parametrize(
    ("old", "new", "field", "fix"),
    [
        ("dscp: 26", "dscp: 48", "roce.dscp", "use `dscp: 26`"),
        ("dscp: 26", "cnp_dscp: 26", "roce.cnp_dscp", "use `cnp_dscp: 48`"),
        ("priority: 3", "priority: 6", "roce.priority", "use `priority: 3`"),
        ("priority: 3", "queue: 6", "roce.queue", "use `queue: 3`"),
        ("priority: 3", "priority: 6, queue: 3", "roce.priority", "use `priority: 3`"),
        ("priority: 3", "cnp_queue: 3", "roce.cnp_queue", "use `cnp_queue: 6`"),
    ],
)
def test_the_fix_of_a_shared_class_does_not_repeat_it(site: Path, old: str, new: str, field: str, fix: str) -> None:
    problem = told(site, (old, new))[0]
    assert (problem.field, problem.fix) == (field, fix)
    edit(site, (new, f"{old}, {fix.split('`')[1]}" if field.startswith("roce.cnp") else old))
    plan_site(site)


@pytest.mark.parametrize(
    ("old", "new", "says", "fix"),
    [
        ("tcp: {443:", "tcp: {8000-8010:", "'8000-8010' is not a port", "list the ports one by one"),
        ("tcp: {443:", "tcp: {70000:", "70000 is not a port", "from 1 to 65535"),
        ("10.3.0.0/20", "10.3.0.1/20", "host bits", "use 10.3.0.0/20"),
        ("10.3.0.0/20", '"2001:db8::/48"', "IPv4 only", "10.1.0.0/16"),
        ("dscp: 26", "dscp: 99", "63 or less, not 99", "a number up to 63"),
        ("count: 8", "count: -1", "0 or more, not -1", "a number from 0"),
        ("leaf-spine: 30m", "leaf-spine: 5km", "'5km' is not a cable length", "whole metres"),
        ("watchdog: 200ms", "watchdog: soon", "not a time", "200ms"),
        ("breakout: 1x800G", "breakout: 800G", "does not have the form", "2x400G"),
        ("site: xoc-64", "site: XOC", "does not have the form", "small letters"),
        ("1-32", "32-1", "backwards", "1-63:2"),
        ("compute-[001-004]", "compute-[004-001]", "backwards", "compute-[001-016]"),
    ],
)
def test_a_wrong_value_has_a_fix(site: Path, old: str, new: str, says: str, fix: str) -> None:
    problem = told(site, (old, new))[0]
    assert says in problem.text
    assert fix in problem.fix


def test_faults_of_different_parts_come_at_once(site: Path) -> None:
    """A peer, a gateway and an ECN threshold have nothing to do with each other: none hides another."""
    found = told(
        site,
        ("10.2.16.0/20}\n    peers: [storage]", "10.2.16.0/20}\n    peers: [storge]"),
        ("min: 128KiB", "min: 512KiB"),
        ("internet: [gw-01, gw-02]", "internet: [gw-01, gw-09]"),
        ("public: 203.0.113.16/28, group: partners", "public: 203.0.113.16/28, group: partner"),
    )
    assert {p.rule for p in found} == {"tenant.peer", "qos.ecn", "gateway.group"}
    assert len(found) == 4
    assert all(p.fix and p.line for p in found)


def test_a_fabric_that_is_not_there_hides_no_peer_and_no_class(site: Path) -> None:
    found = told(
        site,
        ("10.2.16.0/20}\n    peers: [storage]", "10.2.16.0/20}\n    peers: [storge]"),
        ("dscp: 26", "dscp: 48"),
        ("internet: [gw-01, gw-02]", "internet: [gw-01, gw-09]"),
        ("nic: cx7-2x200g, attach", "nic: cx7-2x200g, fabric: frontnd, attach"),
    )
    assert {p.rule for p in found} == {"inventory.fabric", "tenant.peer", "qos.dscp", "gateway.group"}


def test_all_unknown_servers_of_a_pattern_are_named(site: Path) -> None:
    (problem,) = told(site, ("compute-[008-008]", "compute-[008-012]"))
    assert problem.text == "no server compute-[009-012]"
