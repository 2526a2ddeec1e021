"""How values may be written, for the schema that editors read: the model holds one type, people have more ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import WithJsonSchema

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler


def number_or(pattern: str, *examples: str) -> WithJsonSchema:
    """A number, or a text of this form."""
    return WithJsonSchema(_number_or(pattern, *examples))


def text(*examples: str) -> WithJsonSchema:
    """A text, such as these."""
    return WithJsonSchema(_text(*examples))


def text_or_list(*examples: str) -> WithJsonSchema:
    """A text, such as these, or a list of them."""
    one = _text(*examples)
    return WithJsonSchema({"anyOf": [one, {"type": "array", "items": one}]})


def _text(*examples: str) -> dict[str, Any]:
    return {"type": "string", "examples": list(examples)}


def _number_or(pattern: str, *examples: str) -> dict[str, Any]:
    return {"type": ["string", "integer"], "pattern": pattern, "examples": list(examples)}


class OrOne:
    """One of a list, written without the list."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


class OrText:
    """A number or a text of this form, instead of the object."""

    def __init__(self, pattern: str, *examples: str) -> None:
        self.short = _number_or(pattern, *examples)

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [self.short, handler(schema)]}
