"""`check` of a site: CPU seconds of planning, rendering and the rules apart, and of each of the slowest rules.

Without arguments the last site has 288 SONiC switches.

Run: python tests/benchmarks/bench_check.py [SITE ...]
"""

from __future__ import annotations

import sys
import tempfile
import time
from itertools import pairwise

from bench_render import large

from fabric.analysis.facts import Facts
from fabric.analysis.rendered import Rendered
from fabric.analysis.rule import all_rules
from fabric.build import load_plan
from fabric.render.registry import render_site


def measure(site: str) -> str:
    """Return one site's figures as text."""
    marks = [time.process_time()]
    plan = load_plan(site)
    marks.append(time.process_time())
    rendered = Rendered(dict(render_site(plan)))
    marks.append(time.process_time())
    facts, slow, findings = Facts(plan, rendered), [], 0
    for name, rule in all_rules().items():
        start = time.process_time()
        findings += len(list(rule(facts).check()))
        slow.append((time.process_time() - start, name))
    marks.append(time.process_time())
    planned, written, checked = (b - a for a, b in pairwise(marks))
    slowest = ", ".join(f"{name} {spent:.3f}" for spent, name in sorted(slow, reverse=True)[:5])
    return (
        f"{plan.site}: {len(plan.switches)} switches, {len(plan.links)} links: plan {planned:.2f} s, render {written:.2f} s, "
        f"rules {checked:.2f} s CPU, {findings} findings\n  slowest: {slowest}"
    )


def main() -> None:
    """Measure the sites named on the command line, else two shipped ones and one of 288 SONiC switches."""
    for name in sys.argv[1:] or ["xoc-256", "xoc-1024"]:
        sys.stdout.write(measure(name) + "\n")
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(measure(large(folder, 256, "sonic")) + "\n")


if __name__ == "__main__":
    main()
