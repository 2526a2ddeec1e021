"""How CONFIG_DB's flat tables hang in SONiC's YANG tree, and the way from one to the other.

A table map says for each table its module, top container, lists with their keys, containers, leaves and leaf-lists
(nested where a list holds a list). pyang makes it from the models, unless `sonic_table_map.json` is beside them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from fabric.outside.places import external_data

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Node = dict[str, Any]

_DATA = {"leaf": "leaves", "leaf-list": "leaflists"}
# leaf-lists that CONFIG_DB keeps as one string
_SEPARATORS = (";", ",")


class TranslationError(Exception):
    """A row that the models have no place for."""


@cache
def table_map() -> dict[str, Node]:
    """Every CONFIG_DB table by name."""
    ready = external_data("sonic_table_map.json")
    if ready.is_file():
        found: dict[str, Node] = json.loads(ready.read_text())
        return found
    return build_table_map(external_data("sonic-yang"))


def build_table_map(folder: Path) -> dict[str, Node]:
    """Read the models of a folder with pyang and return the table map."""
    from pyang import context, repository

    ctx = context.Context(repository.FileRepository(str(folder)))
    modules = [ctx.add_module(path.name, path.read_text()) for path in sorted(folder.glob("*.yang"))]
    ctx.validate()
    tables: dict[str, Node] = {}
    for module in modules:
        for top in _children(module, {"container"}):
            for table in _children(top, {"container"}):
                node = {"module": module.arg, "top": top.arg, **_node(table)}
                if node["lists"] or node["containers"] or node["leaves"]:
                    tables[table.arg] = node
    return tables


def _children(statement: Any, words: Iterable[str]) -> list[Any]:
    return [child for child in getattr(statement, "i_children", []) if child.keyword in words]


def _flat(statement: Any) -> list[Any]:
    """The data nodes below a statement, through choices and cases."""
    found: list[Any] = []
    for child in getattr(statement, "i_children", []):
        found += _flat(child) if child.keyword in {"choice", "case"} else [child]
    return found


def _node(statement: Any) -> Node:
    node: Node = {"lists": [], "containers": {}, "leaves": [], "leaflists": []}
    for child in _flat(statement):
        if child.keyword in _DATA:
            node[_DATA[child.keyword]].append(child.arg)
        elif child.keyword == "container":
            node["containers"][child.arg] = _node(child)
        elif child.keyword == "list":
            key = child.search_one("key")
            node["lists"].append({"name": child.arg, "keys": key.arg.split() if key else [], **_node(child)})
    return node


def to_yang(config: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a CONFIG_DB as the models' own JSON (RFC 7951). Raises TranslationError where there is no place."""
    tree: dict[str, Any] = {}
    for table, rows in config.items():
        node = table_map().get(table)
        if node is None:
            message = f"table {table}: no model has it"
            raise TranslationError(message)
        top = tree.setdefault(f"{node['module']}:{node['top']}", {})
        top[table] = _table(table, node, rows)
    return tree


def _table(table: str, node: Node, rows: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, row in rows.items():
        if key in node["containers"]:
            out[key] = _fields(f"{table}|{key}", node["containers"][key], row)
            continue
        parts = key.split("|")
        entry = next((each for each in node["lists"] if len(each["keys"]) == len(parts)), None)
        if entry is None:
            message = f"{table}|{key}: no list of the table has {len(parts)} keys"
            raise TranslationError(message)
        item = dict(zip(entry["keys"], parts, strict=True))
        out.setdefault(entry["name"], []).append(item | _fields(f"{table}|{key}", entry, row))
    return out


def _fields(place: str, node: Node, row: dict[str, Any]) -> dict[str, Any]:
    if node["lists"] and len(node["leaves"]) <= len(node.get("keys", ())):
        return _pairs(node["lists"][0], row)
    out: dict[str, Any] = {}
    for field, value in row.items():
        if field in node["leaflists"]:
            out[field] = _items(value)
        elif field in node["leaves"]:
            out[field] = value
        else:
            message = f"{place}: no field {field}"
            raise TranslationError(message)
    return out


def _pairs(inner: Node, row: dict[str, Any]) -> dict[str, Any]:
    """A row whose fields are data themselves (`"26": "3"`): an inner list of pairs."""
    key = inner["keys"][0]
    other = next(leaf for leaf in inner["leaves"] if leaf != key)
    return {inner["name"]: [{key: field, other: value} for field, value in row.items()]}


def _items(value: Any) -> list[str]:
    if isinstance(value, str):
        separator = next((mark for mark in _SEPARATORS if mark in value), ",")
        value = value.split(separator)
    return [item for item in value if item]
