"""Loading: every problem at once, with file, line, field and fix; nothing ever ends in a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.build import plan_site
from fabric.inventory.load import find_site, load_inventory
from fabric.inventory.schema import inventory_schema
from fabric.problem import InputError, Problem

pytestmark = pytest.mark.unit

GOOD = """\
site: test
profile: minimal
fabrics:
  frontend:
    carries: [frontend, storage]
    leaf:
      model: celestica-ds5000
      down: {ports: "1-63:2", breakout: 4x200G}
      up: {ports: 2-4, breakout: 1x800G}
    spine:
      model: celestica-ds5000
      count: 1
      down: {ports: 1-64, breakout: 1x800G}
servers:
  compute:
    count: 4
    nics:
      fe: {nic: bf3-2x200g, fabric: frontend}
tenants:
  acme:
    servers: compute-[001-004]
    subnets: {frontend: 10.1.0.0/24}
"""


def site(tmp_path: Path, text: str) -> Path:
    (tmp_path / "site.yaml").write_text(text)
    return tmp_path


def problems(tmp_path: Path, text: str) -> tuple[Problem, ...]:
    with pytest.raises(InputError) as caught:
        plan_site(site(tmp_path, text))
    return caught.value.problems


def test_the_good_site_plans(tmp_path: Path) -> None:
    up = GOOD.replace("2-4", '"2-8:2"')
    planned = plan_site(site(tmp_path, up))
    assert len(planned.plan.switches) == 3
    assert not planned.problems


@pytest.mark.parametrize(
    ("old", "new", "rule", "line", "says"),
    [
        ("placement", "placement", "ports.zone", 9, "already used"),
        ("count: 4", "cuont: 4", "inventory.unknown-field", 16, "did you mean 'count'"),
        ("count: 4", "count: !!int ''", "inventory.value", 16, "cannot be read as the type"),
        ("count: 4", "count: " + "9" * 5000, "inventory.value", 16, "is 5000 characters long"),
        ("count: 4", "count: 0x" + "f" * 5000, "inventory.value", 16, "is 5002 characters long"),
        (
            "tenants:",
            "pools: {management: 192.0.2.0/32, management_gateway: 192.0.2.1}\ntenants:",
            "pools.gateway",
            19,
            "no host address",
        ),
        ("profile: minimal", "profile: tiny", "inventory.choice", 2, "'minimal' or 'distributed'"),
        ("bf3-2x200g", "bf9-9x900g", "hardware.nic", 18, "known models"),
        ("celestica-ds5000\n      down", "nosuch\n      down", "hardware.model", 7, "known models"),
        ("[frontend, storage]", "[backend]", "inventory.profile", 5, "distributed"),
        ("compute-[001-004]", "compute-[001-009]", "tenant.server", 21, "did you mean"),
        ("10.1.0.0/24", "10.1.0.0/29", "pools.exhausted", 22, "too small"),
        ("10.1.0.0/24", "10.1.0.1/24", "inventory.value", 22, "host bits"),
        ("10.1.0.0/24", "172.30.8.0/24", "tenant.overlap", 22, "loopbacks"),
        ("{frontend: 10", "{backend: 10", "tenant.subnet", 22, "no fabric"),
        ("4x200G", "16x50G", "ports.breakout", 8, "it can be"),
        ('"1-63:2"', '"1-99"', "ports.cage", 8, "no such cage"),
        ('"1-63:2"', '"9-1"', "inventory.value", 8, "backwards"),
    ],
)
def test_each_mistake_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, rule: str, line: int, says: str
) -> None:
    text = GOOD if old == "placement" else GOOD.replace("2-4", '"2-8:2"')
    found = problems(tmp_path, text.replace(old, new))
    match = [p for p in found if p.rule == rule and p.line == line]
    assert match, "\n".join(map(str, found))
    assert says in f"{match[0].text} {match[0].fix}"
    assert match[0].file.endswith("site.yaml")


def test_all_problems_at_once(tmp_path: Path) -> None:
    text = (
        GOOD.replace("profile: minimal", "profile: tiny")
        .replace("count: 4", "cuont: 4")
        .replace("frontend, ", "front, ")
    )
    found = problems(tmp_path, text)
    assert {p.line for p in found} >= {2, 5, 16}


def test_files_of_a_folder_are_put_together(tmp_path: Path) -> None:
    head, tail = GOOD.replace("2-4", '"2-8:2"').split("tenants:")
    (tmp_path / "site.yaml").write_text(head)
    (tmp_path / "tenants.yaml").write_text("tenants:" + tail)
    assert "acme" in plan_site(tmp_path).plan.tenants


def test_the_same_key_in_two_files_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text("tenants:\n  acme: {servers: compute-001}\nsite: other\n")
    with pytest.raises(InputError) as caught:
        load_inventory(tmp_path)
    assert {p.subject for p in caught.value.problems} == {"tenants.acme", "site"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words",
        "- a\n- b\n",
        "a: [1, 2",
        "a: &x {b: 1}\nc: *x\n",
        "a: &a [*a]\n",
        "? [1, 2]\n: 3\n",
        "site: 2020-01-01\n",
        "site: !!python/object/apply:os.system ['true']\n",
        "a: 1\na: 2\n",
        "site: !!int x\n",
        "\t- x",
        "{" * 200,
        "site: \x00",
    ],
)
def test_what_is_not_an_inventory_is_refused_in_words(tmp_path: Path, text: str) -> None:
    found = problems(tmp_path, text)
    assert found
    assert all(p.fix for p in found), found


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_bytes(b"site: \xff\xfe\n")
    with pytest.raises(InputError, match="UTF-8"):
        load_inventory(tmp_path)


def test_an_unknown_site_suggests_a_close_one() -> None:
    with pytest.raises(InputError, match="did you mean xoc-256"):
        find_site("xoc256")


def test_schema_is_for_editors_and_knows_every_top_level_key() -> None:
    schema = inventory_schema()
    assert schema["additionalProperties"] is False
    assert {"site", "profile", "fabrics", "servers", "gateways", "tenants", "roce", "pools"} <= set(
        schema["properties"]
    )


def test_what_an_empty_file_lacks_is_said_at_its_first_line(tmp_path: Path) -> None:
    assert {(problem.file, problem.line) for problem in problems(tmp_path, "# nothing\n")} == {
        (str(tmp_path / "site.yaml"), 1)
    }


def test_what_build_wrote_is_no_inventory_and_hides_none(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("lab", "berlin"):
        for file in ("plan.json", "findings.json", "hosts.yaml"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / file).write_text("{}")
    assert find_site("lab").is_absolute(), "the shipped one"
    with pytest.raises(InputError, match="is what `kvfabric build` wrote"):
        find_site("berlin")
