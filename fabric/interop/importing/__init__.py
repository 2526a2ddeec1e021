"""Other people's descriptions of a site into an inventory folder, saying what could not be taken over.

One reader a source: OCP planning files (`topology-map.yaml`), Hedgehog wiring and VPCs, containerlab topologies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.importing import containerlab, hedgehog, topology_map
from fabric.interop.readers.text import read_text
from fabric.interop.readers.yaml_documents import load_documents
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fabric.interop.importing.draft import Draft
    from fabric.interop.readers.yaml_documents import Mapping

_READERS = (topology_map, hedgehog, containerlab)


def import_files(paths: Sequence[Path], name: str) -> Draft:
    """Return the inventory described by the files, under the site name `name`.

    Raises InputError when a file is none of the known kinds, when kinds are mixed, or when nothing usable is in them.
    """
    sources: list[tuple[Path, list[Mapping]]] = [(path, load_documents(path, read_text(path))) for path in paths]
    found = {}
    problems = []
    for path, documents in sources:
        reader = next((reader for reader in _READERS if reader.recognises(documents)), None)
        if reader is None:
            fix = "give an OCP topology-map.yaml, Hedgehog wiring and VPC YAML, or a containerlab topology"
            problems.append(
                Problem("import.kind", path.name, "not a description of a site that is known", fix, str(path))
            )
        else:
            found[reader.SOURCE] = reader
    if len(found) > 1:
        text = f"the files are of different kinds: {', '.join(sorted(found))}"
        problems.append(Problem("import.mixed", name, text, "import one kind at a time"))
    if problems:
        raise InputError(problems)
    draft: Draft = next(iter(found.values())).read(sources, name)
    return draft
