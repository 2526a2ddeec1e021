"""Imports make inventories that the planner accepts, and say what they left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabric.build import load_plan
from fabric.hardware.ranges import expand_hosts, host_patterns, parse_ports
from fabric.interop.comparing import compare
from fabric.interop.formats import write
from fabric.interop.importing import import_files
from fabric.interop.importing.draft import Draft, check, port_list, refuse_existing, site_name
from fabric.interop.output import write_files
from fabric.interop.readers import read_cable_map
from fabric.problem import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit

_PLAN = """
meta: {name: Small, description: a small single-homed site}
reference_data:
  device_type_extensions: [{id: ext, hedgehog_profile_name: celestica-ds5000}]
  breakout_options: [{id: b2, breakout_id: 2x400g}, {id: b1, breakout_id: 1x800g}]
  module_types: [{id: cx7, model: ConnectX-7 Single-Port 400G}]
switch_classes:
  - {switch_class_id: be_leaf, fabric_name: backend, hedgehog_role: server-leaf, device_type_extension: ext}
  - {switch_class_id: be-spine, fabric_name: backend, hedgehog_role: spine, device_type_extension: ext}
switch_port_zones:
  - {switch_class: be_leaf, zone_name: s, zone_type: server, port_spec: 1-32, breakout_option: b2}
  - {switch_class: be_leaf, zone_name: u, zone_type: uplink, port_spec: 33-64, breakout_option: b1}
  - {switch_class: be-spine, zone_name: f, zone_type: fabric, port_spec: 1-64, breakout_option: b1}
server_classes: [{server_class_id: gpu, category: gpu, quantity: 16, gpus_per_server: 2}]
server_nics:
  - {server_class: gpu, nic_id: be0, module_type: cx7}
  - {server_class: gpu, nic_id: be1, module_type: cx7}
server_connections:
  - {server_class: gpu, nic: be0, ports_per_connection: 1, distribution: rail-optimized, target_zone: be_leaf/s, speed: 400}
  - {server_class: gpu, nic: be1, ports_per_connection: 1, distribution: rail-optimized, target_zone: be_leaf/s, speed: 400}
"""


_CLAB = """
name: t
topology:
  defaults: {kind: linux}
  groups: {fabric-leaf: {image: frr}}
  nodes:
    a1: {group: fabric-leaf}
    a2: {group: fabric-leaf}
    spine1: {}
    spine2: {labels: {role: spine}}
    gw1: {}
    srv1: {}
    srv2: {}
    internet: {}
    grafana: {}
  links:
    - endpoints: ["a1:eth1", "spine1:eth1"]
    - endpoints: ["a1:eth2", "spine2:eth1"]
    - endpoints: ["a2:eth1", "spine1:eth2"]
    - {type: veth, endpoints: [{node: a2, interface: eth2}, {node: spine2, interface: eth2}]}
    - endpoints: ["srv1:eth1", "a1:eth3"]
    - endpoints: ["srv2:eth1", "a2:eth3"]
    - endpoints: ["gw1:eth1", "a1:eth9"]
    - endpoints: ["gw1:eth2", "internet:eth1"]
    - {type: mgmt-net, endpoint: {node: gw1, interface: eth5}}
