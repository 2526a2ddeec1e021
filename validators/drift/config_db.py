"""SONiC's CONFIG_DB against a rendered `config_db.json`, table by table, row by row, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from validators.devices.answers import UnreadableError, document
from validators.drift.nos_own import is_own_field, is_own_row

Tables = dict[str, dict[str, dict[str, str]]]


def parse(text: str) -> Tables:
    """Read what `sonic-cfggen -d --print-data` printed. Raises UnreadableError."""
    data = document(text, "CONFIG_DB", "{")
    if not isinstance(data, dict) or not all(isinstance(rows, dict) for rows in data.values()):
        message = f"this is not CONFIG_DB: {text.strip()[:60]!r}"
        raise UnreadableError(message)
    return {
        table: {key: {name: _plain(value) for name, value in (row or {}).items()} for key, row in rows.items()}
        for table, rows in data.items()
    }


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True, slots=True)
class Difference:
    """One row or field: `wanted` or `found` is empty when it is absent there."""

    table: str
    key: str
    field: str
    wanted: str
    found: str

    @property
    def place(self) -> str:
        """Where, in CONFIG_DB's words."""
        return f"{self.table}|{self.key}" + (f" {self.field}" if self.field else "")

    @property
    def text(self) -> str:
        """What differs, in words."""
        if not self.field:
            return "is missing" if self.wanted else "is there, and was not rendered"
        if not self.wanted:
            return f"is {self.found}, and was not rendered"
        return f"is {self.found or 'not set'}, rendered was {self.wanted}"


def differences(rendered: Tables, seen: Tables) -> list[Difference]:
    """Return what differs in the tables that were rendered; others are not ours, nor is what SONiC adds by itself."""
    found: list[Difference] = []
    for table, rows in rendered.items():
        have = seen.get(table, {})
        for key, row in rows.items():
            if key not in have:
                found.append(Difference(table, key, "", "row", ""))
            else:
                found += _fields(table, key, row, have[key])
        added = (key for key in have if key not in rows and not is_own_row(table, key))
        found += [Difference(table, key, "", "", "row") for key in added]
    return found


def _fields(table: str, key: str, row: dict[str, str], have: dict[str, str]) -> list[Difference]:
    names = [*row, *(name for name in have if name not in row and not is_own_field(table, name))]
    pairs = [(name, row.get(name, ""), have.get(name, "")) for name in names]
    return [Difference(table, key, name, wanted, found) for name, wanted, found in pairs if wanted != found]
