"""The schema that `kvfabric schema` prints, judged by jsonschema: it takes every shipped inventory, file by file, and
refuses what the loader refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from fabric.inventory.scaffold import Scaffold, scaffold
from fabric.inventory.schema import inventory_schema
from fabric.resources import data_folder

jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema (the external extra)")

pytestmark = pytest.mark.external
FILES = sorted(data_folder("inventories").glob("*/*.yaml"))


def _mistakes(text: str) -> list[Any]:
    validator = jsonschema.Draft202012Validator(json.loads(json.dumps(inventory_schema())))
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(inventory_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_shipped_file_is_taken(path: Any) -> None:
    assert _mistakes(path.read_text()) == []


@pytest.mark.parametrize("management", [False, True])
def test_a_new_site_is_taken(management: bool) -> None:
    files = scaffold(Scaffold("fresh", "xoc-64", management=management))
    assert [_mistakes(text) for text in files.values()] == [[], []]


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("gateways: {gw: {count: 2, idle_timeout: 10m}}", True),
        ("gateways: {gw: {count: 2, idle_timeout: 90}}", True),
        ("gateways: {gw: {count: 2, idle_timeout: soon}}", False),
        ("gateways: {gw: {cuont: 2}}", False),
        ("pools: {leaf_asn: 65101-65200, management: 10.0.0.0/16}", True),
        ("pools: {leaf_asn: {first: 65101, last: 65200}}", True),
        ("pools: {leaf_asn: many}", False),
        ("roce: {watchdog: 200ms, ecn: {min: 128KiB}}", True),
        ("roce: {ecn: {min: 128 apples}}", False),
        ("cables: {leaf-spine: 30m, media: {dac: 2m}}", True),
        ("cables: {leaf-spine: far}", False),
        ("racks: {a1: {devices: compute-001}}", True),
        ("racks: {a1: {devices: 7}}", False),
        ("tenants: {acme: {servers: compute-001, subnets: {default: 10.1.0.0/24}}}", True),
        ("tenants: {acme: {servers: compute-001, expose: [{mode: static}]}}", False),
    ],
)
def test_ways_to_write_a_value(text: str, good: bool) -> None:
    assert (_mistakes(text) == []) is good
