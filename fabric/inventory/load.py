"""Read a site's YAML, keep where each value stands, and report every problem at once with file, line and fix."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from fabric.files import read_whole
from fabric.inventory.models import Site
from fabric.problem import InputError, Problem, Severity
from fabric.resources import data_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

Path_ = tuple[str | int, ...]
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LEDGER_NAME = "ledger.json"
_MAX_BYTES = 16 * 1024 * 1024
_MAX_DEPTH = 40
# longer than any value of an inventory, shorter than a number that Python refuses to print
_MAX_VALUE = 3500
_PLAIN = "write the values out where they are used"


@dataclass(frozen=True)
class Inventory:
    """A valid site, where each of its values was written, and the folder it lives in."""

    site: Site
    folder: Path
    places: dict[Path_, tuple[str, int]] = field(repr=False)

    def where(self, path: Path_) -> tuple[str, int]:
        """Return (file, line) of a value, or of the nearest thing around it."""
        return _nearest(self.places, path)

    def problem(
        self, rule: str, path: Path_, subject: str, text: str, fix: str = "", severity: Severity = Severity.ERROR
    ) -> Problem:
        """Return a problem placed at the line of `path`."""
        file, line = self.where(path)
        return Problem(rule, subject, text, fix, file, line, ".".join(map(str, path)), severity)


def _nearest(places: dict[Path_, tuple[str, int]], path: Path_) -> tuple[str, int]:
    for length in range(len(path), -1, -1):
        if path[:length] in places:
            return places[path[:length]]
    return ("", 0)


def find_site(name: str) -> Path:
    """Return the folder or file of a site: a path, or a name under the shipped `inventories/`.

    Raises InputError when it is neither, naming what is close.
    """
    if not name.strip():
        fix = "name a site, or `.` for the inventory in this folder"
        raise InputError([Problem("inventory.not-found", "site ''", "the name is empty", fix)])
    path = Path(name).expanduser()
    built = _built(path)
    if path.exists() and not built:
        return path
    shipped = data_folder("inventories")
    names = sorted(p.name for p in shipped.iterdir() if p.is_dir())
    if "/" not in name and name in names:
        return shipped / name
    if name.startswith("inventories/") and name.split("/", 1)[1] in names:
        return shipped / name.split("/", 1)[1]
    if built:
        fix = "name the site's inventory, the folder with site.yaml"
        raise InputError([Problem("inventory.output", str(path), "is what `kvfabric build` wrote", fix, str(path))])
    close = difflib.get_close_matches(name, names, 3)
    hint = f"did you mean {', '.join(close)}?" if close else f"shipped sites: {', '.join(names)}"
    raise InputError([Problem("inventory.not-found", f"site '{name}'", "no such folder, file or shipped site", hint)])


def _built(path: Path) -> bool:
    """Whether a folder is what `build` wrote, which has YAML files too: `build lab --out .` makes one with its name."""
    return all((path / name).is_file() for name in ("plan.json", "findings.json"))


def load_inventory(name: str | Path) -> Inventory:
    """Load and validate a site. Raises InputError with every problem found."""
    path = find_site(str(name))
    files = _files(path)
    problems: list[Problem] = []
    merged: dict[str, Any] = {}
    places: dict[Path_, tuple[str, int]] = {}
    for file in files:
        document = parse_file(file, problems, places)
        _merge(merged, document, file, problems, places)
    if problems:
        raise InputError(problems)
    try:
        site = Site.model_validate(merged)
    except ValidationError as error:
        raise InputError(_explain(places, error.errors(include_url=False, include_context=False))) from None
    return Inventory(site, path if path.is_dir() else path.parent, places)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(p for p in path.iterdir() if p.suffix in {".yaml", ".yml"} and not p.name.startswith("."))
    if not files:
        fix = "add a site.yaml, or start from `kvfabric new NAME --size xoc-256`"
        raise InputError([Problem("inventory.empty", str(path), "the folder has no YAML file", fix, str(path))])
    return files


def parse_file(file: Path, problems: list[Problem], places: dict[Path_, tuple[str, int]]) -> dict[str, Any]:
    """Return a YAML (or JSON) file's top-level map; adds what is wrong to `problems`, and the line of each path."""

    def broken(text: str, line: int = 1, fix: str = "") -> dict[str, Any]:
        problems.append(Problem("inventory.yaml", file.name, text, fix, str(file), line))
        return {}

    try:
        text = read_whole(file, _MAX_BYTES).decode()
    except UnicodeDecodeError:
        return broken("the file is not UTF-8 text", fix="save it as UTF-8")
    except OSError as error:
        return broken(f"cannot be read: {error.strerror}", fix="check the path and its rights")
    try:
        node = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return broken(str(error.problem or error.context), mark.line + 1 if mark else 1, "correct the YAML here")
    except (yaml.YAMLError, RecursionError) as error:
        return broken(f"not YAML: {str(error).splitlines()[0]}", fix="write `key: value` lines")
    if node is None:
        places.setdefault((), (str(file), 1))
        return {}
    if not isinstance(node, yaml.MappingNode):
        return broken(
            "the file must hold `key: value` lines at its top", node.start_mark.line + 1, "begin with `site: name`"
        )
    reader = _Reader(str(file), problems, places)
    data = reader.read(node, (), 0)
    assert isinstance(data, dict)
    return data


