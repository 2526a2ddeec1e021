"""Move or recompute: terms, break-even points, recorded decisions, and the benefit of the published case."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.kv.benefit import PUBLISHED_CASE, MeasuredCase, by_bucket, verdict
from fabric.kv.link import mtu_share, one_way_bytes_per_second, payload_gbps
from fabric.kv.model import load_model
from fabric.kv.move import (
    Conditions,
    break_even_gbps,
    break_even_tokens,
    decide,
    read_decisions,
    recompute_s,
    replay,
    write_decisions,
)
from fabric.kv.placement import Placement, compare_placements
from fabric.kv.requests import Request, generate, read_trace, stress_sets
from fabric.problem import InputError

pytestmark = pytest.mark.unit

LLAMA = load_model("llama-3.1-70b")


def test_a_port_is_fifty_gigabytes_one_way() -> None:
    assert 400e9 / 8 == 50e9
    assert round(payload_gbps(400), 1) == 392.1
    assert round(payload_gbps(400, mtu=1024), 1) == 370.3
    assert round(mtu_share(), 4) == 0.9804
    assert round(one_way_bytes_per_second(400) / 1e9, 1) == 49.0


def test_terms_add_up_and_are_named() -> None:
    conditions = Conditions(line_gbps=400, efficiency=1.0, queue_s=0.01, read_s=0.02, per_piece_s=0.0, control_s=0.03)
    decision = decide(LLAMA, 61_024, conditions)
    assert decision.moved_bytes == 61_024 * 327_680
    assert decision.terms.wire_s == pytest.approx(61_024 * 327_680 / (50e9 * 4096 / 4178))
    assert decision.move_s == pytest.approx(decision.terms.wire_s + 0.06)
    hidden = decide(LLAMA, 61_024, dataclasses.replace(conditions, prefetch_window_s=0.1))
    assert hidden.move_s == pytest.approx(decision.move_s - 0.1)
    all_hidden = decide(LLAMA, 61_024, dataclasses.replace(conditions, prefetch_window_s=100))
    assert all_hidden.move_s == 0.0


def test_twenty_gigabytes_at_forty_gigabytes_per_second_is_half_a_second() -> None:
    share = 40 / (50 * 4096 / 4178)
    decision = decide(LLAMA, 61_035, Conditions(efficiency=share, control_s=0, per_piece_s=0, block_tokens=1))
    assert decision.terms.wire_s == pytest.approx(0.5, rel=1e-4)


def test_break_even_length_is_the_first_that_wins() -> None:
    conditions = Conditions(prefill_tokens_per_s=20_000, control_s=0.05)
    tokens = break_even_tokens(LLAMA, conditions)
    assert tokens is not None
    assert decide(LLAMA, tokens, conditions).choice == "move"
    assert decide(LLAMA, tokens - 1, conditions).choice == "recompute"
    slow = dataclasses.replace(conditions, line_gbps=1.0)
    assert break_even_tokens(LLAMA, slow) is None


@given(tokens=st.integers(100, 200_000), prefill=st.floats(1_000, 100_000), window=st.floats(0, 0.5))
def test_break_even_bandwidth_is_where_both_take_the_same(tokens: int, prefill: float, window: float) -> None:
    conditions = Conditions(prefill_tokens_per_s=prefill, prefetch_window_s=window, control_s=0.01)
    gbps = break_even_gbps(LLAMA, tokens, conditions)
    if gbps is None:
        assert decide(LLAMA, tokens, dataclasses.replace(conditions, line_gbps=1e9)).choice == "recompute"
        return
    decision = decide(LLAMA, tokens, dataclasses.replace(conditions, line_gbps=gbps))
    assert decision.move_s == pytest.approx(decision.recompute_s, rel=1e-6, abs=1e-9)


def test_recorded_decisions_replay_to_the_same_choice_and_to_others(tmp_path) -> None:
    path = tmp_path / "decisions.jsonl"
    decisions = [decide(LLAMA, n, Conditions(), request=f"r{n}") for n in (10, 1_000, 50_000)]
    assert write_decisions(path, decisions) == 3
    read = read_decisions(path)
    assert read == decisions
    assert all(old == new for old, new in replay(read, {}))
    slower = replay(read, {"line_gbps": 1.0})
    assert [new.choice for _, new in slower] == ["recompute"] * 3
    path.write_text('{"request": 1}\nnot json\n')
    with pytest.raises(InputError) as caught:
        read_decisions(path)
    assert [problem.line for problem in caught.value.problems] == [1, 2]


def test_both_directions_may_not_be_added() -> None:
    with pytest.raises(InputError) as caught:
        decide(LLAMA, 1000, Conditions(efficiency=2.0))
    assert caught.value.problems[0].rule == "kv.direction"
    with pytest.raises(InputError):
        decide(LLAMA, 1000, Conditions(line_gbps=0, queue_s=-1, layout="heap"))


def test_quadratic_prefill() -> None:
    assert recompute_s(1000, Conditions(prefill_tokens_per_s=1000, quadratic_tokens2_per_s=1e6)) == 2.0


def test_published_case() -> None:
    assert PUBLISHED_CASE.fixed_gain_s == pytest.approx(1.12)
    assert verdict(PUBLISHED_CASE) == "not worth it for outputs longer than 49 tokens"
    assert PUBLISHED_CASE.benefit_s(49) > 0 > PUBLISHED_CASE.benefit_s(50)
    included = dataclasses.replace(PUBLISHED_CASE, ttft_includes_transfer=True)
    assert verdict(included) == "not worth it for outputs longer than 57 tokens"


def test_other_cases_of_the_verdict() -> None:
    assert verdict(MeasuredCase(2, 1, 0.05, 0.05, 0.1)) == "worth it for every output length"
    assert verdict(MeasuredCase(1, 1, 0.05, 0.06, 0.1)) == "not worth it for any output length"
    assert verdict(MeasuredCase(1, 1, 0.05, 0.04, 0.1)) == "not worth it for any output length"
    assert MeasuredCase(1.2, 1, 0, 0.1, 0).longest_worth() == 3


@given(gain=st.floats(-2, 5), loss=st.floats(0.001, 0.2), outputs=st.integers(1, 5000), transfer=st.floats(0, 1))
def test_longest_worth_agrees_with_the_formula(gain: float, loss: float, outputs: int, transfer: float) -> None:
    case = MeasuredCase(gain + 5, 5, 0.05, 0.05 + loss, transfer)
    longest = case.longest_worth()
    assert longest is not None
    if abs(case.benefit_s(outputs)) > 1e-6:
        assert (outputs <= longest) == (case.benefit_s(outputs) >= 0)


def test_stress_sets_have_the_shapes_they_name() -> None:
    base = generate(100, seed=3)
    sets = stress_sets(base)
    assert set(sets) == {"long documents", "short requests", "cache misses", "one big tenant"}
    assert all(r.input_tokens == 64 and not r.cached_tokens for r in sets["short requests"])
    assert not any(r.cached_tokens for r in sets["cache misses"])
    assert {r.tenant for r in sets["one big tenant"]} == {"big"}
    longer = zip(sets["long documents"], base, strict=True)
    assert all(new.input_tokens - new.cached_tokens == 16 * (r.input_tokens - r.cached_tokens) for new, r in longer)
    assert generate(100, seed=3) == base


def test_buckets_say_where_it_pays() -> None:
    rows = by_bucket(generate(200), LLAMA, Conditions(), loss_per_token_s=0.0)
    assert sum(row.requests for row in rows) == 200
    assert all(row.benefit_s == pytest.approx(row.saved_s - row.transfer_s - row.extra_decode_s) for row in rows)
    misses = by_bucket(stress_sets(generate(200))["cache misses"], LLAMA, Conditions(), loss_per_token_s=0.02)
    assert all(row.benefit_s < 0 and row.moved_bytes == 0 and row.worth == 0 for row in misses)
    one = by_bucket([Request(0, 200_000, 1, cached_tokens=190_000)], LLAMA, Conditions(), 0.0)
    assert one[0].bucket == "over 131072"
    assert one[0].worth == 1


def test_stickiness_moves_nothing_and_same_node_first_is_never_worse_than_both() -> None:
    outcomes = {o.rule: o for o in compare_placements(generate(400, rate_per_s=20), LLAMA, Conditions(), nodes=8)}
    assert outcomes[Placement.SESSION_STICKY.value].moved_bytes == 0
    assert outcomes[Placement.ROUND_ROBIN.value].moved_bytes > 0
    assert outcomes[Placement.SAME_NODE_FIRST.value].moved_bytes < outcomes[Placement.ROUND_ROBIN.value].moved_bytes
    assert outcomes[Placement.SAME_NODE_FIRST.value].ttft_mean_s <= outcomes[Placement.SESSION_STICKY.value].ttft_mean_s
    assert {o.requests for o in outcomes.values()} == {400}


def test_traces_in_several_dialects(tmp_path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,input_tokens,output_tokens,session,tenant,cached_tokens\n0.5,100,20,s1,acme,60\n")
    assert read_trace(path) == [Request(0.5, 100, 20, "s1", "acme", 60)]
    path.write_text("timestamp,input_length,output_length\n1,2,3\n")
    assert read_trace(path) == [Request(1.0, 2, 3)]
    path.write_text("arrival_s,input_tokens,output_tokens,cached_tokens\nx,1,1,0\n1,0,1,0\n1,5,1,9\n")
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError):
        read_trace(path)
    path.write_text("arrival_s,input_tokens,output_tokens\n")
    with pytest.raises(InputError):
        read_trace(path)
