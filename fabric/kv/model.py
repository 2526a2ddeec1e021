"""What of a model decides the size of its KV cache: layers by kind of attention, heads, dimensions, windows.

A model is a list of layer groups, so that hybrids (some layers full, some windowed) need no special case. The
shipped models are YAML files beside this module; a new model is a new file. Sources are the models' public
`config.json` files, named in each YAML.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fabric.problem import InputError, Problem

_MODELS = Path(__file__).parent / "models"


MOST = 1_000_000_000
"""Largest number of layers, heads, elements or tokens that is believed."""


class Attention(StrEnum):
    """How a layer keeps keys and values.

    MHA: one K and one V head per query head. GQA: query heads share `kv_heads` of them. MQA: one for all. MLA: one
    compressed latent per token for K and V together. SLIDING_WINDOW: as GQA, but only the last `window` tokens.
    """

    MHA = "mha"
    GQA = "gqa"
    MQA = "mqa"
    MLA = "mla"
    SLIDING_WINDOW = "sliding-window"


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` layers of one kind. `head_dim` and `latent_dim` are elements, `window` is tokens (0: all of them)."""

    count: int
    attention: Attention
    kv_heads: int = 0
    head_dim: int = 0
    latent_dim: int = 0
    window: int = 0

    @property
    def elements_per_token(self) -> int:
        """Elements one layer of the group keeps for one token, all heads, K and V together."""
        return self.latent_dim if self.attention is Attention.MLA else 2 * self.kv_heads * self.head_dim

    def tokens_kept(self, tokens: int) -> int:
        """Tokens a layer still holds after `tokens` were seen."""
        return min(tokens, self.window) if self.window else tokens


@dataclass(frozen=True, slots=True)
class KvModel:
    """A model as the KV cache sees it. `left_out` says what its size does not include (state-space layers, ...)."""

    name: str
    groups: tuple[LayerGroup, ...]
    query_heads: int = 0
    title: str = ""
    source: str = ""
    left_out: tuple[str, ...] = field(default=())

    @property
    def layers(self) -> int:
        """Layers that keep keys and values."""
        return sum(group.count for group in self.groups)

    @property
    def attention(self) -> str:
        """The kinds of attention in use, joined by `+`."""
        return "+".join(dict.fromkeys(group.attention.value for group in self.groups))


def model_names() -> tuple[str, ...]:
    """Names of the shipped models, sorted."""
    return tuple(sorted(path.stem for path in _MODELS.glob("*.yaml")))


@cache
def load_model(name: str) -> KvModel:
    """Return a shipped model by name. Raises InputError when there is none of that name."""
    path = _MODELS / f"{name}.yaml"
    if name not in model_names():
        close = ", ".join(model_names())
        fix = f"one of {close}; or use --config config.json, or --layers --kv-heads --head-dim"
        raise InputError([Problem("kv.unknown-model", f"model {name}", "there is no such model file", fix)])
    return model_from_data(yaml.safe_load(path.read_text(encoding="utf-8")), str(path))


_GROUP = "a group of layers is {count: 80, attention: gqa, kv_heads: 8, head_dim: 128}"


_WHOLE = f"must be a whole number from 1 to {MOST}"


def model_from_data(data: dict[str, Any], file: str = "") -> KvModel:
    """Build a model from the YAML form. Raises InputError with every layer group that makes no sense."""
    name = str(data.get("model", "unnamed"))
    groups: list[LayerGroup] = []
    problems: list[Problem] = []
    for index, raw in enumerate(data.get("layers") or []):
        try:
            groups.append(LayerGroup(**{**raw, "attention": Attention(raw.get("attention"))}))
        except (TypeError, ValueError) as error:
            where = f"layers[{index}]"
            problems.append(Problem("kv.layer-group", f"model {name}", str(error), _GROUP, file, field=where))
    problems += [problem for group in groups for problem in _check_group(name, group, file)]
    if not groups and not problems:
        problems.append(Problem("kv.no-layers", f"model {name}", "has no layer group", _GROUP, file, field="layers"))
    if problems:
        raise InputError(problems)
    return KvModel(
        name=name,
        groups=tuple(groups),
        query_heads=int(data.get("query_heads", 0)),
        title=str(data.get("title", name)),
        source=str(data.get("source", "")),
        left_out=tuple(data.get("left_out", ())),
    )


def explicit_model(layers: int, kv_heads: int, head_dim: int, window: int = 0) -> KvModel:
    """Return a model of equal layers given by hand. `window` 0 means every token is kept."""
    kind = Attention.SLIDING_WINDOW if window else Attention.MQA if kv_heads == 1 else Attention.GQA
    group = {"count": layers, "attention": kind.value, "kv_heads": kv_heads, "head_dim": head_dim, "window": window}
    return model_from_data({"model": f"{layers}x{kv_heads}x{head_dim}", "layers": [group], "source": "given by hand"})


def _check_group(name: str, group: LayerGroup, file: str) -> list[Problem]:
    needs = {"count": group.count}
    if group.attention is Attention.MLA:
        needs["latent_dim"] = group.latent_dim
    else:
        needs |= {"kv_heads": group.kv_heads, "head_dim": group.head_dim}
    if group.attention is Attention.SLIDING_WINDOW:
        needs["window"] = group.window
    return [
        Problem("kv.layer-group", f"model {name}", f"{key} {_WHOLE}, is {value!r:.40}", _GROUP, file)
        for key, value in needs.items()
        if type(value) is not int or not 1 <= value <= MOST
    ]
