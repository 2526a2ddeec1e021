"""The exported containerlab folder: names, ports, files, and input that is refused."""

from __future__ import annotations

import pytest
import yaml

from fabric.build import load_plan
from fabric.problem import InputError
from labs import slice as slicing
from labs.containerlab import export
from labs.containerlab.kinds import Settings, parse_images, parse_kinds

pytestmark = pytest.mark.unit


def exported(tmp_path, site="lab", counts=None, **settings):
    plan = load_plan(site)
    lab = slicing.make(plan, plan.site, counts or {})
    done = export.write(plan, lab, tmp_path / "lab.d", Settings(**settings))
    return plan, lab, done, yaml.safe_load(done.topology.read_text())


def test_every_node_and_link_of_the_lab_is_there_under_the_plans_names(tmp_path):
    _, lab, done, data = exported(tmp_path)
    assert (data["name"], data["prefix"]) == ("lab", "")
    assert list(data["topology"]["nodes"]) == [node.name for node in lab.nodes]
    ends = [tuple(link["endpoints"]) for link in data["topology"]["links"]]
    assert ends == [tuple(f"{e.node}:{e.interface}" for e in link.ends()) for link in lab.links]
    assert ("leaf-01:Ethernet256", "spine-01:Ethernet0") in ends
    assert {link["mtu"] for link in data["topology"]["links"]} == {9100, 1500}
    assert (done.nodes, done.links) == (len(lab.nodes), len(lab.links))


def test_nodes_have_the_very_files_that_render_wrote(tmp_path):
    from fabric.render.registry import render_site

    plan, _, done, data = exported(tmp_path)
    compared = 0
    for device, files in render_site(plan, target="frr"):
        for name, text in files.items():
            assert (done.folder / device / name).read_text() == text
            compared += 1
    assert compared > 30
    assert data["topology"]["nodes"]["leaf-01"]["binds"] == ["leaf-01:/etc/kvfabric:ro"]
    for bind in [b for node in data["topology"]["nodes"].values() for b in node["binds"]]:
        assert (done.folder / bind.split(":")[0]).is_dir()
    for bind in data["topology"]["kinds"]["linux"]["binds"]:
        assert (done.folder / bind.split(":")[0]).is_file()


def test_ports_without_a_far_end_are_still_named_and_have_no_rdma(tmp_path):
    _, lab, _, data = exported(tmp_path, counts={"leaves": 1, "spines": 1, "gateways": 1, "servers": 1})
    node = data["topology"]["nodes"]["compute-001"]
    assert node["env"] == {"KV_PORTS": "be0-port0 be1-port0 fe-p0 fe-p1", "KV_RDMA": "be0-port0 be1-port0"}
    ends = {end for link in data["topology"]["links"] for end in link["endpoints"]}
    assert "compute-001:fe-p1" not in ends
    assert "fe-p1" in lab.node("compute-001").dark


def test_ports_are_in_natural_order_past_ten_uplinks(tmp_path):
    _, _, _, data = exported(tmp_path, "xoc-256", {"leaves": 1, "servers": 0})
    ports = next(n for n in data["topology"]["nodes"].values() if n["group"] == "leaf")["env"]["KV_PORTS"].split()
    numbers = [int(port.removeprefix("Ethernet")) for port in ports]
    assert len(numbers) > 12
    assert numbers == sorted(numbers)


def test_management_addresses_are_the_plans_or_left_to_containerlab(tmp_path):
    plan, _, _, data = exported(tmp_path)
    assert data["mgmt"] == {"network": "lab-mgmt", "ipv4-subnet": "172.30.0.0/21", "ipv4-gw": "172.30.7.254"}
    nodes = data["topology"]["nodes"]
    assert nodes["leaf-01"]["mgmt-ipv4"] == plan.switches["leaf-01"].management.split("/")[0]
    assert "mgmt-ipv4" not in nodes["edge-01"]
    _, _, _, other = exported(tmp_path, management="containerlab")
    assert "mgmt" not in other
    assert all("mgmt-ipv4" not in node for node in other["topology"]["nodes"].values())


def test_kinds_and_images_are_settings():
    assert parse_kinds(("sonic-vs", "spine=frr")) == {"spine": "linux", "leaf": "sonic-vs", "border-leaf": "sonic-vs"}
    assert parse_images(("frr=a/b:1",)) == {"linux": "a/b:1"}
    assert Settings(images={"linux": "a/b:1"}).image_of("linux") == "a/b:1"


