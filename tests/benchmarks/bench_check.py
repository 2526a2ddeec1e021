"""`check` of a site: CPU seconds of planning, rendering and the rules apart, and of each of the slowest rules.

Run: python tests/benchmarks/bench_check.py [SITE ...]
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

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
        f"{site}: {len(plan.switches)} switches, {len(plan.links)} links: plan {planned:.2f} s, render {written:.2f} s, "
        f"rules {checked:.2f} s CPU, {findings} findings\n  slowest: {slowest}"
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or ["xoc-256", "xoc-1024"]:
        sys.stdout.write(measure(name) + "\n")
