"""Reads sizes and times that people write: 20GB, 8GiB, 500ms. Decimal and binary units are kept apart."""

from __future__ import annotations

import re

from fabric.problem import InputError, Problem

_SIZES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_MOST_BYTES, _MOST_SECONDS = 1e18, 1e6
_AMOUNT = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$")


def read_bytes(text: str, least: float = 1.0) -> float:
    """Return bytes of `20GB` (10^9) or `20GiB` (2^30), from `least` to 10^18. InputError for anything else."""
    match = _AMOUNT.match(text)
    size = float(match[1]) * _SIZES.get(match[2].upper(), -1) if match else -1.0
    if not max(least, 0) <= size <= _MOST_BYTES:
        text_ = f"is not a size from {least:g} B to 1,000,000 TB"
        raise InputError([Problem("amount.size", f"size {text}", text_, "write 20GB, 8GiB or 500MB")])
    return size


def read_seconds(text: str) -> float:
    """Return seconds of `1s`, `500ms` or `2m`, up to 10^6. InputError for anything else."""
    match = _AMOUNT.match(text)
    seconds = float(match[1]) * _TIMES.get(match[2], -1.0) if match else -1.0
    if not 0 <= seconds <= _MOST_SECONDS:
        text_ = "is not a time of up to 1,000,000 s"
        raise InputError([Problem("amount.time", f"time {text}", text_, "write 1s, 500ms or 2m")])
    return seconds
