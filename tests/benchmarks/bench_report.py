"""How long 10,000 results take to become HTML and JUnit. Run it, don't test with it."""

from __future__ import annotations

import time

from fabric.build import load_plan
from validators.journal_records import Record, RunInfo
from validators.report.html import to_html
from validators.report.junit import to_junit
from validators.report.model import Run
from validators.report.topology import topology_of
from validators.results import Result, State

_STATES = [State.PASS] * 94 + [State.FAIL] * 3 + [State.ERROR, State.SKIPPED, State.UNKNOWN]


def main() -> None:
    """Print seconds and sizes."""
    plan = load_plan("xoc-256")
    links = list(plan.links)
    records = tuple(
        Record(f"bgp-sessions:dev-{i}#{i:08x}", "control-plane", Result("bgp-sessions", f"dev-{i}", _STATES[i % 100], "as it is", "dev E1/1", labels={"link": links[i % len(links)]}))
        for i in range(10_000)
    )  # fmt: skip
    info = RunInfo("bench", plan.site, plan.profile, plan.digest, "c" * 64, "none", "2026-01-01T00:00:00Z")
    started = time.perf_counter()
    run = Run(info, records, topology_of(plan))
    html = to_html(run)
    middle = time.perf_counter()
    junit = to_junit(run)
    ended = time.perf_counter()
    print(
        f"10,000 results: HTML {middle - started:.2f} s ({len(html) / 1e6:.1f} MB), JUnit {ended - middle:.2f} s ({len(junit) / 1e6:.1f} MB)"
    )


if __name__ == "__main__":
    main()
