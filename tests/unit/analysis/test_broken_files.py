"""Spoilt files give findings, never an exception."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.analysis.check import run_rules
from fabric.analysis.rendered import Rendered
from fabric.build import load_plan
from fabric.render.registry import render_site

pytestmark = pytest.mark.unit

WORDS = ("", "x", "999999", "10.0.0.0/33", "-1", "0", "any", '"', "{", "[", "null", "3-", "a|b", "Vlan", "1.2.3")
VALUES: tuple[Any, ...] = (1, None, [], ["a"], {}, True, "", 1.5, "x")
PLAN = load_plan("lab")
FILES = (dict(render_site(PLAN)), dict(render_site(PLAN, target="frr")))


def spoil_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines() or [""]
    at = rng.randrange(len(lines))
    how = rng.random()
    if how < 0.3:
        del lines[at]
    elif how < 0.5:
        lines[at] = rng.choice(lines)
    else:
        words = lines[at].split(" ")
        words[rng.randrange(len(words))] = rng.choice(WORDS)
        lines[at] = " ".join(words)
    return "\n".join(lines)


def spoil_table(rng: random.Random, text: str) -> str:
    db = json.loads(text)
    table = db[rng.choice(list(db))]
    row = table[rng.choice(list(table))]
    if rng.random() < 0.3:
        table[rng.choice(["", "a|b|c", "|", "Ethernet0|", "Vlan9|10.0.0.1"])] = {}
    elif row:
        row[rng.choice(list(row))] = rng.choice(VALUES)
    return json.dumps(db, indent=4)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32))
def test_no_exception_whatever_the_files_hold(seed: int) -> None:
    rng = random.Random(seed)
    files = {device: dict(names) for device, names in rng.choice(FILES).items()}
    device = rng.choice(list(files))
    if rng.random() < 0.5 and "config_db.json" in files[device]:
        files[device]["config_db.json"] = spoil_table(rng, files[device]["config_db.json"])
    for _ in range(rng.randint(1, 3)):
        device = rng.choice(list(files))
        name = rng.choice(list(files[device]))
        files[device][name] = spoil_line(rng, files[device][name])
    assert isinstance(run_rules(PLAN, Rendered(files)), list)


@pytest.mark.parametrize("text", ["", "[]", "{", '{\n    "PORT": 5\n}', '{"PORT": {"Ethernet0": {"speed": 4}}}'])
def test_unreadable_config_db_is_a_finding(text: str) -> None:
    files = {device: dict(names) for device, names in FILES[0].items()}
    files["leaf-01"]["config_db.json"] = text
    found = run_rules(PLAN, Rendered(files), ["files"])
    assert any(p.subject.startswith("leaf-01") for p in found)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("garbage here", "is no statement of FRR at the top of a file"),
        ("<<<<<<< HEAD", "is no statement of FRR at the top of a file"),
        ("neighbor FABRIC peer-group", "is no statement of FRR at the top of a file"),
        (" vni 5", "is indented, and no section is open above it"),
        ("route-map X permit 10\n mach ip address 1", "is no statement of FRR in a route-map"),
        ("vrf Vrf-x\n networks", "is no statement of FRR in a vrf"),
        ("bfd\n profile x\n  recieve-interval 300", "is no statement of FRR in bfd"),
        ("router bgp 65101\n maximum 64", "is no statement of FRR in router bgp"),
        ("router bgp 65101\n address-family ipv4 unicast\n  activate", "is no statement of FRR in an address family"),
    ],
)
def test_a_stray_line_of_frr_conf_is_found_with_its_line(line: str, said: str) -> None:
    files = {device: dict(names) for device, names in FILES[0].items()}
    lines = files["leaf-01"]["frr.conf"].splitlines()
    at = lines.index("log syslog informational")
    files["leaf-01"]["frr.conf"] = "\n".join([*lines[:at], line, *lines[at:]])
    (found,) = run_rules(PLAN, Rendered(files), ["files.statements"])
    assert said in found.text
    assert (found.line, found.file) == (at + 1 + line.count("\n"), "leaf-01/frr.conf")
    assert found.fix


def test_statements_of_other_daemons_and_notes_are_no_strays() -> None:
    more = "! a note\n# another\nrouter ospf\n area 0 authentication\nexit\nkey chain x\n key 1\n  key-string a\nip forwarding\n"
    files = {device: dict(names) for device, names in FILES[0].items()}
    files["leaf-01"]["frr.conf"] = more + files["leaf-01"]["frr.conf"]
    assert run_rules(PLAN, Rendered(files), ["files.statements"]) == []


def test_a_folder_of_files_gives_the_same_as_memory(tmp_path: Any) -> None:
    from fabric.analysis.check import check_site
    from fabric.render.writer import write_tree

    write_tree(tmp_path / "out", FILES[0].items())
    report = check_site(PLAN, folder=tmp_path / "out")
    assert report.problems == ()
    assert report.devices == len(FILES[0])


@pytest.mark.parametrize("inside", ["", "stranger"])
def test_a_folder_of_no_device_is_nothing_checked(tmp_path: Any, inside: str) -> None:
    from fabric.analysis.check import check_site

    (tmp_path / inside).mkdir(exist_ok=True)
    report = check_site(PLAN, folder=tmp_path)
    assert (report.devices, report.rules, report.files) == (0, (), 0)
