"""What Hedgehog objects must have before they can be read as a site: names, roles, and the ends that cables name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import host_patterns
from fabric.interop.readers.hedgehog import ROLES, kind_of, name_of
from fabric.interop.readers.yaml_documents import dig
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fabric.interop.cable_map import Cable
    from fabric.interop.readers.yaml_documents import Mapping

_NAMED = frozenset({"Switch", "Server", "Connection", "VPC", "VPCAttachment", "VPCPeering"})
_SHOWN = 6
# two of them with one name would be one
_DEVICES = frozenset({"Switch", "Server"})


def require_sound(sources: list[tuple[Path, list[Mapping]]]) -> None:
    """Raise InputError for every object without a name or a body, and for devices that are there twice."""
    problems: list[Problem] = []
    seen: dict[str, tuple[Path, int]] = {}
    shared: dict[tuple[Path, Path], list[str]] = {}
    for path, documents in sources:
        for document in documents:
            kind, name = kind_of(document), name_of(document)
            if kind in _NAMED:
                problems += [
                    Problem("import.object", name or f"a {kind}", text, fix, str(path), document.line)
                    for text, fix in _faults(document, kind)
                ]
            if kind in _DEVICES and name:
                there, line = seen.setdefault(name, (path, document.line))
                if there != path:
                    shared.setdefault((there, path), []).append(name)
                elif line != document.line:
                    text = f"is there already in {there}:{line}"
                    problems.append(Problem("import.twice", name, text, "keep one of them", str(path), document.line))
    for (there, path), names in shared.items():
        text = (
            f"{', '.join(host_patterns(names)[:_SHOWN])}: in {there} too, and a file of wiring is a fabric of its own"
        )
        fix = "import one of these files at a time, each into a folder of its own"
        problems.append(Problem("import.twice", path.name, text, fix, str(path)))
    if problems:
        raise InputError(problems)


def _faults(document: Mapping, kind: str) -> Iterator[tuple[str, str]]:
    name: Any = dig(document, "metadata", "name")
    if not isinstance(name, str) or not name.strip():
        yield f"a {kind} without a name: metadata.name must be text", "write `metadata: {name: leaf-01}` for example"
    spec = document.get("spec")
    if not isinstance(spec, dict):
        # a server needs none: its connections say it all
        if kind != "Server" or spec is not None:
            yield f"a {kind} without a spec", f"write what the {kind} is under `spec:`"
    elif kind == "Switch" and spec.get("role") not in ROLES:
        given = f"'{spec['role']}' is no role" if "role" in spec else "there is no role"
        yield f"spec.role: {given}", f"one of {', '.join(ROLES)}"


def require_ends(cables: list[tuple[Path, Cable]], documents: list[Mapping]) -> None:
    """Raise InputError for every cable with an end that no Switch or Server object of the files is.

    Cables of gateways are left out of the import, and their ends may be in other files.
    """
    devices = {name_of(d) for d in documents if kind_of(d) in _DEVICES}
    gateways = {name_of(d) for d in documents if dig(d, "spec", "gateway") is not None}
    problems = [
        Problem(
            "import.end", cable.id or "a Connection", f"names {end.device}, of which there is no object in the files",
            "correct the name, or give the file with this Switch or Server too", str(path), cable.line,
        )
        for path, cable in cables
        for end in (cable.a, cable.b)
        if end.device not in devices and cable.id not in gateways
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
