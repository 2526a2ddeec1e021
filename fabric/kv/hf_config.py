"""Reads the `config.json` that a Hugging Face model repository carries, as far as it decides the KV cache.

Field names are those of the transformers library's configuration classes; families that use other words (GPT-2's
`n_layer`, Falcon's `multi_query`) are folded into the same few numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fabric.files import read_whole
from fabric.kv.model import MOST, Attention, KvModel, LayerGroup
from fabric.problem import InputError, Problem
from fabric.strict_json import loads

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
_HIDDEN = ("hidden_size", "n_embd", "d_model")
_OPTIONAL = (
    *_KV_HEADS, "kv_lora_rank", "qk_rope_head_dim", "head_dim", "sliding_window", "attention_chunk_size",
    "sliding_window_pattern", "max_window_layers",
)  # fmt: skip
_MOST_LAYERS = 100_000
_WINDOWED = {"sliding_attention", "chunked_attention", "local_attention"}
_FULL = {"full_attention", "attention", "global_attention"}


_WHERE = "give the config.json that lies beside the model's weights"


def read_config(path: Path) -> KvModel:
    """Return the model a `config.json` describes. Raises InputError when it cannot be read or lacks a number."""
    try:
        data = loads(read_whole(path))
    except ValueError as error:
        text = f"is not JSON: {error}"
        raise InputError([Problem("kv.config-json", path.name, text, _WHERE, str(path), 1)]) from error
    if not isinstance(data, dict):
        raise InputError([Problem("kv.config-json", path.name, "is not a JSON object", _WHERE, str(path), 1)])
    return model_from_config(data, name=_name(data, path), file=str(path))


def model_from_config(data: dict[str, Any], name: str, file: str = "") -> KvModel:
    """Build the model from the parsed JSON. Multimodal files keep the language part under `text_config`."""
    text = data.get("text_config")
    config: dict[str, Any] = {**data, **text} if isinstance(text, dict) else data
    _check_optional(config, name, file)
    layers = _number(config, _LAYERS, name, file, _MOST_LAYERS)
    heads = _number(config, _HEADS, name, file)
    kinds, left_out = _kinds(config, layers)
    if not kinds:
        text, fix = "no layer of it keeps keys and values", f"layer_types has {', '.join(sorted(_WINDOWED | _FULL))}"
        raise InputError([Problem("kv.no-layers", f"model {name}", text, fix, file, field="layer_types")])
    if config.get("kv_lora_rank"):
        latent = int(config["kv_lora_rank"]) + int(config.get("qk_rope_head_dim") or 0)
        groups = [LayerGroup(len(kinds), Attention.MLA, latent_dim=latent)]
    else:
        kv_heads = _kv_heads(config, heads)
        head_dim = int(config.get("head_dim") or _number(config, _HIDDEN, name, file) // heads)
        groups = _groups(kinds, heads, kv_heads, head_dim)
    source = f"config.json ({config.get('model_type', 'unknown type')})"
    return KvModel(name, tuple(groups), query_heads=heads, title=name, source=source, left_out=tuple(left_out))


def _name(data: dict[str, Any], path: Path) -> str:
    given = str(data.get("_name_or_path") or "").rstrip("/")
    return Path(given).name.lower() if given else path.resolve().parent.name


def _number(config: dict[str, Any], names: tuple[str, ...], model: str, file: str, most: int = MOST) -> int:
    for name in names:
        value = config.get(name)
        if type(value) is int and 1 <= value <= most:
            return value
    text = f"none of {', '.join(names)} is a whole number from 1 to {most}"
    fix = f"give {names[0]}, or say --layers, --kv-heads and --head-dim"
    raise InputError([Problem("kv.config-field", f"model {model}", text, fix, file, field=names[0])])


def _check_optional(config: dict[str, Any], model: str, file: str) -> None:
    """Fields that may be absent or null, but must be numbers when they are there."""
    problems = [
        Problem("kv.config-field", f"model {model}", text, "correct it, or leave it out", file=file, field=name)
        for name in _OPTIONAL
        if (value := config.get(name)) is not None and (type(value) is not int or not 0 <= value <= MOST)
        for text in [f"{name} must be a whole number from 0 to {MOST}, is {value!r:.40}"]
    ]
    if problems:
        raise InputError(problems)


def _kv_heads(config: dict[str, Any], heads: int) -> int:
    for name in _KV_HEADS:
        if isinstance(config.get(name), int) and (config.get("new_decoder_architecture") or not _multi_query(config)):
            return int(config[name])
    return 1 if _multi_query(config) else heads


def _multi_query(config: dict[str, Any]) -> bool:
    return bool(config.get("multi_query")) and not config.get("new_decoder_architecture")


def _kinds(config: dict[str, Any], layers: int) -> tuple[list[int], list[str]]:
    """Return the window of each layer that keeps KV (0: full), and what was left out."""
    window = int(config.get("sliding_window") or config.get("attention_chunk_size") or 0)
    if config.get("use_sliding_window") is False:
        window = 0
    types = config.get("layer_types")
    if isinstance(types, list):
        known = [kind for kind in map(str, types) if kind in _WINDOWED | _FULL]
        windows = [window if kind in _WINDOWED else 0 for kind in known]
        others = len(types) - len(windows)
        note = f"{others} layers keep a state of constant size per sequence, which is not counted"
        return windows, [note] if others else []
    pattern = config.get("sliding_window_pattern")
    if window and isinstance(pattern, int) and pattern > 1:
        return [0 if (index + 1) % pattern == 0 else window for index in range(layers)], []
    if window and config.get("use_sliding_window") and isinstance(config.get("max_window_layers"), int):
        first = int(config["max_window_layers"])
        return [0 if index < first else window for index in range(layers)], []
    return [window] * layers, []


def _groups(windows: list[int], heads: int, kv_heads: int, head_dim: int) -> list[LayerGroup]:
    full = Attention.MHA if kv_heads == heads else Attention.MQA if kv_heads == 1 else Attention.GQA
    return [
        LayerGroup(
            windows.count(window), Attention.SLIDING_WINDOW if window else full, kv_heads, head_dim, window=window
        )
        for window in dict.fromkeys(windows)
    ]
