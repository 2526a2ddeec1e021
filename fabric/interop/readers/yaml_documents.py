"""YAML streams with the line of every document and mapping, never a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Mapping(dict[str, Any]):
    """A YAML mapping that remembers the line (1-based) it starts at."""

    line: int = 0


def load_documents(path: Path, text: str) -> list[Mapping]:
    """Return the mappings of a YAML stream; InputError with the line where it is not YAML or not a mapping."""
    try:
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _refuse(path, str(error.problem or error.context), mark.line + 1 if mark else 1) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _refuse(
            path, f"not YAML: {str(error).splitlines()[0] if str(error) else 'nested too deep'}", 1
        ) from error
    documents = []
    for node in nodes:
        if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
            continue
        if not isinstance(node, yaml.MappingNode):
            raise _refuse(path, "a document must hold `key: value` lines", node.start_mark.line + 1)
        try:
            documents.append(_value(node, 0))
        except (
            yaml.YAMLError,
            RecursionError,
            ValueError,
            TypeError,
            AttributeError,
            OverflowError,
            KeyError,
        ) as error:
            raise _refuse(path, "a value here cannot be read", node.start_mark.line + 1) from error
    return documents


def _refuse(path: Path, text: str, line: int) -> InputError:
    return InputError([Problem("import.yaml", path.name, text, "correct the YAML here", str(path), line)])


def _value(node: yaml.Node, depth: int) -> Any:
    if depth > 40:
        message = "nested too deep"
        raise ValueError(message)
    if isinstance(node, yaml.MappingNode):
        mapping = Mapping()
        mapping.line = node.start_mark.line + 1
        for key, value in node.value:
            mapping[str(key.value) if isinstance(key, yaml.ScalarNode) else repr(key)] = _value(value, depth + 1)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, depth + 1) for child in node.value]
    return yaml.SafeLoader("").construct_object(node)


def dig(data: Any, *keys: str) -> Any:
    """Follow keys through mappings; None as soon as one is missing or is not a mapping."""
    for key in keys:
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data
