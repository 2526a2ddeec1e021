"""How long the swap solver takes on XOC-1024 with 40 faults, from LLDP text to sentences. Run it, don't test with it."""

from __future__ import annotations

import random
import time

from fabric.build import load_plan
from tests.unit.cabling.test_cabling_check import Wired
from validators.cabling.checks import Cabling, CablingInputs
from validators.cabling.names import Socket
from validators.check import Context, judged


def main() -> None:
    """Print seconds for parsing, solving and explaining."""
    plan = load_plan("xoc-1024")
    rng = random.Random(1)
    ends = rng.sample([Socket(one.b.device, one.b.port) for one in plan.links.values()], 40)
    site = Wired(plan, dict(zip(ends, ends[1:] + ends[:1], strict=True)))
    seconds = 0.0
    moves: set[tuple[str, str]] = set()
    for fabric in plan.fabrics:
        check, inputs = Cabling(), CablingInputs(fabric=fabric, samples=1)
        observations = check.collect(Context(plan, site, None), inputs)
        started = time.perf_counter()
        result = judged(check, plan, inputs, observations)
        seconds += time.perf_counter() - started
        # a cable between two fabrics is told of in both
        moves |= {(m["from"], m["to"]) for one in result.evidence["explanations"] for m in one["moves"]}
    print(f"{len(plan.links)} links, {len(ends)} ends out of place: {len(moves)} moves found in {seconds:.2f} s")


if __name__ == "__main__":
    main()
