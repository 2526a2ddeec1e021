"""What a rule is: a class whose docstring is its page in the manual, registered by being there.

A docstring has a first line (what must hold), then paragraphs that begin with `Why:` and `Fix:`, and optionally
`Source:`. A class without an id or without these is refused when Python reads it, so that the manual cannot rot.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from fabric.problem import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.facts import Facts

_RULES: dict[str, type[Rule]] = {}


class Rule(ABC):
    """Base of every rule. `check` yields what is wrong; it never prints and never raises for a bad file."""

    id: ClassVar[str] = ""
    severity: ClassVar[Severity] = Severity.ERROR
    file: ClassVar[str] = ""
    title: ClassVar[str] = ""
    why: ClassVar[str] = ""
    fix: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        title, parts = _page(inspect.cleandoc(cls.__doc__ or ""))
        missing = [
            name
            for name, there in (("id", "." in cls.id), ("Why:", parts.get("Why")), ("Fix:", parts.get("Fix")))
            if not there
        ]
        if missing or not title:
            lacks = ", ".join(missing) or "a first line"
            message = (
                f"rule {cls.__name__} needs a dotted id and a docstring with a first line, Why: and Fix: ({lacks})"
            )
            raise TypeError(message)
        if cls.id in _RULES and _RULES[cls.id].__qualname__ != cls.__qualname__:
            message = f"rule id {cls.id} is taken by {_RULES[cls.id].__name__}"
            raise TypeError(message)
        cls.title, cls.why, cls.fix, cls.source = title, parts["Why"], parts["Fix"], parts.get("Source", "")
        _RULES[cls.id] = cls

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.plan = facts.plan
        self.rendered = facts.rendered

    @abstractmethod
    def check(self) -> Iterator[Problem]:
        """Yield every finding."""

    def finding(
        self,
        subject: str,
        text: str,
        *,
        device: str = "",
        file: str = "",
        line: int = 0,
        keys: tuple[str, ...] = (),
        fix: str = "",
    ) -> Problem:
        """Build a finding; with `keys` (table, row, field) the line of a JSON file is looked up."""
        name = file or self.file
        if device and keys and not line:
            line = self.rendered.line_of(device, name, *keys)
        path = self.rendered.path(device, name) if device and name else ""
        return Problem(self.id, subject, text, fix or self.fix, path, line, ".".join(keys), self.severity)


def _page(doc: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its first line and its named paragraphs."""
    title, _, body = doc.partition("\n")
    parts: dict[str, str] = {}
    for paragraph in body.split("\n"):
        name, colon, rest = paragraph.partition(":")
        if colon and name in {"Why", "Fix", "Source"}:
            parts[name] = rest.strip()
        elif parts and paragraph.strip():
            last = next(reversed(parts))
            parts[last] = f"{parts[last]} {paragraph.strip()}"
    return title.strip(), parts


def all_rules() -> dict[str, type[Rule]]:
    """Return every rule under `fabric.analysis.rules` by id, in order of id."""
    from fabric.analysis import rules

    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"{rules.__name__}.{module.name}")
    return {rule_id: _RULES[rule_id] for rule_id in sorted(_RULES)}
