"""Labs that cannot be, and what containerlab or Docker say when they refuse: one line each, with what to do."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from fabric.build import load_plan
from fabric.problem import InputError
from fabric.resources import data_folder
from labs import model
from labs import slice as slicing
from labs.containerlab import checks, export
from labs.containerlab.kinds import Settings
from labs.containerlab.trouble import explain
from tests.conftest import SHIPPED, run_cli

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def plan():
    return load_plan("lab")


@pytest.fixture(scope="module")
def lab(plan):
    return slicing.make(plan, "lab")


@pytest.mark.parametrize("site", SHIPPED)
def test_shipped_sites_have_no_problem(site):
    plan = load_plan(site)
    assert checks.problems(plan, slicing.make(plan, plan.site), Settings()) == []


def test_an_interface_name_that_linux_refuses_is_refused_and_nothing_is_written(plan, lab, tmp_path):
    link = replace(lab.links[0], a=model.End("compute-001", "backend-cluster0-port0"))
    with pytest.raises(InputError) as caught:
        export.write(plan, replace(lab, links=(link, *lab.links[1:])), tmp_path / "lab.d")
    assert "backend-cluster0-port0 is longer than 15 characters" in str(caught.value)
    assert "shorter name in the inventory" in str(caught.value)
    assert not (tmp_path / "lab.d").exists()


def test_a_long_nic_name_of_an_inventory_is_refused_by_the_verb(tmp_path):
    site = tmp_path / "long"
    shutil.copytree(data_folder("inventories") / "lab", site)
    path = site / "site.yaml"
    path.write_text(path.read_text().replace("      be: {nic: 2x", "      backend-cluster: {nic: 2x"))
    done = run_cli("lab", "export", str(site), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "15 characters" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_with_two_cables_is_refused(plan, lab):
    twice = replace(lab, links=(*lab.links, replace(lab.links[0], id="again")))
    assert any("used twice" in p.text and p.fix for p in checks.problems(plan, twice, Settings()))


@pytest.mark.parametrize(("name", "prefix"), [("my lab", ""), ("lab", "a/b"), ("-x", "")])
def test_names_that_docker_refuses(plan, lab, name, prefix):
    (problem,) = checks.problems(plan, replace(lab, name=name), Settings(prefix=prefix))
    assert problem.rule == "lab.name"


def test_a_management_network_that_is_too_small(plan, lab):
    nodes = tuple(model.Node(f"n{i}", "server") for i in range(254))
    (problem,) = checks.problems(plan, replace(lab, nodes=nodes, links=()), Settings(management="containerlab"))
    assert "room for 253 nodes, the lab has 254" in problem.text
    assert "--management plan" in problem.fix


def test_a_management_network_that_hides_a_tenant(plan, lab):
    acme = plan.tenants["acme"]
    inside = replace(acme, subnets=(replace(acme.subnets[0], prefix="172.20.0.0/16"),))
    clash = replace(plan, tenants={**plan.tenants, "acme": inside})
    (problem,) = checks.problems(clash, lab, Settings(management="containerlab"))
    assert "overlaps tenant acme's subnet 172.20.0.0/16" in problem.text
    assert checks.problems(clash, lab, Settings()) == []


SAID = {
    'time="x" level=info msg="Containerlab v0.60.0 started"\nError: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?': ("no Docker engine answers at unix:///var/run/docker.sock", "systemctl start docker"),
    "Error: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get ...": ("no rights to use Docker", "group `docker`"),
    "Error: containerlab requires sudo privileges to run": ("containerlab wants root", "sudo"),
    "Error: image kvfabric/node:latest not found locally, and image-pull-policy=Never prevents containerlab from pulling it": ("image kvfabric/node:latest is not there", "docker build -t kvfabric/node:latest"),
    "Error: Error response from daemon: pull access denied for docker-sonic-vs, repository does not exist or may require 'docker login'": ("image docker-sonic-vs can neither", "--image"),
    "Error: containers [\"leaf-01\" \"leaf-02\"] already exist. Add '--reconfigure' flag to the deploy command": ("already: leaf-01, leaf-02", "--prefix"),
    "Error: the 'lab' lab has already been deployed. Destroy the lab before deploying a lab with the same name": ("a lab called lab is running", "containerlab destroy --name lab"),
    "Error response from daemon: invalid pool request: Pool overlaps with other one on this address space": ("another Docker network", "--management"),
    "driver failed programming external connectivity on endpoint x: Bind for 0.0.0.0:8443 failed: port is already allocated": ("port 0.0.0.0:8443 is in use", "ss -ltnp"),
    "failed to listen: listen tcp4 0.0.0.0:443: bind: address already in use": ("port 0.0.0.0:443 is in use", "ss -ltnp"),
    "Error: failed to verify bind path: stat /x/leaf-01: no such file or directory": ("/x/leaf-01 is missing", "export again"),
}  # fmt: skip


@pytest.mark.parametrize("said", SAID)
def test_a_refusal_is_one_line_with_what_to_do(said):
    what, fix = SAID[said]
    line = explain(said)
    assert "\n" not in line
    assert what in line
    assert fix in line


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ('time="x" level=error msg="failed deploy: \\"gw\\" fell over"', 'failed deploy: "gw" fell over'),
        ("a\nError: something new\n\n", "something new"),
        ("", "it said nothing"),
    ],
)
def test_what_is_not_known_is_passed_on(said, line):
    assert explain(said) == line


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--slice", "leaves=99"], "there are 2 leaves"),
        (["--slice", "racks=1"], "expected KIND=NUMBER"),
        (["--slice", ","], "nothing before or after a comma"),
        (["--slice", ""], "is empty"),
        (["--slice", "servers=0"], "no lab without servers"),
        (["--kind", "leaf=frr", "--kind", "leaf=sonic-vs"], "the kind of leaf is said twice"),
        (["--kind", "=frr"], "expected KIND or ROLE=KIND"),
        (["--image", "frr=a", "--image", "frr=b"], "the image of frr is said twice"),
        (["--image", "frr=a b"], "expected KIND=IMAGE"),
        (["--name", "a" * 32], "1 to 31 lower case letters"),
        (["--name", ""], "is empty"),
        (["--prefix", "a" * 32], "choose another --prefix"),
        (["--kind", "leaf=eos"], "--kind leaf=sonic-vs"),
        (["--image", "frr"], "expected KIND=IMAGE"),
        (["--name", "my lab"], "choose another --name"),
        (["--out", "FILE"], "is a file"),
    ],
)
def test_the_verb_says_in_words_what_is_wrong(tmp_path, more, words):
    (tmp_path / "FILE").write_text("x")
    out = [] if "--out" in more else ["--out", str(tmp_path / "out")]
    done = run_cli("lab", "export", "lab", *out, *[str(tmp_path / m) if m == "FILE" else m for m in more])
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_a_site_that_is_none(tmp_path):
    done = run_cli("lab", "export", "nowhere", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_as_json_the_verb_says_what_it_wrote(tmp_path):
    done = run_cli(
        "lab", "export", "lab", "--kind", "spine=sonic-vs", "--out", str(tmp_path / "out"), "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["kinds"] == {"sonic-vs": 2, "linux": said["nodes"] - 2}
    assert said["topology"] == str(tmp_path / "out" / "lab.clab.yml")


def test_what_was_exported_keeps_its_numbers(tmp_path):
    site = tmp_path / "mine"
    shutil.copytree(data_folder("inventories") / "lab", site)
    done = run_cli("lab", "export", str(site), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "ledger" in done.stderr
    assert (site / "ledger.json").is_file()


def test_a_server_in_no_tenant_is_left_out(tmp_path):
    folder = data_folder("inventories") / "lab"
    for name in ("site.yaml", "tenants.yaml"):
        (tmp_path / name).write_text((folder / name).read_text().replace("servers: storage-001", "servers: []"))
    assert run_cli("lab", "export", str(tmp_path), "--out", str(tmp_path / "out")).returncode == 0
    assert "storage-001" not in {node.name for node in slicing.make(load_plan(tmp_path), "x").nodes}
