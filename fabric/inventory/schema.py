"""The JSON schema of the inventory, for editors and for hints in errors."""

from __future__ import annotations

from functools import cache
from typing import Any

from fabric.inventory.models import Site


@cache
def inventory_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a site inventory.

    No key of the top is required: each file of a folder has some of them.
    """
    schema = Site.model_json_schema(by_alias=True)
    del schema["required"]
    for body in schema["$defs"].values():
        for field in body.get("properties", {}).values():
            if "default" in field:
                field["default"] = _as_written(field["default"], field)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "kvfabric site inventory"
    return schema


def _as_written(default: Any, field: dict[str, Any]) -> Any:
    """Return a default as a person would write it: the model has seconds, milliseconds, bytes and metres as numbers."""
    example = str(field.get("examples", [""])[0])
    unit = example.lstrip("0123456789")
    if isinstance(default, dict) and set(default) == {"first", "last"}:
        return f"{default['first']}-{default['last']}"
    if unit == "KiB" and isinstance(default, int) and default % 1024 == 0:
        return f"{default // 1024}KiB"
    if unit in {"ms", "s", "m"} and isinstance(default, int):
        return f"{default}{unit}"
    if isinstance(default, dict):
        return {key: _as_written(value, field.get("additionalProperties", {})) for key, value in default.items()}
    return default


def fields_at(location: tuple[str | int, ...]) -> list[str]:
    """Return the field names allowed at a place in the document; empty where anything is."""
    nodes = [inventory_schema()]
    for part in location:
        nodes = [child for node in nodes for child in _children(node, part)] or nodes
    return sorted({name for node in nodes for option in _options(node) for name in option.get("properties", {})})


def _options(node: dict[str, Any]) -> list[dict[str, Any]]:
    node = _resolve(node)
    branches = node.get("anyOf") or node.get("allOf")
    return [option for branch in branches for option in _options(branch)] if branches else [node]


def _resolve(node: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    if not reference:
        return node
    found: dict[str, Any] = inventory_schema()["$defs"][reference.rpartition("/")[2]]
    return found


def _children(node: dict[str, Any], part: str | int) -> list[dict[str, Any]]:
    found = []
    for option in _options(node):
        if isinstance(part, str) and part in option.get("properties", {}):
            found.append(option["properties"][part])
        elif isinstance(option.get("additionalProperties"), dict):
            found.append(option["additionalProperties"])
        elif isinstance(option.get("items"), dict):
            found.append(option["items"])
        found.extend(option.get("patternProperties", {}).values())
    return found
