"""A problem is data: found anywhere, collected, and printed once at the edge.

Nothing in `fabric` prints or raises one by one for bad input. A module that can find several problems returns them
all, and whoever must stop raises `InputError` with the whole list.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(StrEnum):
    """How bad a problem is: an error stops the run, a warning is shown and counted, info is only shown."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, where it is, and what to do about it.

    `rule` is a stable dotted id (`inventory.unknown-field`, `ports.breakout`); `subject` names the object in the
    plan's own words (`be-leaf-01 E1/7`, `tenant acme`); `file` and `line` (1-based) point at what a person can
    edit, and `field` is the dotted path inside it.
    """

    rule: str
    subject: str
    text: str
    fix: str = ""
    file: str = ""
    line: int = 0
    field: str = ""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        field = f"{self.field}: " if self.field and self.field != self.subject else ""
        fix = f"\n    fix: {self.fix}" if self.fix else ""
        return f"{where}{self.severity.value}: {field}{self.subject}: {self.text} [{self.rule}]{fix}"

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as JSON-ready data."""
        data = asdict(self)
        data["severity"] = self.severity.value
        return data


class InputError(Exception):
    """What a person gave cannot be used; carries every problem found, never only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class CouldNotRunError(Exception):
    """The question could not be asked at all: a tool, a kernel feature or a right is missing."""
