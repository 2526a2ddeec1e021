"""Order names as people read them: `E1/2` before `E1/10`."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"(\d+)")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which runs of digits compare as numbers."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(text) if part)


def split_index(name: str) -> tuple[str, str]:
    """Split a device name into its stem and its trailing number: `be-leaf-01` gives `be-leaf-` and `01`."""
    stem = name.rstrip("0123456789")
    return stem, name[len(stem) :]
