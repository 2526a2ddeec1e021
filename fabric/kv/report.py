"""How the answers of `fabric.kv` look as text: the formula with its inputs, then a table, then what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.kv.benefit import PUBLISHED_CASE, verdict
from fabric.kv.link import payload_gbps
from fabric.kv.model import load_model, model_names
from fabric.kv.size import kv_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.kv.benefit import BucketBenefit, MeasuredCase
    from fabric.kv.move import Decision
    from fabric.kv.placement import PlacementOutcome
    from fabric.kv.size import KvSize

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Header and rows, ready for `fabric.cli.output.table`."""


def models_table(tokens: int) -> Table:
    """One row per shipped model: attention, layers, bytes per token, and what `tokens` tokens take in FP16."""
    header = ("model", "attention", "layers", "FP16 B/token", "FP8 B/token", f"GB at {tokens}", "GiB")
    rows: list[tuple[str, ...]] = []
    for name in model_names():
        model = load_model(name)
        full = kv_size(model, tokens)
        half = kv_size(model, tokens, dtype="fp8")
        written = (str(full.per_token_written), str(half.per_token_written))
        rows.append((name, model.attention, str(model.layers), *written, _gb(full.exact), _gib(full.exact)))
    return header, rows


def size_lines(size: KvSize) -> list[str]:
    """Formulas with numbers, one line per layer group, and the rounding that was applied."""
    lines = [f"{size.model}, {size.dtype}, {size.tokens} tokens, tp {size.tp}, blocks of {size.block_tokens} tokens"]
    lines += [f"  {g.attention}: {g.formula} = {g.per_token} B per token" for g in size.groups]
    if size.per_token_growing != size.per_token_written:
        lines.append(
            f"  written per token {size.per_token_written} B, growing once windows are full {size.per_token_growing} B"
        )
    lines += [
        f"  {g.attention}: {g.tokens_kept} tokens kept -> {g.blocks} blocks; a layer is {_both(g.per_layer)}"
        for g in size.groups
    ]
    return lines


def size_table(size: KvSize) -> Table:
    """Totals of one sequence in bytes, GB and GiB."""
    named = {
        "exact": size.exact,
        "per sequence, whole blocks": size.per_sequence,
        f"per rank (tp {size.tp})": size.per_rank,
        "all ranks, replicas included": size.all_ranks,
    }
    return ("what", "bytes", "GB", "GiB"), [(name, str(n), _gb(n), _gib(n)) for name, n in named.items()]


def pieces_table(size: KvSize) -> Table:
    """Pieces one rank moves, per layout."""
    header = ("layout", "pieces of one rank", "piece B", "total GB")
    return header, [
        (plan.layout.value, str(part.count), str(part.size), _gb(part.total))
        for plan in size.plans
        for part in plan.pieces
    ]


def move_lines(decision: Decision, tokens: int | None, gbps: float | None) -> list[str]:
    """The decision with its terms, rates and break-even points."""
    c, t = decision.conditions, decision.terms
    ceiling = payload_gbps(c.line_gbps, c.mtu)
    move = f"{decision.move_s * 1e3:.3f} ms = wire {t.wire_s * 1e3:.3f} + queue {t.queue_s * 1e3:.3f}"
    move += f" + reads {t.reads_s * 1e3:.3f} + control {t.control_s * 1e3:.3f} - hidden {t.hidden_s * 1e3:.3f}"
    line = f"{c.ports} x {c.line_gbps:g} Gb/s = {c.ports * c.line_gbps / 8:g} GB/s one way"
    return [
        f"{decision.model}: {decision.tokens} tokens, {_both(decision.moved_bytes)},"
        f" {decision.pieces_per_rank} pieces per rank",
        f"rate        {line}; payload at MTU {c.mtu} at most {ceiling * c.ports / 8:.2f} GB/s,"
        f" {c.efficiency:.0%} of it = {decision.rate_bytes_per_s / 1e9:.2f} GB/s",
        f"T_move      {move}",
        f"T_recompute {decision.recompute_s * 1e3:.3f} ms at {c.prefill_tokens_per_s:g} tokens/s",
        f"choice      {decision.choice}",
        f"break-even  {_tokens(tokens)}; {_rate(gbps)}",
    ]


