"""What `show` prints: facts and tables, as text or as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows under a header, with a title that says what they are; `nothing` is how a None reads in text."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    nothing: str = ""


@dataclass
class Card:
    """A thing: its name, what it is, its facts in order, and its tables."""

    name: str
    kind: str
    facts: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)

    def text(self) -> str:
        """Lay the card out for a terminal; facts and tables without content are left out."""
        from fabric.cli.output import table

        blocks = [f"{self.name}: {self.kind}"]
        facts = {label: _words(value) for label, value in self.facts.items()}
        width = max((len(label) for label, value in facts.items() if value), default=0)
        blocks.append("\n".join(f"  {label:<{width}}  {value}" for label, value in facts.items() if value))
        for part in self.tables:
            if part.rows:
                body = table(part.header, [[_words(cell, part.nothing) for cell in row] for row in part.rows])
                blocks.append(f"{part.title} ({len(part.rows)})\n" + "\n".join(f"  {x}" for x in body.splitlines()))
        return "\n\n".join(block for block in blocks if block)

    def to_dict(self) -> dict[str, Any]:
        """Return the card as JSON-ready data: each table is a list of objects."""
        tables = {
            part.title.replace(" ", "_"): [dict(zip(part.header, row, strict=True)) for row in part.rows]
            for part in self.tables
        }
        return {"name": self.name, "kind": self.kind, **self.facts, **tables}


def _words(value: Any, nothing: str = "") -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return nothing if value is None else str(value)
