"""CONFIG_DB as JSON text: tables by name, rows in natural order, the same bytes every time.

Written out here since the standard encoder loses its C speed as soon as it indents: a site has 100,000 fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quote

from fabric.hardware.ranges import natural_key

# a field is a string, or a list of strings where SONiC's model has a leaf-list
Row = Mapping[str, "str | list[str]"]
Table = dict[str, Row]
Tables = dict[str, Table]

# filled port by port, in the order of the switch's ports, which is the natural one
_IN_ORDER = frozenset(
    {"BREAKOUT_CFG", "BUFFER_PG", "BUFFER_QUEUE", "INTERFACE", "PFC_WD", "PORT", "PORT_QOS_MAP", "QUEUE"}
)

# texts of rows that many ports share as one object; the row is kept, so that its id stays its own
_texts: dict[int, tuple[Row, str]] = {}
_MOST_TEXTS = 4096


def config_db_text(tables: Tables) -> str:
    """Return the file, indented as SONiC writes it itself. Empty tables are left out: patches refuse them."""
    parts = []
    for name in sorted(tables):
        table = tables[name]
        if table:
            keys = table if name in _IN_ORDER else sorted(table, key=natural_key)
            rows = ",\n".join([f"        {quote(key)}: {_row(table[key])}" for key in keys])
            parts.append(f"    {quote(name)}: {{\n{rows}\n    }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def share(row: Row) -> Row:
    """Remember the text of a row that will be used for many ports; returns the row."""
    if len(_texts) >= _MOST_TEXTS:
        _texts.clear()
    _texts[id(row)] = (row, _text(row))
    return row


def _row(row: Row) -> str:
    known = _texts.get(id(row))
    return known[1] if known else _text(row)


def _text(row: Row) -> str:
    if not row:
        return "{}"
    fields = [
        f"            {quote(field)}: {quote(value) if isinstance(value, str) else _list(value)}"
        for field, value in row.items()
    ]
    return "{\n" + ",\n".join(fields) + "\n        }"


def _list(value: list[str]) -> str:
    return "[\n" + ",\n".join(f"                {quote(item)}" for item in value) + "\n            ]"