@pytest.mark.parametrize("text", ["eos", "server=frr", "=sonic", "leaf="])
def test_a_kind_that_is_none_is_refused_with_what_to_write(text):
    with pytest.raises(InputError) as caught:
        parse_kinds((text,))
    assert "--kind leaf=sonic-vs" in str(caught.value)


@pytest.mark.parametrize("text", ["frr", "frr=", "eos=x"])
def test_an_image_that_is_none_is_refused(text):
    with pytest.raises(InputError):
        parse_images((text,))


def test_exporting_twice_gives_the_same_bytes(tmp_path):
    _, _, done, _ = exported(tmp_path)
    first = {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()}
    exported(tmp_path)
    assert {path: path.read_bytes() for path in done.folder.rglob("*") if path.is_file()} == first


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "lab.d").mkdir()
    (tmp_path / "lab.d" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError) as caught:
        exported(tmp_path)
    assert "did not write" in str(caught.value)
    assert [path.name for path in (tmp_path / "lab.d").iterdir()] == ["thesis.txt"]


def test_the_image_has_the_packages_of_the_embedded_lab_and_the_readme_four_lines(tmp_path):
    from labs.uml import root

    _, _, done, _ = exported(tmp_path)
    recipe = (done.folder / "Dockerfile").read_text()
    assert {"frr", "nftables", "rdma-core", "perftest"} <= set(root.packages())
    assert all(f"    {package} \\\n" in recipe for package in root.packages())
    assert recipe.startswith("#")
    assert recipe.rstrip().endswith('CMD ["sleep", "infinity"]')
    assert len((done.folder / "README.md").read_text().splitlines()) == 4
    assert "docker exec -it spine-01 vtysh" in (done.folder / "README.md").read_text()
    _, _, done, _ = exported(tmp_path, prefix="clab")
    assert "docker exec -it clab-lab-spine-01 vtysh" in (done.folder / "README.md").read_text()


def test_nothing_in_the_folder_needs_kvfabric_to_run(tmp_path):
    _, _, done, data = exported(tmp_path)
    commands = " ".join([*data["topology"]["kinds"]["linux"]["exec"], data["topology"]["kinds"]["linux"]["entrypoint"]])
    assert commands == "sh /kvfabric/node.sh up sh /kvfabric/node.sh hold"
    text = (done.folder / "node.sh").read_text()
    assert not [line for line in text.splitlines() if "python" in line and not line.startswith("#")]
    for path in done.folder.glob("*/*"):
        assert "import labs" not in path.read_text()
        assert "import fabric" not in path.read_text()


def test_groups_are_those_that_containerlab_s_drawing_sorts_by(tmp_path):
    from labs import model
    from labs.containerlab import topology

    order = ["10", "9", "superspine", "8", "dc-gw", "7", "6", "spine", "5", "4", "leaf", "border-leaf", "3", "server"]
    assert set(topology._GROUPS) == set(topology._LEVELS) == set(model.KINDS)
    assert set(topology._GROUPS.values()) <= set(order)
    by_level = sorted(model.KINDS, key=lambda kind: (topology._LEVELS[kind], order.index(topology._GROUPS[kind])))
    places = [order.index(topology._GROUPS[kind]) for kind in by_level if kind != model.BORDER_LEAF]
    assert places == sorted(places)
    nodes = exported(tmp_path)[3]["topology"]["nodes"]
    assert (nodes["gw-01"]["group"], nodes["gw-01"]["labels"]["role"]) == ("dc-gw", "gateway")


def test_an_export_over_an_earlier_one_leaves_nothing_of_it_but_the_lab_s_own_folder(tmp_path):
    plan = load_plan("lab")
    out = tmp_path / "lab.d"
    export.write(plan, slicing.make(plan, "lab"), out)
    (out / "clab-lab").mkdir()
    (out / "mine.clab.yml").write_text("name: mine\n")
    small = slicing.make(plan, "other", {"leaves": 1, "spines": 1, "gateways": 0, "servers": 1})
    export.write(plan, small, out)
    assert sorted(path.name for path in out.glob("*.clab.yml")) == ["mine.clab.yml", "other.clab.yml"]
    assert {"clab-lab", "leaf-01", "compute-001"} <= {path.name for path in out.iterdir() if path.is_dir()}
    assert not (out / "leaf-02").exists()


def test_a_vm_with_many_cables_is_noted(tmp_path):
    plan = load_plan("lab")
    lab = slicing.make(plan, "lab")
    done = export.write(plan, lab, tmp_path / "lab.d", Settings(parse_kinds(("sonic-vm",))))
    assert [note.split()[0] for note in done.notes] == ["leaf-01"]
    assert export.write(plan, lab, tmp_path / "lab.d").notes == ()
