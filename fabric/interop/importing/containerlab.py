"""containerlab topologies (`*.clab.yml`): nodes by role and links, as an inventory skeleton."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.interop.importing.draft import Draft
    from fabric.interop.readers.yaml_documents import Mapping

SOURCE = "a containerlab topology"


def recognises(documents: list[Mapping]) -> bool:
    """Whether one of the documents is a containerlab topology."""
    return any(isinstance(document.get("topology"), dict) and "nodes" in document["topology"] for document in documents)


def read(sources: list[tuple[Path, list[Mapping]]], name: str) -> Draft:
    """Not there yet."""
    raise InputError(
        [Problem("import.clab", name, f"{sources[0][0].name} cannot be imported yet", "describe the site by hand")]
    )
