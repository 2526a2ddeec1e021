"""JSON as RFC 8259 has it. Python's own reader also takes NaN, infinities and what overflows to one."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn


def first_document(text: str, start: int = 0) -> tuple[Any, int]:
    """Parse the JSON document that begins at `start`; returns it and where it ends. Raises ValueError as `loads`."""
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError(_DEEP) from None


def loads(text: str | bytes, *, unique: bool = False) -> Any:
    """Parse JSON. Raises ValueError for text that is none, a number that is not finite, and nesting without end.

    With `unique` also for a name that an object has twice, of which Python keeps the last in silence.
    """
    whole = text.decode() if isinstance(text, bytes) else text
    try:
        pairs = _unique if unique else None
        data = json.loads(whole, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=pairs)
        if "\\ud" in whole.lower():
            json.dumps(data, ensure_ascii=False).encode()  # half of a pair is no text
        return data
    except RecursionError:
        raise ValueError(_DEEP) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        message = f"'{next(name for name in names if names.count(name) > 1)}' is given twice"
        raise ValueError(message)
    return found


def _refuse(name: str) -> NoReturn:
    message = f"{name} is not a number of JSON"
    raise ValueError(message)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        message = f"{text} is larger than any number that can be kept"
        raise ValueError(message)
    return number


_DEEP = "is nested too deeply"
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
