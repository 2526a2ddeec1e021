"""Requests to ask the benefit question about: from a CSV trace, or made by a seeded generator; and stress sets.

A trace is a CSV with a header: `arrival_s,input_tokens,output_tokens` and, when known, `session`, `tenant` and
`cached_tokens` (the prefix a cache somewhere already holds). Published traces that name the columns otherwise
(`timestamp`, `ContextTokens`, `GeneratedTokens`, `input_length`, `output_length`) are read too.
"""

from __future__ import annotations

import csv
import io
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabric.files import read_whole
from fabric.kv.model import MOST
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_COLUMNS = {
    "arrival_s": ("arrival_s", "arrival", "timestamp", "TIMESTAMP"),
    "input_tokens": ("input_tokens", "ContextTokens", "input_length", "prompt_tokens"),
    "output_tokens": ("output_tokens", "GeneratedTokens", "output_length", "completion_tokens"),
    "cached_tokens": ("cached_tokens", "hit_tokens"),
    "session": ("session", "session_id", "conversation"),
    "tenant": ("tenant",),
}
_MOST_SECONDS = 1e12
# published traces have millions of lines
_MOST_BYTES = 1 << 30
_REQUIRED = ("arrival_s", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `cached_tokens` of its `input_tokens` lie in a cache on some node."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    session: str = ""
    tenant: str = ""
    cached_tokens: int = 0


def read_trace(path: Path) -> list[Request]:
    """Read a CSV trace. Raises InputError for missing columns and for every line that is not numbers."""
    requests: list[Request] = []
    problems: list[Problem] = []
    try:
        reader = csv.DictReader(io.StringIO(read_whole(path, _MOST_BYTES).decode("utf-8-sig"), newline=""))
        columns = _find_columns(reader.fieldnames or (), str(path))
        for row in reader:
            try:
                requests.append(_from_row(row, columns))
            except ValueError as error:
                problems.append(Problem("kv.trace", "request", str(error), _ROW, str(path), reader.line_num))
    except (UnicodeDecodeError, csv.Error) as error:
        text = f"is not a CSV file: {error}"
        raise InputError([Problem("kv.trace", "trace", text, "give a CSV in UTF-8", str(path))]) from None
    if problems:
        raise InputError(problems)
    if not requests:
        raise InputError([Problem("kv.trace", "trace", "has no request", _ROW, str(path), 1)])
    return requests


def _find_columns(names: Iterable[str], file: str) -> dict[str, str]:
    present = set(names)
    found = {want: name for want, known in _COLUMNS.items() for name in known if name in present}
    missing = [want for want in _REQUIRED if want not in found]
    if missing:
        fix = "a header line with arrival_s,input_tokens,output_tokens"
        raise InputError([Problem("kv.trace", "trace", f"has no column {', '.join(missing)}", fix, file=file, line=1)])
    return found


_ROW = "a line has seconds and whole numbers of tokens, such as 0.5,1200,80; correct it, or leave it out"


def _from_row(row: dict[str, str | None], columns: dict[str, str]) -> Request:
    def said(name: str) -> str:
        return row.get(columns.get(name, "")) or ""

    def number(name: str, kind: type[int] | type[float]) -> float:
        try:
            return kind(said(name))
        except ValueError:
            words = "whole number" if kind is int else "number"
            raise ValueError(f"{name} is no {words}: '{said(name)[:40]}'") from None

    request = Request(
        arrival_s=number("arrival_s", float),
        input_tokens=int(number("input_tokens", int)),
        output_tokens=int(number("output_tokens", int)),
        session=said("session"),
        tenant=said("tenant"),
        cached_tokens=int(number("cached_tokens", int)) if said("cached_tokens") else 0,
    )
    if not 0 <= request.arrival_s <= _MOST_SECONDS:
        raise ValueError(f"arrival_s {request.arrival_s} is not within 0..{_MOST_SECONDS:g}")
    if not (1 <= request.input_tokens <= MOST and 1 <= request.output_tokens <= MOST):
        raise ValueError(
            f"input_tokens {request.input_tokens} and output_tokens {request.output_tokens} must be within 1..{MOST}"
        )
    if not 0 <= request.cached_tokens <= request.input_tokens:
        raise ValueError(f"cached_tokens {request.cached_tokens} is not within 0..{request.input_tokens}")
    return request


def generate(count: int = 400, seed: int = 1, rate_per_s: float = 4.0, sessions: int = 60) -> list[Request]:
    """Return a mixed chat-like set: log-normal lengths, Poisson arrivals, sessions whose context grows by turn."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    now = 0.0
    context: dict[str, int] = {}
    requests = []
    for _ in range(count):
        now += rng.expovariate(rate_per_s)
        session = f"s{rng.randrange(sessions):03d}"
        cached = context.get(session, 0)
        fresh = max(16, int(rng.lognormvariate(6.2, 1.0)))
        output = max(1, int(rng.lognormvariate(4.8, 0.9)))
        tenant = "tenant-a" if int(session[1:]) % 3 else "tenant-b"
        requests.append(Request(now, cached + fresh, output, session, tenant, cached))
        context[session] = (cached + fresh + output) % 120_000
    return requests


def stress_sets(base: list[Request]) -> dict[str, list[Request]]:
    """Return the four sets that break averages, each made from `base`: same arrivals, other shapes.

    Long documents: 16 times the new input. Short requests: 64 tokens in, 16 out, nothing cached. Cache misses: same
    lengths, nothing cached. One big tenant: every request of one tenant, and a fifth of the sessions get all of it.
    """
    sessions = sorted({request.session for request in base})
    few = sessions[: max(1, len(sessions) // 5)]
    return {
        "long documents": [
            replace(r, input_tokens=r.cached_tokens + 16 * (r.input_tokens - r.cached_tokens)) for r in base
        ],
        "short requests": [replace(r, input_tokens=64, output_tokens=16, cached_tokens=0) for r in base],
        "cache misses": [replace(r, cached_tokens=0) for r in base],
        "one big tenant": [
            replace(r, tenant="big", session=few[index % len(few)] if few else "") for index, r in enumerate(base)
        ],
    }
