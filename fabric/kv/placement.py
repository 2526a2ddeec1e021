"""Placement rules compared on one request set: where a request runs decides whether its cache must move.

A small first-come-first-served model: `nodes` nodes, each prefills one request at a time, a session's cache lies on the
node that served it last. What it leaves out: decode batching, evictions, and congestion between the moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from fabric.kv.move import decide, recompute_s

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.kv.model import KvModel
    from fabric.kv.move import Conditions
    from fabric.kv.requests import Request


class Placement(StrEnum):
    """How a node is chosen.

    ROUND_ROBIN: the next one. LEAST_LOADED: the first to be free. SESSION_STICKY: always the session's node.
    SAME_NODE_FIRST: the session's node unless waiting there costs more than moving the cache to the first free one.
    """

    ROUND_ROBIN = "round robin"
    LEAST_LOADED = "least loaded"
    SESSION_STICKY = "session stickiness"
    SAME_NODE_FIRST = "same node first"


@dataclass(frozen=True, slots=True)
class PlacementOutcome:
    """What a rule gave: time to first token (seconds), what was moved, computed again, and found in place."""

    rule: str
    requests: int
    ttft_p50_s: float
    ttft_p95_s: float
    ttft_mean_s: float
    moved_bytes: int
    moves: int
    recomputed: int
    local: int


@dataclass(slots=True)
class _Run:
    free_at: list[float]
    home: dict[str, int]
    turn: int = 0


@dataclass(frozen=True, slots=True)
class _Cost:
    busy_s: float
    moved_bytes: int
    kind: str


def compare_placements(
    requests: Sequence[Request], model: KvModel, conditions: Conditions, nodes: int = 8
) -> list[PlacementOutcome]:
    """Run every rule over the same requests and return one outcome per rule, in the order of `Placement`."""
    return [_simulate(rule, requests, model, conditions, nodes) for rule in Placement]


def _simulate(
    rule: Placement, requests: Sequence[Request], model: KvModel, conditions: Conditions, nodes: int
) -> PlacementOutcome:
    run = _Run([0.0] * nodes, {})
    waits: list[float] = []
    costs: list[_Cost] = []
    for request in sorted(requests, key=lambda r: r.arrival_s):
        node = _CHOOSE[rule](run, request, model, conditions)
        cost = _cost(run, request, node, model, conditions)
        start = max(request.arrival_s, run.free_at[node])
        run.free_at[node] = start + cost.busy_s
        waits.append(start + cost.busy_s - request.arrival_s)
        costs.append(cost)
        if request.session:
            run.home[request.session] = node
    waits.sort()
    kinds = [cost.kind for cost in costs]
    return PlacementOutcome(
        rule=rule.value,
        requests=len(waits),
        ttft_p50_s=_percentile(waits, 0.5),
        ttft_p95_s=_percentile(waits, 0.95),
        ttft_mean_s=sum(waits) / len(waits) if waits else 0.0,
        moved_bytes=sum(cost.moved_bytes for cost in costs),
        moves=kinds.count("move"),
        recomputed=kinds.count("recompute"),
        local=kinds.count("local"),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _cost(run: _Run, request: Request, node: int, model: KvModel, conditions: Conditions) -> _Cost:
    whole = recompute_s(request.input_tokens, conditions)
    home = run.home.get(request.session)
    if not request.cached_tokens or home is None:
        return _Cost(whole, 0, "fresh" if not request.cached_tokens else "recompute")
    fresh = request.input_tokens - request.cached_tokens
    left = recompute_s(fresh, conditions) if fresh else 0.0
    if home == node:
        return _Cost(left, 0, "local")
    decision = decide(model, request.cached_tokens, conditions)
    if decision.choice == "recompute":
        return _Cost(whole, 0, "recompute")
    return _Cost(left + decision.move_s, decision.moved_bytes, "move")


def _round_robin(run: _Run, request: Request, model: KvModel, conditions: Conditions) -> int:
    del request, model, conditions
    run.turn = (run.turn + 1) % len(run.free_at)
    return run.turn


def _least_loaded(run: _Run, request: Request, model: KvModel, conditions: Conditions) -> int:
    del request, model, conditions
    return min(range(len(run.free_at)), key=run.free_at.__getitem__)


def _sticky(run: _Run, request: Request, model: KvModel, conditions: Conditions) -> int:
    return run.home.get(request.session, _least_loaded(run, request, model, conditions))


def _same_node_first(run: _Run, request: Request, model: KvModel, conditions: Conditions) -> int:
    other = _least_loaded(run, request, model, conditions)
    home = run.home.get(request.session, other)
    here = max(request.arrival_s, run.free_at[home]) + _cost(run, request, home, model, conditions).busy_s
    there = max(request.arrival_s, run.free_at[other]) + _cost(run, request, other, model, conditions).busy_s
    return home if here <= there else other


_CHOOSE: dict[Placement, Callable[[_Run, Request, KvModel, Conditions], int]] = {
    Placement.ROUND_ROBIN: _round_robin,
    Placement.LEAST_LOADED: _least_loaded,
    Placement.SESSION_STICKY: _sticky,
    Placement.SAME_NODE_FIRST: _same_node_first,
}
