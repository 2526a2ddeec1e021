"""The inputs of a check as a reader of its page needs them: name, kind and default of each, from its own model."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validators.check import Check

_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_LIMITS = {
    "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Input:
    """One input: `kind` in words with its limits, `default` as a catalog writes it; `required` has none."""

    name: str
    kind: str
    default: Any = None
    required: bool = False

    @property
    def words(self) -> str:
        """What happens without it."""
        if self.required:
            return "must be given"
        if self.default is None:
            return "no limit"
        many = self.default if isinstance(self.default, list) else [self.default]
        return f"default {', '.join(map(_written, many)) or 'none'}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return asdict(self)


def inputs_of(check: type[Check]) -> list[Input]:
    """Return the inputs of a check in the order of its model."""
    schema = check.Inputs.model_json_schema()
    required = set(schema.get("required", ()))
    return [
        Input(name, _kind(part), part.get("default"), name in required)
        for name, part in schema.get("properties", {}).items()
    ]


def about_inputs(check: type[Check]) -> str:
    """Return what the check's model says of its inputs, in a sentence."""
    return inspect.cleandoc(check.Inputs.__doc__ or "")


def _written(value: Any) -> str:
    """A default as a catalog writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind(part: dict[str, Any]) -> str:
    if choices := part.get("enum"):
        return "one of " + ", ".join(map(str, choices))
    if "const" in part:
        return str(part["const"])
    if parts := part.get("anyOf"):
        return " or ".join(_kind(one) for one in parts if one.get("type") != "null")
    if part.get("type") == "array":
        return f"list: {_kind(part.get('items', {}))}"
    limits = [f"{word} {part[key]:g}" for key, word in _LIMITS.items() if key in part]
    return ", ".join([_KINDS.get(str(part.get("type")), "text"), *limits])
