"""Max-min solver: CPU seconds for 1,000 to 20,000 flows on 1,024 hosts, 16 leaves and 8 spines (half as much up as down).

Run: python tests/benchmarks/bench_flows.py
"""

from __future__ import annotations

import sys
import time

import numpy as np

from fabric.analysis.flows.maxmin import max_min

HOSTS, LEAVES, SPINES, PORT, UPLINK = 1024, 16, 8, 400.0, 1600.0


def case(flows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random pairs of hosts, a random spine each."""
    rng = np.random.default_rng(seed)
    source, target, spine = rng.integers(0, HOSTS, flows), rng.integers(0, HOSTS, flows), rng.integers(0, SPINES, flows)
    per_leaf = HOSTS // LEAVES
    up = 2 * HOSTS + (source // per_leaf) * SPINES + spine
    down = 2 * HOSTS + LEAVES * SPINES + (target // per_leaf) * SPINES + spine
    capacity = np.concatenate([np.full(2 * HOSTS, PORT), np.full(2 * LEAVES * SPINES, UPLINK)])
    return np.stack([source, up, down, HOSTS + target], axis=1), capacity


def main() -> int:
    """Print one line a size; exit 1 when 10,000 flows take 3 s or more."""
    slow = False
    for flows in (1000, 2000, 5000, 10000, 20000):
        paths, capacity = case(flows)
        start = time.process_time()
        rates = max_min(paths, capacity)
        spent = time.process_time() - start
        slow |= flows == 10000 and spent >= 3
        sys.stdout.write(
            f"{flows:6d} flows  {spent:6.3f} s CPU  {1e6 * spent / flows:6.1f} us a flow  sum {rates.sum():.0f} Gb/s\n"
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