class _Reader:
    """Turns YAML nodes into plain data and remembers the line of each path; aliases and merges are refused."""

    def __init__(self, file: str, problems: list[Problem], places: dict[Path_, tuple[str, int]]) -> None:
        self.file, self.problems, self.places = file, problems, places
        self.constructor = yaml.SafeLoader("")
        self.seen: set[int] = set()

    def read(self, node: yaml.Node, path: Path_, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.places.setdefault(path, (self.file, line))
        if depth > _MAX_DEPTH or (id(node) in self.seen and not isinstance(node, yaml.ScalarNode)):
            self._report("inventory.alias", path, line, "anchors and deep nesting are not used in inventories", _PLAIN)
            return None
        self.seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*path, i), depth + 1) for i, child in enumerate(node.value)]
        if len(node.value) > _MAX_VALUE:
            text = f"'{node.value[:20]}...' is {len(node.value)} characters long"
            self._report("inventory.value", path, line, text, f"write at most {_MAX_VALUE}")
            return None
        try:
            value = self.constructor.construct_object(node)
        except (yaml.YAMLError, ValueError, OverflowError, TypeError, AttributeError, LookupError):
            text = f"'{node.value}' cannot be read as the type it is written as"
            self._report("inventory.value", path, line, text, "put it in quotes, or remove the tag")
            return None
        # dates, sets and binaries are never meant in an inventory: keep what was written
        return value if isinstance(value, str | int | float | bool | None) else node.value

    def _mapping(self, node: yaml.MappingNode, path: Path_, depth: int) -> dict[Any, Any]:
        data: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._report("inventory.key", path, line, "a key must be a plain word", "write `key: value`")
                continue
            key = self.read(key_node, (*path, f"\0{key_node.value}"), depth + 1)
            key = key if isinstance(key, str | int) and not isinstance(key, bool) else str(key_node.value)
            if key in data:
                first = self.places[(*path, key)][1]
                text = f"'{key}' is already given in line {first}"
                self._report("inventory.duplicate", (*path, key), line, text, "keep one of them")
                continue
            self.places.setdefault((*path, key), (self.file, line))
            data[key] = self.read(value_node, (*path, key), depth + 1)
        return data

    def _report(self, rule: str, path: Path_, line: int, text: str, fix: str) -> None:
        name = ".".join(str(part) for part in path) or "file"
        self.problems.append(Problem(rule, name, text, fix, self.file, line, name))


def _merge(
    merged: dict[str, Any],
    document: dict[str, Any],
    file: Path,
    problems: list[Problem],
    places: dict[Path_, tuple[str, int]],
) -> None:
    """Put a file's top-level keys together with the others'; maps (tenants, racks) may be spread over files."""
    for key, value in document.items():
        if key not in merged:
            merged[key] = value
        elif isinstance(merged[key], dict) and isinstance(value, dict):
            for name, inner in value.items():
                if name in merged[key]:
                    where = places.get((key, name), ("", 0))
                    text = f"already given in {where[0]}:{where[1]}"
                    problems.append(
                        Problem("inventory.duplicate", f"{key}.{name}", text, "keep one of them", str(file), 1)
                    )
                else:
                    merged[key][name] = inner
        else:
            where = places.get((key,), ("", 0))
            text = f"already given in {where[0]}:{where[1]}"
            problems.append(Problem("inventory.duplicate", str(key), text, "keep one of them", str(file), 1))


