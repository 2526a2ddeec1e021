"""A thousand broken inventories: each is refused in words or planned, none ends in a traceback."""

from __future__ import annotations

import copy
import random
import re
from pathlib import Path

import pytest
import yaml

from fabric.build import plan_site
from fabric.problem import InputError
from fabric.resources import data_folder

pytestmark = pytest.mark.unit

_JUNK = [None, True, -1, 0, 1.5, 10**12, "", "x", "1-", "a-[9-1]", "10.0.0.0/33", "::/0", "0.0.0.0/0", [], {}, [[]], "9x9G", "\x7f",
         "compute-001:nosuch", {"a": 1}, "65535", "-5s", "99999h", "203.0.113.0/32", "E1/1", [1], ["compute-[001-003]"]]  # fmt: skip


def _paths(node: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path] if path else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found += _paths(value, (*path, key))
    return found


def _holder(data: object, path: tuple[object, ...]) -> object:
    for key in path[:-1]:
        data = data[key]  # type: ignore[index]
    return data


def _mutate(data: dict[str, object], chance: random.Random) -> str:
    paths = _paths(data)
    path = chance.choice(paths)
    holder, key = _holder(data, path), path[-1]
    how = chance.randrange(5)
    if how == 0:
        del holder[key]  # type: ignore[attr-defined]
    elif how == 1:
        holder[key] = chance.choice(_JUNK)  # type: ignore[index]
    elif how == 2:
        holder[key] = copy.deepcopy(_holder(data, (*chance.choice(paths), "")))  # type: ignore[index]
    elif how == 3 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        value = holder[key]  # type: ignore[index]
        if isinstance(value, str) and value:
            at = chance.randrange(len(value))
            holder[key] = value[:at] + chance.choice("0123456789-/:[]x. ") + value[at + 1 :]  # type: ignore[index]
        elif isinstance(value, int):
            holder[key] = value * chance.choice([-1, 0, 2, 1000])  # type: ignore[index]
    return f"{how} {path}"


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


@pytest.mark.parametrize("batch", range(10))
def test_mutated_inventories_never_give_a_traceback(tmp_path: Path, batch: int) -> None:
    folder = data_folder("inventories")
    texts = {
        name: "".join((folder / name / file).read_text() for file in ("site.yaml", "tenants.yaml"))
        for name in ("lab", "xoc-64", "minimal")
    }
    refused = 0
    for n in range(100):
        seed = batch * 100 + n
        chance = random.Random(seed)
        data = yaml.safe_load(texts[chance.choice(sorted(texts))])
        what = [_mutate(data, chance) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
        try:
            text = yaml.dump(data, Dumper=_Plain)
        except (RecursionError, yaml.YAMLError):
            continue
        (tmp_path / "site.yaml").write_text(text)
        try:
            plan_site(tmp_path)
        except InputError as error:
            refused += 1
            for problem in error.problems:
                assert problem.text, (seed, what)
                assert problem.fix, (seed, what, problem)
                assert problem.file or problem.rule == "ledger.damaged", (seed, what, problem)
                assert not re.search(r"<class|Traceback|NoneType", str(problem)), (seed, what, problem)
        except Exception as error:
            pytest.fail(f"seed {seed} {what}: {type(error).__name__}: {error}")
    assert refused > 30
