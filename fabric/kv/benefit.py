"""Is splitting prefill and decode worth the KV transfer? Per request, by output length, and per bucket.

    benefit = prefill saved - KV transfer - extra decode
            = (TTFT_together - TTFT_split) - T_kv - (TPOT_split - TPOT_together) x (output tokens - 1)

TTFT is time to first token and TPOT time per output token after the first, so N output tokens have N - 1 of them.
Left out: throughput gained by batching each phase apart, money, and energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.kv.move import decide, recompute_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.kv.model import KvModel
    from fabric.kv.move import Conditions
    from fabric.kv.requests import Request

METHOD = "benefit = prefill saved - KV transfer - extra decode, per request; N output tokens have N - 1 intervals"
LEFT_OUT = "throughput gained by batching each phase apart, evictions, congestion between moves, money, energy"
BUCKETS = (512, 2_048, 8_192, 32_768, 131_072)
"""Upper bounds of the input-length buckets, in tokens; longer requests share a last bucket."""


@dataclass(frozen=True, slots=True)
class MeasuredCase:
    """What was measured with both phases together and with them split; seconds.

    `ttft_includes_transfer` is true when the split TTFT was taken at the first token the decode side gave out, so
    that the transfer is in it already.
    """

    ttft_together_s: float
    ttft_split_s: float
    tpot_together_s: float
    tpot_split_s: float
    transfer_s: float
    ttft_includes_transfer: bool = False

    @property
    def fixed_gain_s(self) -> float:
        """What a request gains once, whatever its output length."""
        transfer = 0.0 if self.ttft_includes_transfer else self.transfer_s
        return self.ttft_together_s - self.ttft_split_s - transfer

    @property
    def loss_per_token_s(self) -> float:
        """What each output token after the first costs more when split."""
        return self.tpot_split_s - self.tpot_together_s

    def benefit_s(self, output_tokens: int) -> float:
        """Return the seconds a request of `output_tokens` gains by the split; negative means it loses."""
        return self.fixed_gain_s - self.loss_per_token_s * (output_tokens - 1)

    def longest_worth(self) -> int | None:
        """Return the longest output that still gains or breaks even; None when every length does, 0 when none does."""
        if self.loss_per_token_s <= 0:
            return None if self.fixed_gain_s >= 0 else 0
        if self.fixed_gain_s < 0:
            return 0
        # 1e-9 keeps a quotient that is whole in decimals whole in binary too
        return math.floor(self.fixed_gain_s / self.loss_per_token_s + 1e-9) + 1


PUBLISHED_CASE = MeasuredCase(3.4, 2.1, 0.045, 0.068, 0.180)
"""The case of the architecture notes: TTFT 3.4 to 2.1 s, TPOT 45 to 68 ms, KV transfer 180 ms at p95."""


def verdict(case: MeasuredCase) -> str:
    """Say in a sentence for which outputs the split is worth it."""
    longest = case.longest_worth()
    if longest is None:
        return "worth it for every output length"
    if longest == 0:
        return "not worth it for any output length"
    return f"not worth it for outputs longer than {longest} tokens"


@dataclass(frozen=True, slots=True)
class BucketBenefit:
    """Sums over the requests of one input-length bucket, seconds per request (means) and bytes in total."""

    bucket: str
    requests: int
    saved_s: float
    transfer_s: float
    extra_decode_s: float
    benefit_s: float
    worth: int
    moved_bytes: int


def by_bucket(
    requests: Sequence[Request], model: KvModel, conditions: Conditions, loss_per_token_s: float
) -> list[BucketBenefit]:
    """Return the benefit of moving each request's cached prefix instead of computing it, per input bucket.

    A request with no cached prefix saves nothing and moves nothing. Where recompute would be faster than the move the
    request recomputes, so its benefit is only the decode term.
    """
    rows = []
    for low, high in zip((0, *BUCKETS), (*BUCKETS, None), strict=True):
        chosen = [r for r in requests if r.input_tokens > low and (high is None or r.input_tokens <= high)]
        if chosen:
            name = f"{low + 1}-{high}" if high else f"over {low}"
            rows.append(_bucket(name, chosen, model, conditions, loss_per_token_s))
    return rows


def _bucket(
    name: str, requests: Sequence[Request], model: KvModel, conditions: Conditions, loss_per_token_s: float
) -> BucketBenefit:
    saved = transfer = extra = 0.0
    worth = moved = 0
    for request in requests:
        gain, cost, size = _moved(request, model, conditions)
        decode = loss_per_token_s * (request.output_tokens - 1)
        saved, transfer, extra, moved = saved + gain, transfer + cost, extra + decode, moved + size
        worth += gain - cost - decode > 0
    n = len(requests)
    return BucketBenefit(name, n, saved / n, transfer / n, extra / n, (saved - transfer - extra) / n, worth, moved)


def _moved(request: Request, model: KvModel, conditions: Conditions) -> tuple[float, float, int]:
    if not request.cached_tokens:
        return 0.0, 0.0, 0
    decision = decide(model, request.cached_tokens, conditions)
    if decision.choice == "recompute":
        return 0.0, 0.0, 0
    # what moving saves is the prefill of the cached part in the context of the whole prompt
    fresh = request.input_tokens - request.cached_tokens
    whole = recompute_s(request.input_tokens, conditions)
    left = recompute_s(fresh, conditions) if fresh else 0.0
    return whole - left, decision.move_s, decision.moved_bytes