def _explain(places: dict[Path_, tuple[str, int]], errors: Iterable[ErrorDetails]) -> list[Problem]:
    problems: dict[tuple[str, str, int], Problem] = {}
    for error in errors:
        path = _document_path(places, error["loc"])
        rule, text, fix = _words(error)
        name = ".".join(map(str, path)) or "site"
        if error["type"] == "missing":
            missing = str(error["loc"][-1])
            text, fix = f"'{missing}' is missing", f"add `{missing}:`"
        problem = Problem(rule, name, text, fix, *_nearest(places, path), field=".".join(map(str, path)))
        problems.setdefault((name, text, problem.line), problem)
    return sorted(problems.values(), key=lambda p: (p.file, p.line, p.field))


def _document_path(places: dict[Path_, tuple[str, int]], location: tuple[str | int, ...]) -> Path_:
    """Drop the parts of a pydantic location that are union branches and key markers, not keys of the document."""
    path: Path_ = ()
    for part in location:
        for key in (part, int(part) if isinstance(part, str) and part.isdigit() else part):
            if (*path, key) in places:
                path = (*path, key)
                break
    return path


def _words(error: ErrorDetails) -> tuple[str, str, str]:
    kind, message = error["type"], error["msg"]
    given = error.get("input")
    shown = _shown(given)
    if kind == "extra_forbidden":
        key = str(error["loc"][-1])
        return "inventory.unknown-field", f"'{key}' is not a field here", _close_field(key, error["loc"][:-1])
    if kind == "literal_error":
        expected = message.partition("should be ")[2]
        return "inventory.choice", f"{shown} is not one of {expected}", "use one of these words"
    if kind == "value_error":
        text, _, fix = message.removeprefix("Value error, ").partition("\n")
        return "inventory.value", text, fix
    if kind == "string_pattern_mismatch":
        pattern = message.partition("pattern ")[2]
        return "inventory.name", f"{shown} does not have the form {pattern}", _FORMS.get(pattern, "write it so")
    rule = f"inventory.{kind.replace('_', '-')}"
    if _is_port(error["loc"]):
        fix = "write one number from 1 to 65535"
        fix = fix if isinstance(given, int) else f"{fix}; ranges are not supported: list the ports one by one"
        return rule, f"{shown} is not a port", fix
    if kind in _KINDS:
        return rule, f"must be {_KINDS[kind]}, not {shown}", f"write {_KINDS[kind]}"
    if (bound := message.partition("should be ")[2]) and kind in _BOUNDS:
        limit = bound.rpartition(" ")[2]
        return rule, f"must be {_BOUNDS[kind].format(limit)}, not {shown}", f"use {_USE[kind].format(limit)}"
    return rule, f"{message[:1].lower()}{message[1:]}, not {shown}", "correct the value"


def _is_port(location: tuple[str | int, ...]) -> bool:
    """Whether the error is about a key of an exposure's `tcp` or `udp`."""
    return location[-1] == "[key]" and len(location) > 2 and location[-3] in {"tcp", "udp"}


_FORMS = {
    "'^[a-z]([a-z0-9-]*[a-z0-9])?$'": "use small letters, digits and hyphens; begin with a letter",
    r"'^\d+x\d+G$'": "write ports and speed, such as 2x400G",
    r"'^([1-9]\d?x )?[a-z0-9-]+$'": "write a model, or a number and a model, such as 8x cx7-1x400g",
}
_BOUNDS = {"less_than_equal": "{0} or less", "greater_than_equal": "{0} or more"}
_USE = {"less_than_equal": "a number up to {0}", "greater_than_equal": "a number from {0}"}
_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "a map of `name: value` lines",
    "model_type": "a map of `name: value` lines",
    "model_attributes_type": "a map of `name: value` lines",
}


def _shown(given: object) -> str:
    if given is None:
        return "nothing"
    if isinstance(given, str | int | float | bool):
        text = repr(given)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return "a list" if isinstance(given, list) else "a map" if isinstance(given, dict) else "this value"


def _close_field(key: str, location: tuple[str | int, ...]) -> str:
    schema = _schema_fields(location)
    close = difflib.get_close_matches(key, schema, 1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"fields here: {', '.join(schema)}" if schema else "remove it"


def _schema_fields(location: tuple[str | int, ...]) -> list[str]:
    from fabric.inventory.schema import fields_at

    return fields_at(location)
