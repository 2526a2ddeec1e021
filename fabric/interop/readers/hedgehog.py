"""Cables out of Hedgehog wiring: every link of every Connection, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.interop.cable_map import Cable, CableEnd, CableMap
from fabric.interop.readers.yaml_documents import Mapping, dig, load_documents
from fabric.plan import BORDER_LEAF, LEAF, SERVER, SPINE
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLES = {"server-leaf": LEAF, "mixed-leaf": LEAF, "border-leaf": BORDER_LEAF, "spine": SPINE}
# which two ends a link of each connection kind has, lower tier first
ENDS = {
    "unbundled": ("server", "switch"),
    "bundled": ("server", "switch"),
    "eslag": ("server", "switch"),
    "mclag": ("server", "switch"),
    "fabric": ("leaf", "spine"),
    "mesh": ("leaf1", "leaf2"),
    "gateway": ("gateway", "switch"),
}


def looks_like_hedgehog(text: str) -> bool:
    """Whether the text is Hedgehog objects rather than a table."""
    return "githedgehog.com/" in text and "apiVersion:" in text


def read_wiring(path: Path, text: str) -> CableMap:
    """Return the cables of a wiring file; InputError naming the line of what cannot be read."""
    documents = load_documents(path, text)
    cables = tuple(cables_of(path, documents))
    if not cables:
        fix = "give the file that holds the Connection objects"
        raise InputError([Problem("cables.empty", path.name, "no Connection with a cable in it", fix, str(path))])
    return CableMap(str(path), "Hedgehog wiring", cables)


def kind_of(document: Mapping) -> str:
    """The object's kind, empty when it has none."""
    kind = document.get("kind")
    return kind if isinstance(kind, str) else ""


def name_of(document: Mapping) -> str:
    """The object's name, empty when it has none."""
    name = dig(document, "metadata", "name")
    return str(name) if name is not None else ""


def cables_of(path: Path, documents: list[Mapping]) -> Iterator[Cable]:
    """Yield the cables of all connections in file order."""
    roles = {name_of(d): ROLES.get(str(dig(d, "spec", "role")), LEAF) for d in documents if kind_of(d) == "Switch"}
    roles.update({name_of(d): SERVER for d in documents if kind_of(d) == "Server"})
    problems: list[Problem] = []
    for document in documents:
        if kind_of(document) == "Connection":
            yield from _connection(path, document, roles, problems)
    if problems:
        raise InputError(problems)


def _connection(path: Path, document: Mapping, roles: dict[str, str], problems: list[Problem]) -> Iterator[Cable]:
    spec = document.get("spec")
    for kind, body in spec.items() if isinstance(spec, dict) else ():
        if kind not in ENDS:
            continue
        for link in _links(body):
            ends = [_end(dig(link, side, "port"), roles) for side in ENDS[kind]]
            if ends[0] and ends[1]:
                line = link.line if isinstance(link, Mapping) else document.line
                yield Cable(ends[0], ends[1], id=name_of(document), lag=_lag(kind, document), line=line)
            else:
                text = f"a {kind} link needs {ENDS[kind][0]}.port and {ENDS[kind][1]}.port, each device/port"
                fix = "write for example `port: leaf-01/E1/1`"
                problems.append(Problem("cables.row", name_of(document), text, fix, str(path), document.line))


def _links(body: Any) -> list[Any]:
    if not isinstance(body, dict):
        return [None]
    links = body.get("links", body.get("link"))
    return links if isinstance(links, list) else [links]


def _lag(kind: str, document: Mapping) -> str:
    return name_of(document) if kind in {"bundled", "eslag", "mclag"} else ""


def _end(text: Any, roles: dict[str, str]) -> CableEnd | None:
    device, slash, port = text.partition("/") if isinstance(text, str) else ("", "", "")
    return CableEnd(device, port, roles.get(device, "")) if device and slash and port else None
