"""`failures` of 288 switches: CPU seconds of every single failure, and of every double failure by classes.

Run: python tests/benchmarks/bench_failures.py
"""

from __future__ import annotations

import sys
import tempfile
import time

from bench_render import large

from fabric.analysis.failures import Sweep
from fabric.build import load_plan


def main() -> int:
    """Print one line; exit 1 when singles take 5 s or doubles 60 s of CPU."""
    with tempfile.TemporaryDirectory() as folder:
        plan = load_plan(large(folder, 256, "sonic"))
    marks = [time.process_time()]
    sweep = Sweep(plan)
    singles = sweep.singles()
    marks.append(time.process_time())
    doubles = sweep.doubles()
    marks.append(time.process_time())
    one, two = marks[1] - marks[0], marks[2] - marks[1]
    sys.stdout.write(
        f"{len(plan.switches)} switches, {len(plan.links)} links: {len(singles)} singles in {one:.2f} s CPU, "
        f"{sum(i.alike for i in doubles)} doubles in {len(doubles)} classes in {two:.2f} s CPU\n"
    )
    return int(one >= 5 or two >= 60)


if __name__ == "__main__":
    sys.exit(main())
