"""The reference page of the inventory is made from the schema, whole, and current."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabric.inventory.reference import reference
from fabric.inventory.schema import inventory_schema
from tests.conftest import run_cli

pytestmark = pytest.mark.unit


def test_the_page_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "inventory.md"
    assert page.read_text() == reference(), "run: python -m fabric.inventory.reference > docs/inventory.md"


def test_every_key_of_every_object_has_a_line() -> None:
    text = reference()
    schema = inventory_schema()
    for name, body in (("The top", schema), *schema["$defs"].items()):
        section = text.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert section, name
        missing = [key for key in body["properties"] if f"`{key}`" not in section]
        assert missing == [], name


def test_defaults_are_as_a_person_writes_them() -> None:
    text = reference()
    assert "| `watchdog` | such as `200ms`, `2s` | `200ms` |" in text
    assert "| `leaf_asn` | such as `65101-65533` or [Range](#range) | `65101-65533` |" in text
    assert "| `min` | such as `128KiB` | `128KiB` |" in text


def test_new_names_the_schema(tmp_path: Path) -> None:
    done = run_cli("new", "berlin", "--size", "xoc-64", "--out", str(tmp_path / "berlin"))
    assert f"kvfabric schema > {tmp_path}/berlin/site.schema.json" in done.stderr
    assert "# yaml-language-server: $schema=site.schema.json" in done.stderr
    assert len(done.stdout.splitlines()) == 2
