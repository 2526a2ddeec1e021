"""A small site in which only the exposures change from test to test."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from fabric.build import plan_site
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fabric.plan import Plan

SITE = """
site: small
profile: distributed
fabrics:
  fabric:
    carries: [backend, frontend]
    leaf: {name: leaf, model: celestica-ds5000, count: 2, down: [{ports: 1-2, breakout: 2x400G}, {ports: "9-15:2", breakout: 4x200G}], up: {ports: 33-34, breakout: 1x800G}}
    spine: {name: spine, model: celestica-ds5000, count: 2, down: {ports: 1-64, breakout: 1x800G}}
servers:
  compute: {count: 3, nics: {fe: {nic: bf3-2x200g, fabric: fabric, rdma: false}}}
gateways:
  gw: {count: 2, nic: cx7-2x200g, attach: leaf}
groups: {internet: [gw-01, gw-02], partners: [gw-02, gw-01]}
edge: {asn: 64999}
tenants:
"""

Expose = "Callable[..., tuple[Plan | None, list[Problem]]]"


@pytest.fixture
def expose(tmp_path: Path) -> Callable[..., tuple[Plan | None, list[Problem]]]:
    """Return a function: exposures of tenant acme (and globex) as YAML lines -> plan (None on errors) and problems."""

    def build(acme: str, globex: str = "") -> tuple[Plan | None, list[Problem]]:
        text = SITE
        for name, servers, lines in (("acme", "compute-[001-002]", acme), ("globex", "compute-003", globex)):
            text += f"  {name}:\n    servers: {servers}\n    subnets: {{default: 10.1.0.0/24}}\n"
            if lines.strip():
                text += "    expose:\n" + textwrap.indent(textwrap.dedent(lines).strip(), "      ") + "\n"
        (tmp_path / "site.yaml").write_text(text)
        try:
            planned = plan_site(str(tmp_path))
        except InputError as error:
            return None, list(error.problems)
        return planned.plan, list(planned.problems)

    return build
