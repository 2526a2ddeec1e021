"""Where the pieces of a transfer lie: at the owner scattered as a block table leaves them, or side by side."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from validators.rdma.host.backend import Piece


@dataclass(frozen=True)
class Workload:
    """`groups` are (piece size in bytes, count); `scatter` puts the owner's pieces in random order, by `seed`."""

    groups: tuple[tuple[int, int], ...]
    scatter: bool = True
    seed: int = 1

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Workload:
        """Build from the JSON of a request."""
        groups = tuple((int(size), int(count)) for size, count in data["groups"])
        return cls(groups, bool(data.get("scatter", True)), int(data.get("seed", 1)))

    @property
    def total(self) -> int:
        """Bytes of one transfer."""
        return sum(size * count for size, count in self.groups)

    @property
    def count(self) -> int:
        """Pieces of one transfer."""
        return sum(count for _, count in self.groups)

    def receiver_runs(self) -> list[tuple[int, int, int, int]]:
        """Runs as `stamp.check` wants them: pieces lie in the order of their index where they arrive."""
        runs, offset, first = [], 0, 0
        for size, count in self.groups:
            runs.append((offset, size, count, first))
            offset, first = offset + size * count, first + count
        return runs

    def owner_runs(self) -> list[tuple[int, int, int, int]]:
        """Runs as `stamp.fill` wants them: one piece each when scattered."""
        if not self.scatter:
            return self.receiver_runs()
        runs = []
        for offset, size, count, first in self.receiver_runs():
            for place, index in enumerate(self._order(count, first)):
                runs.append((offset + place * size, size, 1, first + index))
        return runs

    def pieces(self, owner_is_local: bool) -> list[Piece]:
        """Return work requests in the order of the receiver; `owner_is_local` for a WRITE."""
        found = []
        for offset, size, count, first in self.receiver_runs():
            places = [0] * count
            for place, index in enumerate(self._order(count, first) if self.scatter else range(count)):
                places[index] = place
            for index in range(count):
                here, there = offset + index * size, offset + places[index] * size
                found.append(Piece(there, here, size) if owner_is_local else Piece(here, there, size))
        return found

    def _order(self, count: int, first: int) -> list[int]:
        order = list(range(count))
        random.Random(self.seed * 1_000_003 + first).shuffle(order)  # noqa: S311 - a layout, not a secret
        return order
