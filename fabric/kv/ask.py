"""The questions of `kvfabric kv` put together: which model, which requests, which sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.kv.benefit import by_bucket
from fabric.kv.hf_config import read_config
from fabric.kv.model import explicit_model, load_model
from fabric.kv.placement import compare_placements
from fabric.kv.requests import generate, read_trace, stress_sets
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.kv.benefit import BucketBenefit
    from fabric.kv.model import KvModel
    from fabric.kv.move import Conditions
    from fabric.kv.placement import PlacementOutcome
    from fabric.kv.requests import Request


def chosen_model(
    name: str | None, config: Path | None, layers: int | None, kv_heads: int | None, head_dim: int | None
) -> KvModel:
    """Return the one model that was named: a shipped name, a `config.json`, or three numbers.

    Raises InputError when none or several ways were used.
    """
    numbers = [layers, kv_heads, head_dim]
    ways = [name is not None, config is not None, any(number is not None for number in numbers)]
    fix = "give one of --model NAME, --config FILE, or --layers --kv-heads --head-dim together"
    if sum(ways) != 1:
        raise InputError([Problem("kv.which-model", "model", f"{sum(ways)} ways of naming a model were used", fix)])
    if name is not None:
        return load_model(name)
    if config is not None:
        return read_config(config)
    if layers is None or kv_heads is None or head_dim is None:
        raise InputError([Problem("kv.which-model", "model", "only some of the three numbers are given", fix)])
    return explicit_model(layers, kv_heads, head_dim)


def request_sets(trace: Path | None, count: int, seed: int) -> dict[str, list[Request]]:
    """Return the replay set (a trace, or generated) and the four stress sets made from it, by name."""
    base = read_trace(trace) if trace else generate(count, seed)
    name = "trace" if trace else f"generated (seed {seed})"
    return {name: base, **stress_sets(base)}


def benefit_of_sets(
    sets: dict[str, list[Request]], model: KvModel, conditions: Conditions, loss_per_token_s: float
) -> dict[str, list[BucketBenefit]]:
    """Return the buckets of every set."""
    return {name: by_bucket(requests, model, conditions, loss_per_token_s) for name, requests in sets.items()}


def placements_of_sets(
    sets: dict[str, list[Request]], model: KvModel, conditions: Conditions, nodes: int
) -> dict[str, list[PlacementOutcome]]:
    """Return the outcome of every placement rule for every set."""
    return {name: compare_placements(requests, model, conditions, nodes) for name, requests in sets.items()}