"""


def imported(folder: Path, *texts: str) -> Draft:
    paths = []
    for n, text in enumerate(texts):
        path = folder / f"source{n}.yaml"
        path.write_text(text)
        paths.append(path)
    return import_files(paths, "small")


def test_a_planning_file_becomes_a_site_that_plans(tmp_path: Path) -> None:
    draft = imported(tmp_path, _PLAN)
    write_files(draft.files(), tmp_path / "small")
    plan = load_plan(tmp_path / "small")
    assert plan.profile == "distributed"
    assert [p.name for p in plan.servers["gpu-001"].ports] == ["be0-port0", "be1-port0"]
    assert plan.servers["gpu-001"].xpus == 2
    assert "be-leaf-01" in plan.switches


def test_words_and_numbers_that_disagree_are_said(tmp_path: Path) -> None:
    notes = "\n".join(imported(tmp_path, _PLAN).notes)
    assert "'single-homed' of its description: its connections say rail-optimized" in notes
    assert "the name be_leaf" in notes


@pytest.mark.parametrize("site", ["xoc64", "xoc256"])
def test_our_own_wiring_comes_back_as_the_same_cabling(
    site: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    plan: Plan = request.getfixturevalue(site)
    [path] = [p for p in write_files(write(plan, "wiring"), tmp_path) if "backend" in p.name]
    write_files(import_files([path], "again").files(), tmp_path / "again")
    assert check(tmp_path / "again") == []
    outcome = compare(load_plan(tmp_path / "again"), read_cable_map(path))
    assert outcome.same, outcome.text()


def test_vpcs_become_tenants_with_members_subnets_and_peers(lab: Plan, tmp_path: Path) -> None:
    draft = imported(tmp_path, write(lab, "wiring")["wiring-fabric.yaml"])
    assert draft.tenants["acme"]["servers"] == ["compute-001", "compute-003"]
    assert draft.tenants["acme"]["subnets"] == {"fabric": "10.1.0.0/24"}
    assert draft.tenants["acme"]["peers"] == ["storage"]
    assert any("VLAN and IPv4 namespaces" in note for note in draft.notes)


def test_a_containerlab_topology_becomes_a_skeleton_that_plans(tmp_path: Path) -> None:
    draft = imported(tmp_path, _CLAB)
    write_files(draft.files(), tmp_path / "small")
    assert check(tmp_path / "small") == []
    plan = load_plan(tmp_path / "small")
    kinds = list(plan.kind_of.values())
    assert [kinds.count(k) for k in ("leaf", "spine", "server", "gateway", "edge")] == [2, 2, 2, 1, 1]
    notes = "\n".join(draft.notes)
    assert "grafana" in notes
    assert "mgmt-net" in notes


def test_a_containerlab_link_to_no_node_is_a_problem_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        imported(tmp_path, _CLAB.replace("a1:eth9", "leaf9:eth9"))
    [problem] = raised.value.problems
    assert "leaf9, which is no node" in problem.text
    assert problem.line == 23


def test_notes_stand_in_the_file_too(tmp_path: Path) -> None:
    text = imported(tmp_path, _PLAN).files()["site.yaml"]
    assert "# not taken over: the name be_leaf" in text
    assert yaml.safe_load(text)["site"] == "small"


def test_unknown_and_mixed_files_are_refused(tmp_path: Path, lab: Plan) -> None:
    with pytest.raises(InputError, match="not a description of a site"):
        imported(tmp_path, "a: 1\n")
    with pytest.raises(InputError, match="different kinds"):
        imported(tmp_path, _PLAN, write(lab, "wiring")["wiring-fabric.yaml"])
    with pytest.raises(InputError, match="several planning files"):
        imported(tmp_path, _PLAN, _PLAN)


def test_an_inventory_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text("site: x\n")
    with pytest.raises(InputError, match="inventory already"):
        refuse_existing(tmp_path)


@given(st.sets(st.integers(1, 66), min_size=1))
def test_port_lists_say_exactly_the_ports(numbers: set[int]) -> None:
    assert set(parse_ports(port_list(numbers))) == numbers


def test_port_lists_are_short() -> None:
    assert port_list(range(1, 33)) == "1-32"
    assert port_list(range(1, 64, 2)) == "1-63:2"
    assert port_list([1, 2, 4]) == "1-2,4"


@given(st.sets(st.integers(1, 40), min_size=1))
def test_host_patterns_say_exactly_the_hosts(numbers: set[int]) -> None:
    names = {f"compute-{n:03d}" for n in numbers}
    assert {name for pattern in host_patterns(names) for name in expand_hosts(pattern)} == names


def test_site_names_are_ones_an_inventory_accepts() -> None:
    assert [site_name(x) for x in ("Berlin_1", "9lives", "--", "A" * 60)] == ["berlin-1", "x-9lives", "x", "a" * 40]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_to_a_source_gives_a_traceback(lab: Plan, tmp_path: Path, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([_PLAN, _CLAB, write(lab, "wiring")["wiring-fabric.yaml"][-4000:]]))
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 60))
    junk = data.draw(
        st.sampled_from(["", "null", "[]", "{}", "1", "'x'", "\n- ", ": ", "&a", "*a", "!!binary x", "-1"])
    )
    outcome: object
    try:
        outcome = imported(tmp_path, text[:at] + junk + text[at + length :])
        outcome.files()
    except InputError as error:
        outcome = error
    assert isinstance(outcome, Draft) or (isinstance(outcome, InputError) and outcome.problems)
