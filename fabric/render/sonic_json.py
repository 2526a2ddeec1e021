"""CONFIG_DB as JSON text: tables by name, rows in natural order, the same bytes every time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from fabric.hardware.ranges import natural_key

# a field is a string, or a list of strings where SONiC's model has a leaf-list
Row = Mapping[str, "str | list[str]"]
Table = dict[str, Row]
Tables = dict[str, Table]

_encode = json.JSONEncoder(ensure_ascii=True).encode


@cache
def interface_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts `Ethernet8` before `Ethernet64`; kept, since a site repeats few names often."""
    return natural_key(name)


def config_db_text(tables: Tables) -> str:
    """Return the file, indented as SONiC writes it itself. Empty tables are left out: patches refuse them."""
    parts = []
    for name in sorted(tables):
        table = tables[name]
        if table:
            rows = [f"        {_encode(key)}: {_row(table[key])}" for key in sorted(table, key=interface_key)]
            parts.append(f"    {_encode(name)}: {{\n" + ",\n".join(rows) + "\n    }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _row(row: Row) -> str:
    if not row:
        return "{}"
    fields = [f"            {_encode(field)}: {_value(value)}" for field, value in row.items()]
    return "{\n" + ",\n".join(fields) + "\n        }"


def _value(value: str | list[str]) -> str:
    if isinstance(value, str):
        return _encode(value)
    return "[\n" + ",\n".join(f"                {_encode(item)}" for item in value) + "\n            ]"
