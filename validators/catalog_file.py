"""The catalog as YAML: stage, then check, then one line of inputs per case. People edit it; every mistake is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from fabric.files import read_whole
from fabric.hints import names_hint
from fabric.problem import InputError, Problem
from validators.catalog import Case, make_case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from fabric.plan import Plan
    from validators.check import Check, CheckInputs

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAX_NODES = 1000
_AGAIN = "`kvfabric catalog SITE > catalog.yaml` writes one to edit"


def to_yaml(plan: Plan, cases: Iterable[Case]) -> str:
    """Return a catalog as YAML; inputs that have their default are left out."""
    lines = [
        f"# Acceptance catalog of {plan.site}, made from plan {plan.digest[:12]}. Remove, change or add lines;",
        "# `kvfabric catalog --explain CHECK` shows what a check does and which inputs it takes.",
        f"site: {plan.site}",
        "catalog:",
    ]
    stage = check = ""
    for case in cases:
        if case.check.stage.value != stage:
            stage, check = case.check.stage.value, ""
            lines.append(f"  {stage}:")
        if case.check.name != check:
            check = case.check.name
            lines.append(f"    {check}:")
        inputs = case.inputs.model_dump(mode="json", exclude_defaults=True)
        text = yaml.safe_dump(inputs, default_flow_style=True, sort_keys=False, width=10_000).strip()
        lines.append(f"      - {text}")
    return "\n".join(lines) + "\n"


def read_catalog(path: Path, plan: Plan, checks: dict[str, type[Check]]) -> list[Case]:
    """Read a catalog. Raises InputError with every line that is wrong."""
    root = _compose(path)
    problems = _of_another_site(root, plan, path)
    cases: list[Case] = []
    seen: dict[str, int] = {}
    for stage, name, node, line in _check_lists(root, path, problems):
        check = checks.get(name)
        if check is None:
            fix = "see `kvfabric catalog --list`"
            problems.append(Problem("catalog.unknown-check", name, "there is no such check", fix, str(path), line))
            continue
        if stage != check.stage.value:
            text = f"stands under '{stage}', and is a check of stage '{check.stage.value}'"
            problems.append(Problem("catalog.stage", name, text, "move it there", str(path), line))
        for item in node.value if isinstance(node, yaml.SequenceNode) else ():
            case = _case(plan, check, item, path, problems)
            if case and case.id in seen:
                text = f"the same case as in line {seen[case.id]}"
                problems.append(Problem("catalog.duplicate", name, text, "remove one", str(path), _line(item)))
            elif case:
                seen[case.id] = _line(item)
                cases.append(case)
    if problems:
        raise InputError(problems)
    order = {name: i for i, name in enumerate(checks)}
    return sorted(cases, key=lambda case: order[case.check.name])


def _of_another_site(root: yaml.Node | None, plan: Plan, path: Path) -> list[Problem]:
    """A catalog may leave its site out; one that names another would be judged by the wrong plan."""
    site = _mapping(root).get("site")
    named = site[1].value if site and isinstance(site[1], yaml.ScalarNode) else "" if site else plan.site
    if named == plan.site:
        return []
    text = f"the catalog is of site {named or 'without a name'}, not of {plan.site}"
    return [
        Problem("catalog.site", path.name, text, "take this site's catalog", str(path), _line(site[0]) if site else 1)
    ]


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _compose(path: Path) -> yaml.Node | None:
    try:
        return yaml.compose(read_whole(path).decode(), Loader=_LOADER)
    except OSError as error:
        raise InputError(
            [Problem("catalog.missing", path.name, f"cannot be read: {error.strerror}", _AGAIN, str(path), 1)]
        ) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(
            [Problem("catalog.yaml", path.name, str(error.problem), "correct the YAML here", str(path), line)]
        ) from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError):
        raise InputError(
            [Problem("catalog.yaml", path.name, "the file is not YAML text", _AGAIN, str(path), 1)]
        ) from None


def _check_lists(root: yaml.Node | None, path: Path, problems: list[Problem]) -> list[tuple[str, str, yaml.Node, int]]:
    """Return (stage, check, node of its list, line) of every check in the file, and report what has another shape."""

    def wrong(node: yaml.Node | None, text: str) -> None:
        line = _line(node) if node else 1
        problems.append(
            Problem("catalog.shape", path.name, text, "compare with `kvfabric catalog SITE`", str(path), line)
        )

    top = _mapping(root)
    body = top.get("catalog")
    if body is None or not isinstance(body[1], yaml.MappingNode):
        wrong(root, "there is no 'catalog:' with stages in it")
        return []
    for unknown in top.keys() - {"site", "catalog"}:
        wrong(top[unknown][0], f"unknown key '{unknown}'")
    for key, text in _odd_keys(root):
        wrong(key, text)
    found = []
    for stage, (stage_key, stage_node) in _mapping(body[1]).items():
        lists = _mapping(stage_node)
        if not lists:
            wrong(stage_key, f"stage '{stage}' holds no checks")
        for name, (key, node) in lists.items():
            if not isinstance(node, yaml.SequenceNode):
                wrong(key, f"'{name}' must hold a list of inputs")
            found.append((stage, name, node, _line(key)))
    return found


def _mapping(node: yaml.Node | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): (key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _odd_keys(root: yaml.Node | None) -> Iterator[tuple[yaml.Node, str]]:
    """Yield every key that is no word, or that its map has already (YAML keeps the last in silence), and say so."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        keys: dict[str, yaml.Node] = {}
        for key, value in node.value:
            waiting.append(value)
            if not isinstance(key, yaml.ScalarNode):
                yield key, "a key must be a plain word"
            elif (first := keys.setdefault(key.value, key)) is not key:
                yield key, f"'{key.value}' is already given in line {_line(first)}"


