"""The connections of a ladder step: every pair of ends exactly once, in pseudorandom order (RFC 9693 section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 1 << 20  # the flow number shares a 32-bit TCP sequence number with 12 other bits


@dataclass(frozen=True)
class Tuples:
    """The ends of each connection as the initiator writes them; index = flow. ICMP has no `dport`."""

    src: NDArray[np.uint32]
    sport: NDArray[np.uint16]
    dst: NDArray[np.uint32]
    dport: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True)
class TupleSpace:
    """Ranges whose product is the set of possible connections: (first address, how many), (lowest, highest port)."""

    sources: tuple[int, int]
    source_ports: tuple[int, int]
    destinations: tuple[int, int]
    destination_ports: tuple[int, int]

    @property
    def size(self) -> int:
        """How many different connections there are."""
        return math.prod(self._sizes())

    def _sizes(self) -> tuple[int, int, int, int]:
        low, high = self.source_ports
        first, last = self.destination_ports
        return self.sources[1], high - low + 1, self.destinations[1], last - first + 1

    def pick(self, count: int, *, seed: int = 1, skip: int = 0) -> Tuples:
        """Return `count` different connections, `skip` places into the order that `seed` gives.

        Raises ValueError when there are not that many: a repeated pair would not be a new connection.
        """
        if count > LARGEST or skip + count > self.size:
            msg = f"{count} connections after {skip} do not fit into {min(self.size, LARGEST)} different ones"
            raise ValueError(msg)
        size = self.size
        step = _coprime(size, seed)
        order = ((np.arange(skip, skip + count, dtype=np.uint64) * np.uint64(step)) + np.uint64(seed)) % np.uint64(size)
        n_sources, n_ports, n_destinations, n_dports = (np.uint64(n) for n in self._sizes())
        order, dport = np.divmod(order, n_dports)
        order, dst = np.divmod(order, n_destinations)
        order, src = np.divmod(order, n_sources)
        sport = order % n_ports
        return Tuples(
            (src + self.sources[0]).astype(np.uint32),
            (sport + self.source_ports[0]).astype(np.uint16),
            (dst + self.destinations[0]).astype(np.uint32),
            (dport + self.destination_ports[0]).astype(np.uint16),
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TupleSpace:
        """Read what `dataclasses.asdict` wrote."""
        return cls(**{name: (int(pair[0]), int(pair[1])) for name, pair in data.items()})


def _coprime(size: int, seed: int) -> int:
    """Return a step that visits every place of a ring of `size` once, and neighbours far apart."""
    step = int(size * 0.6180339887) + 2 * seed + 1
    # keep place x step inside 64 bits for the largest step that a caller can ask for
    step = step % size or 1
    while math.gcd(step, size) != 1:
        step += 1
    return step
