"""Plans that the render tests share: they are read only, so each is made once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fabric.build import load_plan
from fabric.render.registry import render_site

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

# acme and globex on one leaf, their shared storage tenant on the other, one NIC port that belongs to nobody
PEERS_APART = """
site: apart
profile: distributed
fabrics:
  fabric:
    carries: [backend, frontend, storage]
    links: numbered
    leaf: {name: leaf, model: celestica-ds5000, count: 2, down: {ports: 1-2, breakout: 2x400G}, up: {ports: 33-34, breakout: 1x800G}}
    spine: {name: spine, model: celestica-ds5000, count: 2, down: {ports: 1-64, breakout: 1x800G}}
servers:
  compute: {count: 1, nics: {be: {nic: 1x cx7-1x400g, fabric: fabric, placement: alternating}}}
  other: {count: 1, nics: {be: {nic: 2x cx7-1x400g, fabric: fabric, placement: alternating}}}
  idle: {count: 1, nics: {be: {nic: 1x cx7-1x400g, fabric: fabric, placement: alternating}}}
tenants:
  acme: {servers: [compute-001], subnets: {default: 10.1.0.0/24}, peers: [storage]}
  globex: {servers: ["other-001:be0"], subnets: {default: 10.2.0.0/24}, peers: [storage]}
  storage: {servers: ["other-001:be1"], subnets: {default: 10.250.0.0/24}, service: true}
"""


@pytest.fixture(scope="session")
def lab(lab_plan: Plan) -> Plan:
    return lab_plan


@pytest.fixture(scope="session")
def minimal() -> Plan:
    return load_plan("minimal")


@pytest.fixture(scope="session")
def peers_apart(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder: Path = tmp_path_factory.mktemp("apart")
    (folder / "site.yaml").write_text(PEERS_APART)
    return load_plan(str(folder))


@pytest.fixture(scope="session")
def config_db() -> Any:
    """Return a function: (plan, switch) -> its config_db.json as data."""
    known: dict[tuple[int, str], dict[str, Any]] = {}

    def read(plan: Plan, device: str) -> dict[str, Any]:
        key = (id(plan), device)
        if key not in known:
            files = dict(render_site(plan, [device]))[device]
            known[key] = json.loads(files["config_db.json"])
        return known[key]

    return read
