"""Move the cache or compute it again: five terms, break-even points, and decisions that can be replayed.

    T_move      = bytes / rate + queue + reads + control - hidden
    T_recompute = tokens / prefill_rate + tokens^2 / quadratic_rate

`rate` is payload in one direction. `queue` is the wait before the first byte, `reads` the cost of the source and of
posting each piece, `control` the lookup and handshake, and `hidden` what a prefetch window covers while the request
waits anyway. What is left out: the decode side's own load, congestion that depends on other transfers, and the cost of
keeping the cache in the pool.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from fabric.files import read_whole
from fabric.kv.link import one_way_bytes_per_second
from fabric.kv.model import KvModel, LayerGroup, model_from_data
from fabric.kv.size import Layout, piece_plan
from fabric.problem import InputError, Problem
from fabric.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


METHOD = (
    "T_move = bytes / rate + queue + reads + control - hidden; T_recompute = tokens / prefill rate + tokens^2 / "
    "quadratic rate; rate is payload in one direction"
)
LEFT_OUT = "the decode side's own load, congestion by other transfers (see kv restore), cost of keeping the pool"
_LONGEST = 1 << 24
"""Longest context looked at for a break-even, in tokens."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Everything a decision depends on beside the model. Times in seconds, rates as named.

    `line_gbps` is per port and one way; `efficiency` is the share of the MTU's payload ceiling that is reached.
    `prefill_tokens_per_s` is of the whole group of `tp` ranks; `quadratic_tokens2_per_s` 0 leaves attention's
    quadratic part out. `per_piece_s` is the posting cost of one piece on one rank. Each of the `tp` ranks moves its
    own part at the same time over `ports` ports that all ranks share.
    """

    dtype: str = "fp16"
    tp: int = 1
    block_tokens: int = 16
    layout: str = Layout.LAYER.value
    line_gbps: float = 400.0
    ports: int = 1
    mtu: int = 4096
    efficiency: float = 0.9
    queue_s: float = 0.0
    read_s: float = 0.0
    per_piece_s: float = 1e-6
    control_s: float = 0.002
    prefetch_window_s: float = 0.0
    prefill_tokens_per_s: float = 10_000.0
    quadratic_tokens2_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class MoveTerms:
    """The five terms in seconds. `hidden_s` never exceeds the other four together."""

    wire_s: float
    queue_s: float
    reads_s: float
    control_s: float
    hidden_s: float

    @property
    def total_s(self) -> float:
        """What the request waits for the cache."""
        return self.wire_s + self.queue_s + self.reads_s + self.control_s - self.hidden_s


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision with all it was made from, so that it can be made again under other conditions."""

    request: str
    model: str
    layers: tuple[LayerGroup, ...]
    tokens: int
    conditions: Conditions
    moved_bytes: int
    pieces_per_rank: int
    rate_bytes_per_s: float
    terms: MoveTerms
    move_s: float
    recompute_s: float
    choice: str

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as JSON-ready data."""
        return asdict(self)


def decide(model: KvModel, tokens: int, conditions: Conditions, request: str = "") -> Decision:
    """Choose `move` when it is faster, else `recompute`. Raises InputError for conditions that cannot be."""
    _check(conditions)
    c = conditions
    plan = piece_plan(model, tokens, dtype=c.dtype, tp=c.tp, block_tokens=c.block_tokens, layout=Layout(c.layout))
    moved = plan.total * c.tp
    rate = one_way_bytes_per_second(c.line_gbps, c.ports, c.efficiency, c.mtu)
    reads = c.read_s + plan.count * c.per_piece_s
    visible = moved / rate + c.queue_s + reads + c.control_s
    terms = MoveTerms(moved / rate, c.queue_s, reads, c.control_s, min(c.prefetch_window_s, visible))
    again = recompute_s(tokens, c)
    choice = "move" if terms.total_s < again else "recompute"
    return Decision(
        request, model.name, model.groups, tokens, c, moved, plan.count, rate, terms, terms.total_s, again, choice
    )


def recompute_s(tokens: int, conditions: Conditions) -> float:
    """Return the seconds a prefill of `tokens` tokens takes under `conditions`."""
    square = tokens**2 / conditions.quadratic_tokens2_per_s if conditions.quadratic_tokens2_per_s else 0.0
    return tokens / conditions.prefill_tokens_per_s + square


def break_even_tokens(model: KvModel, conditions: Conditions) -> int | None:
    """Return the shortest context from which moving wins, None when it never does up to 16 M tokens.

    Moving pays its fixed costs once and recompute grows with every token, so whole blocks are searched by halving.
    """
    step = conditions.block_tokens
    found = _first(_LONGEST // step, lambda blocks: decide(model, blocks * step, conditions).choice == "move")
    if found is None:
        return None
    return next(
        tokens
        for tokens in range(max(1, (found - 1) * step), found * step + 1)
        if decide(model, tokens, conditions).choice == "move"
    )


def break_even_gbps(model: KvModel, tokens: int, conditions: Conditions) -> float | None:
    """Return the line rate per port in Gb/s above which moving wins, None when no rate is enough.

    Follows from T_move = T_recompute solved for the rate; 0.0 means even the slowest link wins (all is hidden).
    """
    decision = decide(model, tokens, conditions)
    budget = (
        decision.recompute_s
        + conditions.prefetch_window_s
        - (decision.terms.queue_s + decision.terms.reads_s + decision.terms.control_s)
    )
    if budget <= 0:
        return None
    per_gbps = decision.rate_bytes_per_s / conditions.line_gbps
    return decision.moved_bytes / budget / per_gbps


def write_decisions(path: Path, decisions: Iterable[Decision]) -> int:
    """Append decisions to a JSON lines file; returns how many were written.

    Raises InputError for a file that holds something else, which stays as it is.
    """
    if path.is_file() and path.stat().st_size:
        _require_record(path)
    lines = [json.dumps(decision.to_dict(), sort_keys=True) + "\n" for decision in decisions]
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(lines)
    return len(lines)


def _require_record(path: Path) -> None:
    with path.open("rb") as stream:
        try:
            _recorded(loads(stream.readline(_LONGEST_LINE)))
            stream.seek(-1, os.SEEK_END)
            whole = stream.read() == b"\n"
        except (InputError, ValueError, KeyError, TypeError, AttributeError):
            whole = False
    if not whole:
        text = "holds something else than whole lines of decisions: nothing was added to it"
        raise InputError([Problem("kv.record", path.name, text, "name another file for --record", str(path), 1)])


_LONGEST_LINE = 1 << 20
_RESULTS = ("moved_bytes", "pieces_per_rank", "rate_bytes_per_s", "move_s", "recompute_s")
_RECORD = "lines are what `kvfabric kv move --record` wrote, one decision each"


def read_decisions(path: Path) -> list[Decision]:
    """Read a JSON lines file of decisions. Raises InputError with every line that is not one."""
    decisions: list[Decision] = []
    problems: list[Problem] = []
    try:
        text = read_whole(path).decode()
    except UnicodeDecodeError:
        raise InputError(
            [Problem("kv.decision", path.name, "the file is not UTF-8 text", _RECORD, str(path))]
        ) from None
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            decisions.append(_recorded(loads(line)))
        except InputError as error:
            problems += [replace(problem, file=str(path), line=number) for problem in error.problems]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problems.append(Problem("kv.decision", "recorded decision", str(error), _RECORD, str(path), number))
    if not problems and not decisions:
        problems.append(Problem("kv.decision", path.name, "the file holds no decision", _RECORD, str(path)))
    if problems:
        raise InputError(problems)
    return decisions


def _recorded(data: dict[str, Any]) -> Decision:
    model = model_from_data({"model": data["model"], "layers": data["layers"]})
    conditions = Conditions(**data["conditions"])
    decide(model, data["tokens"], conditions)  # refuses what no decision can have been made from
    numbers = {name: data[name] for name in _RESULTS} | {name: data["terms"][name] for name in MoveTerms.__slots__}
    if odd := [name for name, value in numbers.items() if type(value) not in {int, float} or not 0 <= value < 1e300]:
        raise ValueError(f"{', '.join(odd)} must be a number")
    if data["choice"] not in ("move", "recompute") or not isinstance(data["request"], str):
        raise ValueError("choice must be move or recompute, and request a text")
    return Decision(**{**data, "layers": model.groups, "conditions": conditions, "terms": MoveTerms(**data["terms"])})


def replay(decisions: Iterable[Decision], changes: dict[str, Any]) -> list[tuple[Decision, Decision]]:
    """Make each recorded decision again with `changes` to its conditions; returns (recorded, replayed) pairs.

    The record has the model's layers too, so with no change a replay must give the recorded choice.
    """
    return [
        (old, decide(KvModel(old.model, old.layers), old.tokens, replace(old.conditions, **changes), old.request))
        for old in decisions
    ]


def _first(limit: int, wins: Callable[[int], bool]) -> int | None:
    """Smallest n in 1..limit for which `wins` holds, given that it stays true once it is."""
    if not wins(limit):
        return None
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle + 1, high)
    return low


PATH_MTUS = (256, 512, 1024, 2048, 4096)
"""Path MTUs that InfiniBand and RoCE have, bytes."""
_LIMITS: dict[str, tuple[float, float]] = {
    "tp": (1, 65_536),
    "block_tokens": (1, 65_536),
    "line_gbps": (1e-9, 1e9),
    "ports": (1, 65_536),
    "mtu": (PATH_MTUS[0], PATH_MTUS[-1]),
    "efficiency": (1e-6, 1e6),
    "queue_s": (0, 1e9),
    "read_s": (0, 1e9),
    "per_piece_s": (0, 1e9),
    "control_s": (0, 1e9),
    "prefetch_window_s": (0, 1e9),
    "prefill_tokens_per_s": (1e-6, 1e15),
    "quadratic_tokens2_per_s": (1e-6, 1e24),
}
"""Lowest and highest value of each number of `Conditions`."""
_WHOLE = frozenset({"tp", "block_tokens", "ports"})


def _out_of_limits(name: str, value: object) -> str:
    if name == "mtu":
        return "" if value in PATH_MTUS else f"must be one of {', '.join(map(str, PATH_MTUS))}, is {value!r}"
    low, high = _LIMITS[name]
    if name == "quadratic_tokens2_per_s" and value == 0:
        return ""
    good = isinstance(value, int if name in _WHOLE else int | float) and not isinstance(value, bool)
    if good and isinstance(value, int | float) and low <= value <= high:  # NaN is within no limits
        return ""
    return f"must be a {'whole ' if name in _WHOLE else ''}number from {low:g} to {high:g}, is {value!r}"


def _check(conditions: Conditions) -> None:
    c, usual = conditions, Conditions()
    problems = [
        Problem("kv.conditions", name.replace("_", "-"), text, f"the default is {getattr(usual, name):g}", field=name)
        for name in _LIMITS
        if (text := _out_of_limits(name, getattr(c, name)))
    ]
    if problems:
        raise InputError(problems)
    if c.efficiency > 1:
        text = f"is {c.efficiency}: more than the payload ceiling of one direction"
        problems.append(Problem("kv.direction", "efficiency", text, "a port carries its rate once per direction"))
    if c.layout not in {layout.value for layout in Layout}:
        problems.append(Problem("kv.conditions", "layout", f"is {c.layout!r}", "layer or contiguous"))
    if problems:
        raise InputError(problems)
