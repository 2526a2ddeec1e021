"""Exported topologies against containerlab's own JSON schema, taken from its Go module."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from fabric.build import load_plan
from labs import slice as slicing
from labs.containerlab import binary, export
from labs.containerlab.kinds import Settings, parse_kinds
from labs.containerlab.topology import topology
from tests.conftest import SHIPPED

pytestmark = pytest.mark.external

_MODULE = "github.com/srl-labs/containerlab"


@pytest.fixture(scope="module")
def validator():
    """containerlab's schema as a validator; skips, with the reason, where it cannot be had."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install kvfabric[external]")
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).is_file():
        pytest.skip("Go is not installed, and the schema is part of a Go module")
    command = [go, "mod", "download", "-json", f"{_MODULE}@v{binary.VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd="/")
    if done.returncode:
        pytest.skip(f"the module cannot be downloaded: {(done.stdout + done.stderr).strip()[-300:]}")
    text = (Path(json.loads(done.stdout)["Dir"]) / "schemas" / "clab.schema.json").read_text()
    # JavaScript's character classes, of which Python's patterns know nothing: in a zone index of an address
    schema = json.loads(text.replace(r"[\\p{N}\\p{L}]", r"\\w"))
    return jsonschema.validators.validator_for(schema)(schema)


def made(site="lab", counts=None, kind="frr", **settings):
    plan = load_plan(site)
    data = topology(plan, slicing.make(plan, plan.site, counts or {}), Settings(parse_kinds((kind,)), **settings))
    # what containerlab reads is the text
    return yaml.safe_load(yaml.safe_dump(data, sort_keys=False))


def complaints(validator, data):
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in validator.iter_errors(data)]


@pytest.mark.parametrize("site", SHIPPED)
def test_every_shipped_site_exported_whole_is_valid(validator, site):
    data = made(site)
    assert complaints(validator, data) == []
    assert len(data["topology"]["links"]) >= 24


@pytest.mark.parametrize("kind", ["frr", "sonic-vs", "sonic-vm"])
@pytest.mark.parametrize("management", ["plan", "containerlab"])
def test_every_kind_is_valid(validator, kind, management):
    assert complaints(validator, made(kind=kind, management=management, prefix="clab")) == []


BROKEN = {
    "an image policy that is none": lambda d: d["topology"]["kinds"]["linux"].update({"image-pull-policy": "maybe"}),
    "a restart policy as YAML's false": lambda d: d["topology"]["kinds"]["linux"].update({"restart-policy": False}),
    "an endpoint without an interface": lambda d: d["topology"]["links"][0]["endpoints"].__setitem__(0, "leaf-01"),
    "a link with one end": lambda d: d["topology"]["links"][0]["endpoints"].pop(),
    "a kind that is none": lambda d: d["topology"]["nodes"]["leaf-01"].update(kind="toaster"),
    "an address that is none": lambda d: d["topology"]["nodes"]["leaf-01"].update({"mgmt-ipv4": "172.30.0.3/21"}),
    "no name": lambda d: d.pop("name"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_schema_notices(validator, what):
    data = copy.deepcopy(made())
    BROKEN[what](data)
    assert complaints(validator, data)


@pytest.fixture(scope="module")
def program():
    """The containerlab that the embedded engine built, or the host's own."""
    path = binary.cached() or shutil.which("containerlab")
    if not path:
        pytest.skip("containerlab is neither built (`kvfabric lab build --engine containerlab`) nor installed")
    return str(path)


def read_by(program, folder, site="lab", change=None, counts=None, kind="frr"):
    """Export a site and let containerlab read it as `deploy` does, strictly, which drawing needs no Docker for."""
    plan = load_plan(site)
    lab = slicing.make(plan, plan.site, counts or {})
    done = export.write(plan, lab, folder / "lab.d", Settings(parse_kinds((kind,))))
    if change:
        data = yaml.safe_load(done.topology.read_text())
        change(data)
        done.topology.write_text(yaml.safe_dump(data, sort_keys=False))
    command = [program, "graph", "--mermaid", "-t", str(done.topology)]
    # containerlab wants a home and writes beside where it runs
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=done.folder)
    drawn = list(done.folder.glob("clab-*/graph/*.mermaid"))
    return lab, said.returncode, said.stdout + said.stderr, drawn[0].read_text() if drawn else ""


@pytest.mark.parametrize(("site", "kind"), [("lab", "frr"), ("lab", "sonic-vs"), ("xoc-256", "frr")])
def test_the_real_program_reads_every_node_and_link(program, tmp_path, site, kind):
    lab, code, said, drawn = read_by(program, tmp_path, site, kind=kind)
    assert (code, "rror" in said) == (0, False), said
    assert sum("---" in line for line in drawn.splitlines()[4:]) == len(lab.links)
    assert all(node.name in drawn for node in lab.nodes)


REFUSED = {
    "a folder that is not there": lambda d: d["topology"]["nodes"]["leaf-01"].update(binds=["nowhere:/etc/kvfabric"]),
    "a key that it does not know": lambda d: d["topology"]["nodes"]["leaf-01"].update(licence="x"),
    "a kind that it does not know": lambda d: d["topology"]["nodes"]["leaf-01"].update(kind="toaster"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_real_program_refuses(program, tmp_path, what):
    _, code, said, _ = read_by(program, tmp_path, change=REFUSED[what])
    assert code != 0, said
