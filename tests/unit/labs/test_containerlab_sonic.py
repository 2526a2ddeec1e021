"""Switches played by SONiC's virtual switch: which wire is which port, and that all files agree on it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from fabric.build import load_plan
from fabric.problem import InputError
from labs import model
from labs import slice as slicing
from labs.containerlab import export, virtual_sonic
from labs.containerlab.kinds import Settings, parse_kinds

pytestmark = pytest.mark.unit

SCRIPTS = Path(virtual_sonic.__file__).parent


def exported(tmp_path, kind, site="lab", counts=None):
    plan = load_plan(site)
    lab = slicing.make(plan, plan.site, counts or {})
    done = export.write(plan, lab, tmp_path / "lab.d", Settings(parse_kinds((kind,))))
    return done.folder, yaml.safe_load(done.topology.read_text())


def star(cables):
    nodes = (model.Node("hub", "spine"), *(model.Node(f"n{i}", "leaf") for i in range(cables)))
    links = tuple(
        model.Link(f"l{i}", model.End(f"n{i}", "x"), model.End("hub", f"Ethernet{8 * i}")) for i in range(cables)
    )
    return model.Lab("star", nodes, links)


def test_the_nth_cabled_port_is_eth_n_and_sonics_port_four_times_that():
    wires = virtual_sonic.wires(star(12), "hub")
    # natural order: Ethernet16 comes before Ethernet80 and Ethernet8 before both
    assert list(wires) == [f"Ethernet{8 * i}" for i in range(12)]
    assert [wires["Ethernet0"], wires["Ethernet80"], wires["Ethernet88"]] == ["eth1", "eth11", "eth12"]
    assert [virtual_sonic.port_of(w) for w in ("eth1", "eth2", "eth11", "eth32")] == [
        "Ethernet0", "Ethernet4", "Ethernet40", "Ethernet124",
    ]  # fmt: skip


def test_more_cables_than_ports_is_refused_and_says_what_to_do():
    assert virtual_sonic.too_many(star(32), ["hub"]) == []
    (problem,) = virtual_sonic.too_many(star(33), ["hub"])
    assert "33 cables" in problem.text
    assert "--slice" in problem.fix


def test_a_site_with_bigger_switches_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError):
        exported(tmp_path, "sonic-vs", "xoc-256")
    assert not (tmp_path / "lab.d").exists()


@pytest.mark.parametrize("kind", ["sonic-vs", "sonic-vm"])
def test_endpoints_config_db_and_frr_conf_speak_of_the_same_ports(tmp_path, kind):
    folder, data = exported(tmp_path, kind)
    for name in ("leaf-01", "leaf-02", "spine-01"):
        wires = {
            end.partition(":")[2]: link["endpoints"][1 - i].partition(":")[0]
            for link in data["topology"]["links"]
            for i, end in enumerate(link["endpoints"])
            if end.startswith(f"{name}:")
        }
        assert set(wires) == {f"eth{n}" for n in range(1, len(wires) + 1)}
        tables = json.loads((folder / name / "config_db.json").read_text())
        neighbors = {port: row["name"] for port, row in tables["DEVICE_NEIGHBOR"].items()}
        assert neighbors == {virtual_sonic.port_of(wire): far for wire, far in wires.items()}
        assert set(tables["PORT"]) == set(neighbors)
        text = (folder / name / "frr.conf").read_text()
        for port in re.findall(r"^ neighbor (Ethernet\d+) interface remote-as", text, re.MULTILINE):
            assert neighbors[port].startswith(("spine", "leaf"))
        assert len(re.findall(r"interface remote-as", text)) == 2


def test_twelve_cables_of_a_leaf_keep_their_order(tmp_path):
    folder, data = exported(tmp_path, "leaf=sonic-vs")
    ends = {tuple(link["endpoints"]) for link in data["topology"]["links"]}
    assert {("leaf-01:eth11", "spine-01:Ethernet0"), ("leaf-01:eth12", "spine-02:Ethernet0")} <= ends
    tables = json.loads((folder / "leaf-01" / "config_db.json").read_text())
    assert [int(p.removeprefix("Ethernet")) for p in tables["PORT"]] == list(range(0, 48, 4))


def test_lanes_are_those_of_the_virtual_switch_and_used_once(tmp_path):
    folder, _ = exported(tmp_path, "sonic-vm")
    ports = json.loads((folder / "leaf-01" / "config_db.json").read_text())["PORT"]
    assert [ports[p]["lanes"] for p in ("Ethernet0", "Ethernet16", "Ethernet24")] == [
        "25,26,27,28",
        "45,46,47,48",
        "1,2,3,4",
    ]
    from fabric.hardware.profiles import switch_profile

    lanes = [lane for cage in switch_profile("sonic-vs").cages.values() for lane in cage.lanes]
    assert sorted(lanes) == list(range(1, 129))


def test_a_container_keeps_its_own_identity_and_a_vm_gets_a_whole_one(tmp_path):
    folder, data = exported(tmp_path, "leaf=sonic-vs")
    container = json.loads((folder / "leaf-01" / "config_db.json").read_text())
    assert "hwsku" not in container["DEVICE_METADATA"]["localhost"]
    assert container["DEVICE_METADATA"]["localhost"]["hostname"] == "leaf-01"
    folder, data = exported(tmp_path, "leaf=sonic-vm")
    vm = json.loads((folder / "leaf-01" / "config_db.json").read_text())
    assert vm["DEVICE_METADATA"]["localhost"]["hwsku"] == "Force10-S6000"
    assert "MGMT_INTERFACE" not in vm
    assert data["topology"]["nodes"]["leaf-01"]["startup-config"] == "leaf-01/config_db.json"


def test_changing_the_kind_leaves_no_file_of_the_other_behind(tmp_path):
    exported(tmp_path, "frr")
    folder, _ = exported(tmp_path, "leaf=sonic-vs")
    assert sorted(p.name for p in (folder / "leaf-01").iterdir()) == ["config_db.json", "frr.conf"]
    assert (folder / "sonic-vs.sh").exists()
    exported(tmp_path, "frr")
    assert not (folder / "leaf-01" / "config_db.json").exists()
    assert not (folder / "sonic-vs.sh").exists()


@pytest.mark.parametrize("path", [*sorted(SCRIPTS.glob("*.sh")), SCRIPTS.parent / "node.sh"], ids=lambda p: p.name)
def test_scripts_are_shell(path):
    done = subprocess.run(["sh", "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_wire_does_not_answer_arp():
    assert 'ip link set "$wire" arp off' in (SCRIPTS / "sonic-vs.sh").read_text()
