"""An inventory while it is being imported, its notes, and the YAML it is written as."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_FORBIDDEN = re.compile(r"[^a-z0-9-]+")
_WIDTH = 110


class Flow(dict[str, Any]):
    """A mapping that is written on one line: `{ports: 1-32, breakout: 2x400G}`."""


@dataclass
class Draft:
    """What `site.yaml` and `tenants.yaml` will hold; `notes` say what was not taken over or was assumed."""

    site: dict[str, Any]
    source: str
    tenants: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a sentence once."""
        if text not in self.notes:
            self.notes.append(text)

    def files(self) -> dict[str, str]:
        """Return the inventory's files."""
        heading = [f"Imported from {self.source}.", *(f"not taken over: {note}" for note in self.notes)]
        comments = "".join(f"# {line}\n" for line in heading)
        files = {"site.yaml": comments + _yaml(self.site)}
        if self.tenants:
            files["tenants.yaml"] = _yaml({"tenants": self.tenants})
        return files


class _Dumper(yaml.SafeDumper):
    """Plain YAML, with the flow style where it was asked for."""


_Dumper.add_representer(Flow, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, True))


def _yaml(data: dict[str, Any]) -> str:
    """Top-level keys apart by a blank line."""
    blocks = [yaml.dump({key: value}, Dumper=_Dumper, sort_keys=False, width=_WIDTH) for key, value in data.items()]
    text = ""
    for key, block in zip(data, blocks, strict=True):
        text += ("\n" if isinstance(data[key], dict) and text else "") + block
    return text


def site_name(text: str, limit: int = 40) -> str:
    """Make a name an inventory accepts: small letters, digits and hyphens, a letter first."""
    name = _FORBIDDEN.sub("-", text.lower()).strip("-")
    name = name if name[:1].isalpha() else f"x-{name}".rstrip("-")
    return name[:limit].rstrip("-")


def port_list(numbers: Iterable[int]) -> str:
    """Write cage numbers briefly: `1-32`, `1-63:2`, `26,28,30-34`."""
    left = sorted(set(numbers))
    parts = []
    while left:
        step = left[1] - left[0] if len(left) > 1 and left[1] - left[0] <= 2 else 1
        run = [left[0]]
        while len(run) < len(left) and left[len(run)] == run[-1] + step:
            run.append(left[len(run)])
        if len(run) < 3 and step > 1:
            run = run[:1]
        left = left[len(run) :]
        tail = f":{step}" if step > 1 and len(run) > 1 else ""
        parts.append(f"{run[0]}-{run[-1]}{tail}" if len(run) > 1 else str(run[0]))
    return ",".join(parts)


def check(folder: Path) -> list[Problem]:
    """Load and plan what was written; returns what would stop the planner, so that the person knows at once."""
    from fabric.build import plan_site

    try:
        return list(plan_site(folder).problems)
    except InputError as error:
        return list(error.problems)


def refuse_existing(folder: Path) -> None:
    """InputError when the folder already holds an inventory: an import must not eat a person's work."""
    if folder.is_dir() and any(folder.glob("*.y*ml")):
        fix = "choose another folder, or say --force"
        raise InputError([Problem("import.exists", str(folder), "there is an inventory already", fix, str(folder))])
