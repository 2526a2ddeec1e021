"""The hosts files that `build` writes: read as they are, complete, without a user or a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from fabric.build import load_plan
from fabric.interop.hosts_files import hosts_files
from fabric.inventory.scaffold import Scaffold, scaffold, write_scaffold
from tests.conftest import SHIPPED, run_cli
from validators.devices.hosts import read_hosts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("site", SHIPPED)
def test_accept_reads_the_hosts_file_as_it_is(site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVFABRIC_USERNAME", "netops")
    monkeypatch.setenv("KVFABRIC_PASSWORD", "s3cret")
    plan = load_plan(site)
    path = tmp_path / "hosts.yaml"
    path.write_text(hosts_files(plan)["hosts.yaml"])
    hosts = read_hosts(path, plan)
    managed = [s for s in plan.switches.values() if s.managed]
    reachable = [d for d in (*managed, *plan.gateways.values(), *plan.servers.values()) if d.management]
    assert {name: host.hostname for name, host in hosts.items()} == {
        d.name: d.management.partition("/")[0] for d in reachable
    }
    assert {s.name for s in managed} | plan.gateways.keys() <= hosts.keys()
    assert {(h.username, h.password) for h in hosts.values()} == {("netops", "s3cret")}
    assert {hosts[s.name].dialect for s in managed} == {"sonic"}
    assert {hosts[name].dialect for name in plan.gateways} <= {"linux"}
    left = [d for d in plan.servers.values() if not d.management]
    assert (f"# {len(left)} devices have no management address" in path.read_text()) == bool(left)


def test_a_bmc_is_never_a_host(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    write_scaffold(scaffold(Scaffold("fresh", "xoc-64", management=True)), folder)
    plan = load_plan(folder)
    files = hosts_files(plan)
    controllers = {s.bmc.partition("/")[0] for s in plan.servers.values()}
    assert len(controllers) == len(plan.servers)
    assert not plan.servers.keys() & yaml.safe_load(files["hosts.yaml"]).keys()
    assert not any(address in text for text in files.values() for address in controllers)
    assert f"# {len(plan.servers)} of them have a BMC in the management network (compute-001," in files["hosts.yaml"]


def test_a_server_with_a_port_of_its_own_beside_the_bmc_is_a_host(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    files = scaffold(Scaffold("fresh", "xoc-64", management=True))
    files["site.yaml"] = files["site.yaml"].replace("carries: [frontend", "carries: [inband, frontend")
    write_scaffold(files, folder)
    server = load_plan(folder).servers["compute-001"]
    assert server.management
    assert not server.bmc


def test_the_file_says_nothing_of_users_and_secrets(tmp_path: Path) -> None:
    for text in hosts_files(load_plan("lab")).values():
        said = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        assert not [word for word in ("user", "password", "key", "secret") if word in said]


def test_ansible_groups_by_kind_fabric_and_class(tmp_path: Path) -> None:
    plan = load_plan("xoc-256")
    tree = yaml.safe_load(hosts_files(plan)["ansible.yaml"])["all"]
    groups = {name: set(body["hosts"]) for name, body in tree["children"].items()}
    assert groups["kind_border_leaf"] == {s.name for s in plan.switches.values() if s.kind == "border-leaf"}
    assert groups["fabric_backend"] == {s.name for s in plan.switches_of("backend")}
    assert groups["nos_sonic"] == groups["switches"]
    assert groups["class_compute"] == {s.name for s in plan.servers.values() if s.server_class == "compute"}
    assert groups["gateways"] == set(plan.gateways)
    assert set().union(*groups.values()) == set(tree["hosts"])
    leaf = plan.switches["be-leaf-01"]
    assert tree["hosts"]["be-leaf-01"] == {"ansible_host": leaf.management.partition("/")[0]}


def test_build_writes_both_and_accept_lists_its_cases_with_them(tmp_path: Path) -> None:
    built = run_cli("build", "lab", "--out", str(tmp_path))
    assert built.returncode == 0, built.stderr
    hosts = tmp_path / "lab/hosts.yaml"
    assert (tmp_path / "lab/ansible.yaml").is_file()
    listed = run_cli("accept", "lab", "--hosts", str(hosts), "--list")
    assert listed.returncode == 0, listed.stderr
    assert "device-answers" in listed.stdout