def _few_nodes(node: yaml.Node) -> bool:
    """Whether a case is small when its aliases are written out."""
    waiting, count = [node], 0
    while waiting and count < _MAX_NODES:
        inner, count = waiting.pop(), count + 1
        if isinstance(inner, yaml.CollectionNode):
            waiting += [part for one in inner.value for part in (one if isinstance(one, tuple) else (one,))]
    return not waiting


def _plain_values(node: yaml.Node) -> dict[Any, Any] | None:
    """Return the inputs of a case; None when they are no map. Raises an error of `_NOT_PLAIN`."""
    if not _few_nodes(node):
        message = "too many"
        raise ValueError(message)
    data = yaml.safe_load(yaml.serialize(node))
    return data if isinstance(data, dict) else None


_NOT_PLAIN = (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, LookupError)


def _case(plan: Plan, check: type[Check], node: yaml.Node, path: Path, problems: list[Problem]) -> Case | None:
    def wrong(field: str, text: str, fix: str = "") -> None:
        fix = fix or f"see `kvfabric catalog --explain {check.name}`"
        problems.append(Problem("catalog.inputs", check.name, text, fix, str(path), _line(node), field))

    try:
        data = _plain_values(node)
        tags: Any = [] if data is None else data.pop("tags", [])
        text = json.dumps(data)
    except _NOT_PLAIN:
        wrong("", "these inputs are not plain values")
        return None
    if data is None:
        wrong("", "a case is `{input: value, ...}`")
        return None
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        wrong("tags", "must be a list of words")
        return None
    try:
        # as JSON: there a number in quotes, or `true`, is no number
        inputs = check.Inputs.model_validate_json(text)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            wrong(".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, "))
        return None
    if unknown := _not_in_plan(plan, inputs):
        for field, value, known in unknown:
            wrong(field, f"the plan has no {field} '{value}'", names_hint(value, known, "the plan has"))
        return None
    try:
        return make_case(plan, check, inputs, tags)
    except KeyError as error:
        wrong("", f"not in the plan: {error.args[0]}")
        return None


def _not_in_plan(plan: Plan, inputs: CheckInputs) -> list[tuple[str, str, list[str]]]:
    """Return the inputs that name something that the plan does not have: field, name, and what the plan has."""
    given = {field: str(value) for field, value in inputs if field in _NAMES}
    known = {field: list(_NAMES[field](plan, given)) for field in given}
    return [(field, name, known[field]) for field, name in given.items() if name not in known[field]]


def _exposures(plan: Plan, given: dict[str, str]) -> Iterable[str]:
    tenant = plan.tenants.get(given["tenant"])
    return [exposure.name for exposure in tenant.exposures] if tenant else ()


def _ports(plan: Plan, _given: dict[str, str]) -> Iterable[str]:
    return [f"{name}:{link.end(name).port}" for name in plan.servers for link in plan.links_of.get(name, ())]


_NAMES: dict[str, Callable[[Plan, dict[str, str]], Iterable[str]]] = {
    "device": lambda plan, _: plan.kind_of,
    "fabric": lambda plan, _: plan.fabrics,
    "tenant": lambda plan, _: plan.tenants,
    "spine": lambda plan, _: plan.switches,
    "sender": _ports,
    "receiver": _ports,
    "exposure": _exposures,
    "owner": _ports,
    "reader": _ports,
}
