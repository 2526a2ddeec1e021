"""KV sizes against published figures, and properties that hold for every model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.kv.hf_config import model_from_config, read_config
from fabric.kv.model import Attention, explicit_model, load_model, model_from_data, model_names
from fabric.kv.size import Layout, kv_size, piece_plan
from fabric.problem import InputError

pytestmark = pytest.mark.unit

_128K = 131_072
_TABLE = [
    # model, FP16 bytes per token, FP8 bytes per token, GB of 128K tokens in FP16 as published or computed by hand
    ("reference-mha", 6_291_456, 3_145_728, "824.63"),
    ("llama-3.1-8b", 131_072, 65_536, "17.18"),
    ("llama-3.1-70b", 327_680, 163_840, "42.95"),
    ("llama-3.1-405b", 516_096, 258_048, "67.65"),
    ("qwen3-8b", 147_456, 73_728, "19.33"),
    ("qwen3-235b-a22b", 192_512, 96_256, "25.23"),
    ("gpt-oss-120b", 73_728, 36_864, "4.84"),
    ("mixtral-8x7b", 131_072, 65_536, "17.18"),
    ("mixtral-8x22b", 229_376, 114_688, "30.06"),
    ("opt-66b", 2_359_296, 1_179_648, "309.24"),
    ("deepseek-v3", 70_272, 35_136, "9.21"),
    ("deepseek-r1", 70_272, 35_136, "9.21"),
    ("falcon-7b", 8_192, 4_096, "1.07"),
]


@pytest.mark.parametrize(("name", "fp16", "fp8", "gigabytes"), _TABLE)
def test_published_sizes_are_met_exactly(name: str, fp16: int, fp8: int, gigabytes: str) -> None:
    model = load_model(name)
    size = kv_size(model, _128K)
    assert size.per_token_written == fp16
    assert kv_size(model, _128K, dtype="fp8").per_token_written == fp8
    assert f"{size.per_sequence / 1e9:.2f}" == gigabytes


def test_every_shipped_model_is_in_the_table() -> None:
    assert set(model_names()) == {row[0] for row in _TABLE}


def test_gibibytes_of_published_figures() -> None:
    assert kv_size(load_model("reference-mha"), _128K).to_dict()["per_sequence"]["GiB"] == 768.0
    assert kv_size(load_model("llama-3.1-70b"), _128K).to_dict()["per_sequence"]["GiB"] == 40.0
    assert kv_size(load_model("qwen3-8b"), 32_768).to_dict()["per_sequence"]["GiB"] == 4.5
    assert kv_size(load_model("opt-66b"), 512).to_dict()["per_sequence"]["GiB"] == 1.125
    assert round(kv_size(load_model("deepseek-v3"), 2**20).to_dict()["exact"]["GiB"], 1) == 68.6


def test_windowed_layers_stop_growing() -> None:
    model = load_model("gpt-oss-120b")
    size = kv_size(model, _128K)
    assert size.per_token_growing == 36_864
    assert size.exact == 36_864 * _128K + 36_864 * 128
    assert kv_size(model, 64).exact == 73_728 * 64
    assert f"{73_728 * _128K / 1e9:.2f}" == "9.66"


def test_llama_70b_pieces_as_a_serving_stack_posts_them() -> None:
    plan = piece_plan(load_model("llama-3.1-70b"), tokens=118 * 16, tp=8, block_tokens=16)
    assert [(part.size, part.count) for part in plan.pieces] == [(4096, 80 * 2 * 118)]
    together = piece_plan(load_model("llama-3.1-70b"), 118 * 16, tp=8, block_tokens=16, layout=Layout.CONTIGUOUS)
    assert [(part.size, part.count) for part in together.pieces] == [(4096 * 160, 118)]


def test_mla_is_replicated_and_has_one_tensor_per_layer() -> None:
    size = kv_size(load_model("deepseek-v3"), 1000, tp=8, block_tokens=64)
    assert size.per_rank == size.per_sequence
    assert size.all_ranks == 8 * size.per_sequence
    plan = piece_plan(load_model("deepseek-v3"), 1000, tp=8, block_tokens=64)
    assert [(part.size, part.count) for part in plan.pieces] == [(64 * 576 * 2, 61 * 16)]


def test_heads_are_replicated_above_their_number() -> None:
    model = load_model("llama-3.1-70b")
    assert kv_size(model, 1600, tp=16).per_rank == kv_size(model, 1600, tp=8).per_rank
    assert kv_size(model, 1600, tp=16).all_ranks == 2 * kv_size(model, 1600, tp=1).per_sequence


def test_twenty_gigabytes_is_sixty_one_thousand_tokens_of_llama_70b() -> None:
    assert 20e9 // kv_size(load_model("llama-3.1-70b"), 1).per_token_written == 61_035


@given(
    tokens=st.integers(1, 300_000),
    name=st.sampled_from(sorted(row[0] for row in _TABLE)),
    block=st.sampled_from([1, 8, 16, 32, 64, 128, 256]),
    tp=st.sampled_from([1, 2, 4, 8]),
    dtype=st.sampled_from(["fp16", "fp8", "fp32"]),
)
def test_pieces_add_up_to_the_rank(tokens: int, name: str, block: int, tp: int, dtype: str) -> None:
    model = load_model(name)
    if any(group.kv_heads and group.kv_heads % tp and tp % group.kv_heads for group in model.groups):
        with pytest.raises(InputError):
            kv_size(model, tokens, dtype, tp, block)
        return
    size = kv_size(model, tokens, dtype, tp, block)
    assert all(plan.total == size.per_rank for plan in size.plans)
    assert size.exact <= size.per_sequence < size.exact + size.per_token_written * block
    assert size.per_sequence == sum(group.per_layer * group.layers for group in size.groups)


def test_config_json_of_each_family() -> None:
    llama = {"num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "hidden_size": 8192}
    assert kv_size(model_from_config(llama, "x"), 1).per_token_written == 327_680
    deepseek = {"num_hidden_layers": 61, "num_attention_heads": 128, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    assert kv_size(model_from_config(deepseek, "x"), 1).per_token_written == 70_272
    gpt2 = {"n_layer": 12, "n_head": 12, "n_embd": 768}
    assert model_from_config(gpt2, "x").groups[0].attention is Attention.MHA
    falcon = {"num_hidden_layers": 32, "num_attention_heads": 71, "hidden_size": 4544, "multi_query": True}
    assert kv_size(model_from_config(falcon, "x"), 1).per_token_written == 8192
    falcon40 = {**falcon, "num_attention_heads": 128, "num_kv_heads": 8, "hidden_size": 8192}
    falcon40["new_decoder_architecture"] = True
    assert model_from_config(falcon40, "x").groups[0].kv_heads == 8


def test_config_json_with_windows() -> None:
    types = ["sliding_attention", "full_attention"] * 18
    oss = {"num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64}
    model = model_from_config({**oss, "sliding_window": 128, "layer_types": types}, "x")
    assert kv_size(model, _128K).exact == kv_size(load_model("gpt-oss-120b"), _128K).exact
    unused = model_from_config({**oss, "sliding_window": 128, "use_sliding_window": False}, "x")
    assert unused.groups[0].window == 0
    pattern = model_from_config({**oss, "sliding_window": 1024, "sliding_window_pattern": 6}, "x")
    assert {group.window: group.count for group in pattern.groups} == {1024: 30, 0: 6}
    hybrid = model_from_config({**oss, "layer_types": ["linear_attention"] * 27 + ["full_attention"] * 9}, "x")
    assert hybrid.layers == 9
    assert "27 layers" in hybrid.left_out[0]
    nested = model_from_config({"text_config": oss, "vision_config": {}}, "x")
    assert nested.layers == 36


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"num_hidden_layers": 3}'])
def test_bad_config_json_is_an_input_error(tmp_path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(InputError):
        read_config(path)


def test_bad_input_is_reported_together() -> None:
    with pytest.raises(InputError) as caught:
        kv_size(load_model("llama-3.1-8b"), 0, dtype="fp3", tp=3)
    assert {problem.rule for problem in caught.value.problems} == {"kv.positive", "kv.dtype", "kv.tp-heads"}
    with pytest.raises(InputError):
        load_model("no-such-model")
    with pytest.raises(InputError):
        model_from_data({"model": "m", "layers": [{"count": 1, "attention": "gqa"}]})
    with pytest.raises(InputError):
        model_from_data({"model": "m", "layers": [{"count": 1, "attention": "magic"}]})
    with pytest.raises(InputError):
        model_from_data({"model": "m"})


def test_explicit_numbers() -> None:
    assert kv_size(explicit_model(32, 8, 128), 1).per_token_written == 131_072
    assert explicit_model(2, 1, 8).groups[0].attention is Attention.MQA
    assert explicit_model(2, 4, 8, window=64).groups[0].tokens_kept(100) == 64
