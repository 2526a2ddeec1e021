"""The identity every block carries, written by its owner and checked where it arrives.

A green completion says that bytes moved, not that they are the right bytes. So each piece starts with 64 bytes, eight
little-endian words of 64 bits:

    0 magic      1 name space  2 key          3 position
    4 generation 5 index       6 payload size 7 checksum of words 0..6 and the payload

Name space: model, precision and kernel configuration. Key: content hash of a shared prefix, or the session of a private
suffix (bit 63 of the position tells them apart). Index: place of the piece in its transfer. The verdicts are separate
because their causes are: damaged bytes, a block of an older generation, another name space, another block, no block.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import random
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADER_BYTES = 64
_MAGIC = 0x4B56_4642_0001_0000
_SUM64, _CRC32 = 1, 2
_WORDS = struct.Struct("<8Q")
_PRIVATE = 1 << 63
_CHUNK_BYTES = 1 << 22
_WORTH_NUMPY_BYTES = 16 << 20
"""Importing numpy takes longer than checking less than this without it."""

OK, DAMAGED, STALE, NAME_SPACE, OTHER_BLOCK, MISSING = (
    "ok", "damaged", "stale generation", "wrong name space", "wrong block", "not written",
)  # fmt: skip
VERDICTS = (OK, DAMAGED, STALE, NAME_SPACE, OTHER_BLOCK, MISSING)


@dataclass(frozen=True)
class Identity:
    """Whose blocks these are. `content` names a shared prefix; without it `session` names a private suffix."""

    model: str
    precision: str
    kernel_config: str
    generation: int
    content: str = ""
    session: str = ""
    first_position: int = 0

    @property
    def name_space(self) -> int:
        """64 bits over what makes caches of equal tokens incompatible."""
        return _digest("\0".join((self.model, self.precision, self.kernel_config)))

    @property
    def key(self) -> int:
        """64 bits of the prefix content or of the session."""
        return _digest(self.content or self.session)

    def position(self, index: int) -> int:
        """Position word of piece `index`."""
        return (self.first_position + index) | (0 if self.content else _PRIVATE)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Identity:
        """Build from the JSON of a request."""
        return cls(**data)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def has_numpy() -> bool:
    """Tell whether the vectorised check is available here, without loading it."""
    return importlib.util.find_spec("numpy") is not None


def checksum_kind(both_have_numpy: bool, total_bytes: int = _WORTH_NUMPY_BYTES) -> int:
    """Return the checksum both ends compute quickly: a weighted 64-bit sum with numpy; crc32 without, or for little."""
    return _SUM64 if both_have_numpy and total_bytes >= _WORTH_NUMPY_BYTES else _CRC32


@cache
def _numpy() -> Any:
    return importlib.import_module("numpy")


def fill(buffer: memoryview, runs: Sequence[tuple[int, int, int, int]], identity: Identity, kind: int) -> None:
    """Write stamped pieces. A run is (offset, piece size, pieces, first index); pieces of a run lie side by side.

    Sizes are bytes, multiples of 8 and at least 64. Payload depends on generation and index, so old bytes under a new
    header do not pass.
    """
    for offset, size, count, first in runs:
        step = max(1, _CHUNK_BYTES // size)
        for done in range(0, count, step):
            part = min(step, count - done)
            view = buffer[offset + done * size : offset + (done + part) * size]
            _fill_part(view, size, first + done, identity, kind)


def check(
    buffer: memoryview, runs: Sequence[tuple[int, int, int, int]], identity: Identity, kind: int
) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Return how many pieces got each verdict, and the first ten bad ones as (index, verdict).

    `kind` is the checksum that they were filled with.
    """
    counts = dict.fromkeys(VERDICTS, 0)
    bad: list[tuple[int, str]] = []
    for offset, size, count, first in runs:
        step = max(1, _CHUNK_BYTES // size)
        for done in range(0, count, step):
            part = min(step, count - done)
            view = buffer[offset + done * size : offset + (done + part) * size]
            for index, verdict in enumerate(_check_part(view, size, first + done, identity, kind), start=first + done):
                counts[verdict] += 1
                if verdict != OK and len(bad) < 10:
                    bad.append((index, verdict))
    return counts, bad


def _fill_part(view: memoryview, size: int, first: int, identity: Identity, kind: int) -> None:
    count = len(view) // size
    if kind == _CRC32:
        for piece in range(count):
            _fill_one(view[piece * size : (piece + 1) * size], size, first + piece, identity)
        return
    np = _numpy()
    words = np.frombuffer(view, dtype="<u8").reshape(count, size // 8)
    index = np.arange(first, first + count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        seed = (index * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64((identity.generation * 0xD1B54A32D192ED03) % 2**64)
        words[:, 8:] = seed[:, None] + _weights(size // 8)[8:]
        words[:, 0] = _MAGIC | _SUM64
        words[:, 1] = identity.name_space
        words[:, 2] = identity.key
        words[:, 3] = (index + np.uint64(identity.first_position)) | np.uint64(0 if identity.content else _PRIVATE)
        words[:, 4] = identity.generation
        words[:, 5] = index
        words[:, 6] = size - HEADER_BYTES
        words[:, 7] = _sums(words)


def _fill_one(piece: memoryview, size: int, index: int, identity: Identity) -> None:
    seed = index * 2654435761 + identity.generation
    piece[HEADER_BYTES:] = random.Random(seed).randbytes(size - HEADER_BYTES)  # noqa: S311 - a pattern, not a secret
    head = (
        _MAGIC | _CRC32,
        identity.name_space,
        identity.key,
        identity.position(index),
        identity.generation,
        index,
        size - HEADER_BYTES,
    )
    piece[:HEADER_BYTES] = _WORDS.pack(*head, 0)
    piece[:HEADER_BYTES] = _WORDS.pack(*head, _crc(piece))


def _crc(piece: memoryview) -> int:
    return zlib.crc32(piece[HEADER_BYTES:], zlib.crc32(piece[: HEADER_BYTES - 8]))


def _weights(words: int) -> Any:
    """Odd weights, so that no single changed bit and no swap of two words cancels out."""
    np = _numpy()
    with np.errstate(over="ignore"):
        return (np.arange(words, dtype=np.uint64) * np.uint64(2) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)


def _sums(words: Any) -> Any:
    """Weighted sum of each row's words, word 7 left out."""
    weights = _weights(words.shape[1])
    weights[7] = 0
    with _numpy().errstate(over="ignore"):
        return words @ weights


def _check_part(view: memoryview, size: int, first: int, identity: Identity, kind: int) -> list[str]:
    count = len(view) // size
    if kind == _CRC32:
        return [_check_one(view[i * size : (i + 1) * size], first + i, identity) for i in range(count)]
    np = _numpy()
    words = np.frombuffer(view, dtype="<u8").reshape(count, size // 8)
    index = np.arange(first, first + count, dtype=np.uint64)
    position = (index + np.uint64(identity.first_position)) | np.uint64(0 if identity.content else _PRIVATE)
    sound = (words[:, 0] == _MAGIC | _SUM64) & (words[:, 6] == size - HEADER_BYTES) & (words[:, 7] == _sums(words))
    # later conditions only decide where the earlier ones did not: np.select takes the first that holds
    codes = np.select(
        [
            ~words[:, :8].any(axis=1),
            ~sound,
            words[:, 1] != identity.name_space,
            (words[:, 2] != identity.key) | (words[:, 3] != position) | (words[:, 5] != index),
            words[:, 4] != identity.generation,
        ],
        [5, 1, 3, 4, 2],
        default=0,
    )
    return [VERDICTS[code] for code in codes.tolist()] if codes.any() else [OK] * count


def _check_one(piece: memoryview, index: int, identity: Identity) -> str:
    magic, name_space, key, position, generation, place, payload, checksum = _WORDS.unpack(piece[:HEADER_BYTES])
    if not any(piece[:HEADER_BYTES]):
        return MISSING
    if magic != _MAGIC | _CRC32 or payload != len(piece) - HEADER_BYTES or checksum != _crc(piece):
        return DAMAGED
    if name_space != identity.name_space:
        return NAME_SPACE
    if key != identity.key or place != index or position != identity.position(index):
        return OTHER_BLOCK
    return OK if generation == identity.generation else STALE
