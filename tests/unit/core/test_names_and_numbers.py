"""What must be unique over the whole site, and what a slip of the finger must not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.build import load_plan, plan_site
from fabric.inventory.scaffold import Scaffold, scaffold
from fabric.problem import InputError
from fabric.summary import as_text, summarise
from tests.conftest import run_cli

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("edge: {asn: 64999", "edge: {asn: 65101", "pools.asn"),
        ("edge: {asn: 64999", "edge: {asn: 65534", "pools.asn"),
        ("    spine:\n      model", "    spine:\n      asn: 65102\n      model", "pools.asn"),
        ("  gw: {count", "  storage: {count", "gateway.group"),
        ("  compute:\n    count", "  gw:\n    digits: 2\n    count", "inventory.name-twice"),
        ("prefix: fe", "prefix: be", "inventory.name-twice"),
        ("8x cx7-1x400g", "0x cx7-1x400g", "inventory.name"),
        ("8x cx7-1x400g", "1000000x cx7-1x400g", "inventory.name"),
        ("attach: border-leaf, idle", "attach: border-leaf, health_interval: 0s, idle", "inventory.greater-than-equal"),
        ("internet: [gw-01, gw-02]", "internet: []", "inventory.too-short"),
        ("internet: [gw-01, gw-02]", "internet: [gw-01, gw-01]", "gateway.group"),
        ("ports: 33-64", "ports: 33-99999999999", "inventory.value"),
        ("compute-[001-004]", "compute-[1-99999999999]", "inventory.value"),
    ],
)
def test_refused_with_a_line(tmp_path: Path, old: str, new: str, rule: str) -> None:
    text = "".join(scaffold(Scaffold("x", "xoc-64")).values())
    assert old in text
    (tmp_path / "site.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        plan_site(tmp_path)
    match = [p for p in caught.value.problems if p.rule == rule]
    assert match, "\n".join(map(str, caught.value.problems))
    assert match[0].line


def test_new_takes_the_size_of_every_shipped_site_of_the_reference_design(tmp_path: Path) -> None:
    done = run_cli("new", "paris", "--size", "xoc-64-rail", "--out", str(tmp_path / "paris"))
    assert done.returncode == 0, done.stderr
    assert load_plan(tmp_path / "paris").fabrics["backend"].placement == "rail-optimised"
    done = run_cli(
        "new", "rome", "--size", "xoc-64-rail", "--placement", "single-homed", "--out", str(tmp_path / "rome")
    )
    assert done.returncode == 2
    assert "say --size xoc-64 for --placement single-homed" in done.stderr
    assert "xoc-1024-rail" in run_cli("--help").stdout


def test_a_plan_says_what_kind_of_port_it_counts() -> None:
    text = as_text(summarise(load_plan("xoc-64")))
    assert "ports used  ports free" in text
    assert "ports are logical: a cage split 2x400G counts as two" in text
