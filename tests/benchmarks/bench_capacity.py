"""`kvfabric capacity` of 100,352 accelerators in three tiers: CPU seconds and peak memory, planning included.

Run: python tests/benchmarks/bench_capacity.py
"""

from __future__ import annotations

import resource
import sys
import time

from fabric.analysis.capacity import capacity
from fabric.build import load_plan


def main() -> int:
    """Print one line; exit 1 at 60 s of CPU or 4 GiB."""
    plan = load_plan("pods-100k")
    planned = time.process_time()
    answer = capacity(plan)
    spent, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    sys.stdout.write(
        f"{sum(s.xpus for s in plan.servers.values())} xPU, {len(plan.switches)} switches, {len(plan.links)} links: "
        f"planned in {planned:.1f} s CPU, {len(answer.outcomes)} patterns in {spent - planned:.1f} s CPU, "
        f"{peak:.2f} GiB at most\n"
    )
    return int(spent >= 60 or peak >= 4)


if __name__ == "__main__":
    sys.exit(main())
