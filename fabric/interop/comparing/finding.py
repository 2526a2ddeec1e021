"""What a comparison says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# kinds of finding, most telling first
PATTERN, QUALITY, RENAMED, SWAPPED, MOVED, MISSING, EXTRA, SPEED, NOTE = (
    "pattern",
    "quality",
    "renamed",
    "swapped",
    "moved",
    "missing",
    "extra",
    "speed",
    "note",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say: a sentence, how many cables it is about, and each of them.

    `differs` is false when it is only worth knowing (a consistent rename, a network that the map leaves out).
    """

    kind: str
    text: str
    cables: int = 0
    rows: tuple[str, ...] = ()
    differs: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome: counts, and findings in the order a person wants them."""

    site: str
    source: str
    form: str
    fabrics: tuple[str, ...]
    planned: int
    given: int
    equal: int
    findings: tuple[Finding, ...]

    @property
    def same(self) -> bool:
        """Whether the map and the plan are the same cabling."""
        return not any(finding.differs for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON-ready data."""
        return {"same": self.same, **asdict(self)}

    def text(self, limit: int = 10) -> str:
        """Say it in words; at most `limit` rows under each finding, 0 for all."""
        where = f"{self.site} ({', '.join(self.fabrics) or 'no fabric'})"
        counts = f"{self.planned} cables planned, {self.given} in the map, {self.equal} the same"
        lines = [f"{'same' if self.same else 'differs'}: {where} against {self.source} ({self.form}): {counts}"]
        for finding in self.findings:
            lines.append(f"- {finding.text}")
            shown = finding.rows if limit == 0 else finding.rows[:limit]
            lines += [f"    {row}" for row in shown]
            if len(finding.rows) > len(shown):
                lines.append(f"    ... and {len(finding.rows) - len(shown)} more (--all shows them)")
        return "\n".join(lines)


def plural(count: int, word: str, many: str = "") -> str:
    """`1 cable`, `2 cables`, `1 leaf`, `4 leaves`."""
    return f"{count} {word}" if count == 1 else f"{count} {many or word + 's'}"


def names(devices: list[str], limit: int = 4) -> str:
    """A few names in a sentence: `a, b and 3 more`."""
    if len(devices) <= limit:
        return ", ".join(devices)
    return f"{', '.join(devices[:limit])} and {len(devices) - limit} more"
