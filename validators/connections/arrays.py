"""Arrays inside JSON: numpy arrays travel as compressed base64 with their type, everything else as it is."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np


def packed(value: Any) -> Any:
    """Return `value` with every array (in dicts and lists, at any depth) replaced by JSON-ready data."""
    if isinstance(value, np.ndarray):
        body = zlib.compress(np.ascontiguousarray(value).tobytes(), 1)
        return {"array": base64.b64encode(body).decode(), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: packed(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [packed(part) for part in value]
    return value


def unpacked(value: Any) -> Any:
    """Undo `packed`."""
    if isinstance(value, dict):
        if value.keys() == {"array", "dtype", "shape"}:
            body = zlib.decompress(base64.b64decode(value["array"]))
            return np.frombuffer(body, np.dtype(value["dtype"])).reshape(value["shape"]).copy()
        return {key: unpacked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [unpacked(part) for part in value]
    return value
