"""Exact KV cache sizes: per token, per sequence, per rank, per layer, and the pieces a transfer is made of.

Every size is a whole number of bytes. GB is 10^9 and GiB is 2^30 bytes, and both are always shown, because public
tables mix them. Formulas (b is bytes per element, N tokens, W the window, T tensor-parallel ranks):

    MHA, GQA, MQA   2 x layers x kv_heads x head_dim x b per token
    MLA             layers x (kv_lora_rank + rope_dim) x b per token: K and V are one latent, so no factor 2
    sliding window  as GQA, but a layer holds min(N, W) tokens
    per rank        kv_heads / T heads; one replicated head when T exceeds kv_heads; MLA is not divided
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fabric.kv.model import MOST, Attention
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.kv.model import KvModel, LayerGroup

ELEMENT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
"""Bytes of one element. FP8 scales are not in it: block-scaled layouts add a few percent."""


METHOD = "bytes per token as the formulas say, times tokens kept, in whole blocks"
NOT_COUNTED = (
    "scales of block-scaled FP8 (a few per cent)",
    "the extra block that a sliding window can straddle",
    "fragmentation and metadata of the serving stack",
)


class Layout(StrEnum):
    """How blocks lie in memory, which decides how many pieces a transfer has.

    LAYER: each layer has its own K tensor and V tensor (MLA: one), so a block is one piece per tensor. CONTIGUOUS:
    a block's K and V of all layers of a group lie together, so a block is one piece.
    """

    LAYER = "layer"
    CONTIGUOUS = "contiguous"


@dataclass(frozen=True, slots=True)
class Pieces:
    """`count` pieces of `size` bytes each, all from one layer group."""

    size: int
    count: int

    @property
    def total(self) -> int:
        """Bytes of all pieces."""
        return self.size * self.count


@dataclass(frozen=True, slots=True)
class PiecePlan:
    """What one rank moves for one sequence: the workload of a probe and of the move-or-recompute question."""

    model: str
    dtype: str
    tokens: int
    tp: int
    block_tokens: int
    layout: Layout
    pieces: tuple[Pieces, ...]

    @property
    def count(self) -> int:
        """Pieces of one rank."""
        return sum(part.count for part in self.pieces)

    @property
    def total(self) -> int:
        """Bytes of one rank, whole blocks."""
        return sum(part.total for part in self.pieces)

    @property
    def kernel_config(self) -> str:
        """What makes two caches of the same tokens incompatible, in one word: layout, block and ranks."""
        return f"{self.layout.value}-b{self.block_tokens}-tp{self.tp}"


@dataclass(frozen=True, slots=True)
class GroupSize:
    """Sizes of one layer group in bytes; `per_layer` is one layer of one sequence in whole blocks, all heads."""

    attention: str
    layers: int
    window: int
    per_token: int
    tokens_kept: int
    blocks: int
    per_layer: int
    per_sequence: int
    heads_per_rank: int
    per_rank: int
    formula: str


@dataclass(frozen=True, slots=True)
class KvSize:
    """Sizes of one sequence's cache. `exact` is without block rounding; `growing` leaves windowed layers out."""

    model: str
    dtype: str
    tokens: int
    tp: int
    block_tokens: int
    per_token_written: int
    per_token_growing: int
    exact: int
    per_sequence: int
    per_rank: int
    all_ranks: int
    groups: tuple[GroupSize, ...]
    plans: tuple[PiecePlan, ...]
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data with every total in bytes, GB and GiB."""
        data = {"method": METHOD, **asdict(self), "left_out": [*self.left_out, *NOT_COUNTED]}
        for name in ("exact", "per_sequence", "per_rank", "all_ranks"):
            data[name] = sizes(getattr(self, name))
        data["plans"] = [plan_to_dict(plan) for plan in self.plans]
        return data


def sizes(count: int) -> dict[str, float]:
    """Return a number of bytes as bytes, GB (10^9) and GiB (2^30)."""
    return {"bytes": count, "GB": count / 10**9, "GiB": count / 2**30}


def plan_to_dict(plan: PiecePlan) -> dict[str, Any]:
    """Return a piece plan as JSON-ready data."""
    data = asdict(plan)
    data["layout"] = plan.layout.value
    return {**data, "count": plan.count, "total": sizes(plan.total), "kernel_config": plan.kernel_config}


def kv_size(model: KvModel, tokens: int, dtype: str = "fp16", tp: int = 1, block_tokens: int = 16) -> KvSize:
    """Return all sizes of a sequence of `tokens` tokens on `tp` tensor-parallel ranks.

    Raises InputError for an unknown type, a number below 1, or heads that `tp` does not divide.
    """
    _check(model, tokens, dtype, tp, block_tokens)
    width = ELEMENT_BYTES[dtype]
    groups = tuple(_group_size(group, tokens, dtype, tp, block_tokens) for group in model.groups)
    exact = sum(g.count * g.elements_per_token * width * g.tokens_kept(tokens) for g in model.groups)
    per_rank = sum(group.per_rank for group in groups)
    return KvSize(
        model=model.name,
        dtype=dtype,
        tokens=tokens,
        tp=tp,
        block_tokens=block_tokens,
        per_token_written=sum(group.per_token for group in groups),
        per_token_growing=sum(group.per_token for group in groups if not group.window),
        exact=exact,
        per_sequence=sum(group.per_sequence for group in groups),
        per_rank=per_rank,
        all_ranks=per_rank * tp,
        groups=groups,
        plans=tuple(
            piece_plan(model, tokens, dtype=dtype, tp=tp, block_tokens=block_tokens, layout=layout) for layout in Layout
        ),
        left_out=model.left_out,
    )


def piece_plan(
    model: KvModel,
    tokens: int,
    *,
    dtype: str = "fp16",
    tp: int = 1,
    block_tokens: int = 16,
    layout: Layout = Layout.LAYER,
) -> PiecePlan:
    """Return the pieces one rank moves for one sequence. Raises InputError as `kv_size` does."""
    _check(model, tokens, dtype, tp, block_tokens)
    pieces: dict[int, int] = {}
    for group in model.groups:
        tensors = 1 if group.attention is Attention.MLA else 2
        layer_block = _elements_per_rank(group, tp) * ELEMENT_BYTES[dtype] * block_tokens
        blocks = _blocks(group.tokens_kept(tokens), block_tokens)
        if layout is Layout.LAYER:
            size, count = layer_block // tensors, group.count * tensors * blocks
        else:
            size, count = layer_block * group.count, blocks
        pieces[size] = pieces.get(size, 0) + count
    parts = tuple(Pieces(size, count) for size, count in pieces.items())
    return PiecePlan(model.name, dtype, tokens, tp, block_tokens, layout, parts)


def _group_size(group: LayerGroup, tokens: int, dtype: str, tp: int, block_tokens: int) -> GroupSize:
    width = ELEMENT_BYTES[dtype]
    kept = group.tokens_kept(tokens)
    blocks = _blocks(kept, block_tokens)
    per_layer = group.elements_per_token * width * blocks * block_tokens
    return GroupSize(
        attention=group.attention.value,
        layers=group.count,
        window=group.window,
        per_token=group.count * group.elements_per_token * width,
        tokens_kept=kept,
        blocks=blocks,
        per_layer=per_layer,
        per_sequence=per_layer * group.count,
        heads_per_rank=_heads_per_rank(group, tp),
        per_rank=_elements_per_rank(group, tp) * width * blocks * block_tokens * group.count,
        formula=_formula(group, dtype),
    )


def _formula(group: LayerGroup, dtype: str) -> str:
    width = ELEMENT_BYTES[dtype]
    if group.attention is Attention.MLA:
        return f"{group.count} layers x {group.latent_dim} latent x {width} B"
    window = f", at most {group.window} tokens kept" if group.window else ""
    return f"2 x {group.count} layers x {group.kv_heads} KV heads x {group.head_dim} dim x {width} B{window}"


def _blocks(tokens: int, block_tokens: int) -> int:
    return -(-tokens // block_tokens)


def _heads_per_rank(group: LayerGroup, tp: int) -> int:
    return 0 if group.attention is Attention.MLA else max(1, group.kv_heads // tp)


def _elements_per_rank(group: LayerGroup, tp: int) -> int:
    """Elements one rank keeps per token and layer: heads are split over ranks, a latent is on every rank."""
    if group.attention is Attention.MLA:
        return group.latent_dim
    return 2 * _heads_per_rank(group, tp) * group.head_dim


_TP_HEADS = "tp {} neither divides nor is a multiple of {} KV heads"


def _check(model: KvModel, tokens: int, dtype: str, tp: int, block_tokens: int) -> None:
    subject = f"model {model.name}"
    problems = [
        Problem("kv.positive", subject, f"{name} is {value!r:.40}", f"a whole number from 1 to {MOST}", field=name)
        for name, value in (("tokens", tokens), ("tp", tp), ("block_tokens", block_tokens))
        if type(value) is not int or not 1 <= value <= MOST
    ]
    if dtype not in ELEMENT_BYTES:
        fix = f"one of {', '.join(ELEMENT_BYTES)}"
        problems.append(Problem("kv.dtype", subject, f"unknown element type {dtype!r}", fix, field="dtype"))
    if type(tp) is int and tp > 0:
        problems += [
            Problem(
                "kv.tp-heads", subject, _TP_HEADS.format(tp, group.kv_heads), f"such as {math.gcd(tp, group.kv_heads)}"
            )
            for group in model.groups
            if group.kv_heads and group.kv_heads % tp and tp % group.kv_heads
        ]
    if problems:
        raise InputError(problems)
