"""Short ways to write many names: port lists (`1-32`, `1-63:2`) and host lists (`compute-[001-016]`)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PART = re.compile(r"^(\d+)(?:-(\d+)(?::(\d+))?)?$")
_HOSTS = re.compile(r"^([A-Za-z0-9_.-]*)\[(\d+)-(\d+)\](.*)$")
# far above any site; keeps a slip of the finger from filling the memory
_MOST = 100_000
_NUMBER = re.compile(r"(\d+)")


@cache
def parse_ports(text: str) -> tuple[int, ...]:
    """Return the numbers of a port list: commas, ranges `a-b` and steps `a-b:s`. Raises ValueError naming the part."""
    found: list[int] = []
    for raw in text.replace(" ", "").split(","):
        match = _PART.match(raw)
        if not match:
            message = f"'{raw}' is not a port, a range a-b or a stepped range a-b:s"
            raise ValueError(message)
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1:
            message = f"'{raw}' runs backwards or has no step"
            raise ValueError(message)
        if (last - first) // step >= _MOST:
            message = f"'{raw}' names more than {_MOST} ports"
            raise ValueError(message)
        found.extend(range(first, last + 1, step))
    if len(set(found)) != len(found):
        message = f"'{text}' names a port twice"
        raise ValueError(message)
    return tuple(found)


@cache
def expand_hosts(pattern: str) -> tuple[str, ...]:
    """Return the names of a host pattern: `a-[001-003]` gives three, a plain name gives itself."""
    match = _HOSTS.match(pattern)
    if not match:
        return (pattern,)
    prefix, first, last, rest = match[1], match[2], match[3], match[4]
    if int(last) < int(first):
        message = f"'{pattern}' runs backwards"
        raise ValueError(message)
    if int(last) - int(first) >= _MOST:
        message = f"'{pattern}' names more than {_MOST} hosts"
        raise ValueError(message)
    width = len(first)
    return tuple(f"{prefix}{n:0{width}d}{rest}" for n in range(int(first), int(last) + 1))


def host_patterns(names: Iterable[str]) -> list[str]:
    """Write host names briefly: `compute-[001-016]` for neighbours, others as they are."""
    found: list[tuple[str, int, int, int]] = []  # prefix, width, first, last
    for name in sorted(names, key=natural_key):
        prefix = name.rstrip("0123456789")
        digits = name[len(prefix) :]
        run = (prefix, len(digits), int(digits or 0), int(digits or 0))
        if digits and found and found[-1][:2] == run[:2] and found[-1][3] + 1 == run[2]:
            found[-1] = (*found[-1][:3], run[3])
        else:
            found.append(run)
    return [
        f"{prefix}[{a:0{width}d}-{b:0{width}d}]" if b > a else f"{prefix}{a:0{width}d}" if width else prefix
        for prefix, width, a, b in found
    ]


# more are no number that anything has, and Python refuses to read thousands
_DIGITS = 100


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that puts `E1/2` before `E1/10`; total over any strings."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and len(part) <= _DIGITS else (1, 0, part)
        for part in _NUMBER.split(name)
        if part
    )
