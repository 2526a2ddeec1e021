"""The inventory's reference page, from its schema: `python -m fabric.inventory.reference > docs/inventory.md`."""

from __future__ import annotations

import json
import sys
from typing import Any

from fabric.inventory.models import Site
from fabric.inventory.schema import inventory_schema

_HEAD = """\
# The inventory, key by key

Made from the inventory's schema; do not edit. A site is one YAML file, or a folder of them whose top-level keys are put
together. Unknown keys are errors. `kvfabric new NAME --size SIZE` writes one to begin with, `kvfabric check SITE` says
what is wrong in it.

`kvfabric schema > site.schema.json` writes the schema for editors: with this first line in a file an editor with a YAML
language server completes keys, shows what they mean and marks mistakes:

    # yaml-language-server: $schema=site.schema.json

**Bold** keys are required. `NAME` stands for a name that you give: lower-case letters, digits and hyphens, first a
letter.
"""


def reference() -> str:
    """Return the whole page as Markdown: the top, then each kind of object where it is first used."""
    schema = inventory_schema()
    required = [name for name, field in Site.model_fields.items() if field.is_required()]
    waiting: list[tuple[str, str]] = []
    parts = [_HEAD, "## The top\n", _table(schema | {"required": required}, "", waiting)]
    places: dict[str, list[str]] = {}
    order = []
    while waiting:
        place, name = waiting.pop(0)
        places.setdefault(name, []).append(place)
        if len(places[name]) == 1:
            order.append(name)
            _table(schema["$defs"][name], f"{place}.", waiting)
    for name in order:
        body = schema["$defs"][name]
        where = ", ".join(f"`{place}`" for place in places[name])
        parts.append(f"## {name}\n\n{where}: {body['description']}\n\n{_table(body, '', [])}")
    return "\n".join(parts)


def _table(body: dict[str, Any], prefix: str, found: list[tuple[str, str]]) -> str:
    """Return the fields of an object as a table; notes in `found` which objects are at which place."""
    lines = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in body.get("properties", {}).items():
        key = f"**`{name}`**" if name in body.get("required", ()) else f"`{name}`"
        value = _value(field, f"{prefix}{name}", found)
        cells = (key, value, _default(field), field.get("description", ""))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default is None:
        return ""
    if "$ref" in field:
        return ""  # the object's own table has its defaults
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


def _value(field: dict[str, Any], place: str, found: list[tuple[str, str]]) -> str:
    """Say how a value is written; notes in `found` the objects in it."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        found.append((place, name))
        return f"[{name}](#{name.lower()})"
    options = field.get("anyOf") or field.get("oneOf")
    if options:
        told = [_value(option, place, found) for option in options if option.get("type") != "null"]
        if len(told) == 2 and told[1] == f"list of {told[0]}":
            return f"{told[0]}, or a list"
        return " or ".join(dict.fromkeys(told))
    if "enum" in field:
        return ", ".join(f"`{choice}`" for choice in field["enum"])
    kind = field.get("type")
    if kind == "array":
        return f"list of {_value(field['items'], f'{place}[]', found)}"
    if kind == "object":
        inner = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
        of = next(one for one in inner if isinstance(one, dict))
        names = field.get("propertyNames", {}).get("enum")
        key = "/".join(names) if names else "NAME" if "patternProperties" in field else "PORT"
        return f"{key}: {_value(of, f'{place}.NAME', found)}"
    return _scalar(field, kind)


def _scalar(field: dict[str, Any], kind: Any) -> str:
    if "examples" in field:
        return "such as " + ", ".join(f"`{example}`" for example in field["examples"])
    if kind == "boolean":
        return "`true` or `false`"
    if kind in {"integer", "number"}:
        least, most = field.get("minimum"), field.get("maximum")
        word = "number" if kind == "number" else "whole number"
        bounds = f" from {least}" if least is not None else ""
        return f"{word}{bounds}{f' to {most}' if most is not None else ''}"
    if field.get("format") == "ipv4":
        return "IPv4 address"
    if "prefix" in str(field.get("format", "")) or field.get("format") == "ipv4network":
        return "IPv4 prefix"
    if str(field.get("pattern", "")).startswith("^[a-z]("):
        return f"NAME, at most {field['maxLength']} characters"
    return "text"


if __name__ == "__main__":
    sys.stdout.write(reference())