def replay_table(pairs: Sequence[tuple[Decision, Decision]]) -> Table:
    """One row per replayed decision: what it was, what it is now."""
    header = ("request", "tokens", "was", "move ms", "compute ms", "now", "move ms", "compute ms")
    return header, [(old.request or "-", str(old.tokens), *_chosen(old), *_chosen(new)) for old, new in pairs]


def case_lines(case: MeasuredCase) -> list[str]:
    """The measured case in the words of the formula, and its verdict."""
    within = "within the split TTFT" if case.ttft_includes_transfer else f"{case.transfer_s * 1e3:g} ms"
    saved = case.ttft_together_s - case.ttft_split_s
    lines = [
        f"prefill saved  {case.ttft_together_s:g} - {case.ttft_split_s:g} s = {saved:.3f} s",
        f"KV transfer    {within}",
        f"extra decode   ({case.tpot_split_s * 1e3:g} - {case.tpot_together_s * 1e3:g}) ms x (output tokens - 1)",
        f"verdict        {verdict(case)}",
    ]
    if case == PUBLISHED_CASE:
        lines.insert(0, "the published case (no measured numbers given)")
    return lines


def case_table(case: MeasuredCase, outputs: Sequence[int] = (1, 16, 32, 49, 50, 64, 128, 256, 1024)) -> Table:
    """Benefit in seconds for some output lengths."""
    return ("output tokens", "benefit s"), [(str(n), f"{case.benefit_s(n):+.3f}") for n in outputs]


def buckets_table(sets: dict[str, list[BucketBenefit]]) -> Table:
    """Benefit per request set and input-length bucket, seconds per request."""
    header = ("set", "input tokens", "requests", "saved s", "KV s", "decode s", "benefit s", "worth it", "moved GB")
    return header, [
        (
            name,
            row.bucket,
            str(row.requests),
            f"{row.saved_s:.3f}",
            f"{row.transfer_s:.3f}",
            f"{row.extra_decode_s:.3f}",
            f"{row.benefit_s:+.3f}",
            f"{row.worth}/{row.requests}",
            _gb(row.moved_bytes),
        )
        for name, rows in sets.items()
        for row in rows
    ]


def placements_table(sets: dict[str, list[PlacementOutcome]]) -> Table:
    """Placement rules side by side, per request set."""
    header = ("set", "rule", "TTFT p50 s", "p95 s", "mean s", "moved GB", "moves", "in place", "computed again")
    return header, [
        (
            name,
            o.rule,
            *(f"{value:.3f}" for value in (o.ttft_p50_s, o.ttft_p95_s, o.ttft_mean_s)),
            _gb(o.moved_bytes),
            *(str(count) for count in (o.moves, o.local, o.recomputed)),
        )
        for name, outcomes in sets.items()
        for o in outcomes
    ]


def _chosen(decision: Decision) -> tuple[str, str, str]:
    return decision.choice, _ms(decision.move_s), _ms(decision.recompute_s)


def _gb(count: int) -> str:
    return f"{count / 1e9:.2f}"


def _gib(count: int) -> str:
    return f"{count / 2**30:.2f}"


def _both(count: int) -> str:
    return f"{count} B = {_gb(count)} GB = {_gib(count)} GiB"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _tokens(tokens: int | None) -> str:
    return "moving never wins, whatever the length" if tokens is None else f"moving wins from {tokens} tokens"


def _rate(gbps: float | None) -> str:
    if gbps is None:
        return "no line rate is enough at this length"
    return f"at this length from {gbps:.1f} Gb/s per port ({gbps / 8:.2f} GB/s one way)"
