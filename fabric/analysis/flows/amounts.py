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
_AMOUNT = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$")


def read_bytes(text: str) -> float:
    """Return bytes of `20GB` (10^9) or `20GiB` (2^30). InputError for anything else."""
    match = _AMOUNT.match(text)
    if not match or match[2].upper() not in _SIZES or float(match[1]) <= 0:
        raise InputError([Problem("amount.size", f"size {text}", "is not a size", "write 20GB, 8GiB or 500MB")])
    return float(match[1]) * _SIZES[match[2].upper()]


def read_seconds(text: str) -> float:
    """Return seconds of `1s`, `500ms` or `2m`. InputError for anything else."""
    match = _AMOUNT.match(text)
    if not match or match[2] not in _TIMES:
        raise InputError([Problem("amount.time", f"time {text}", "is not a time", "write 1s, 500ms or 2m")])
    return float(match[1]) * _TIMES[match[2]]
