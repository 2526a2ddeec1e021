"""The output folder of a site: plan, configurations, cable and hosts files, diagram, findings; written atomically."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.build import plan_site
from fabric.files import replace_file
from fabric.problem import Problem, Severity
from fabric.summary import as_text, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fabric.plan import Plan

CABLE_FORMATS = ("connectivity-map", "netbox", "wiring", "wiring-gateways", "labels", "bom", "ports")


@dataclass(frozen=True)
class BuiltSite:
    """What `build_output` wrote and found."""

    folder: Path
    plan: Plan
    ledger: str
    seconds: float
    findings: tuple[Problem, ...]
    stale: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The site on a page, and how its check ended."""
        end = f"{_verdict(self.findings)}\n{self.folder} is complete ({self.seconds:.1f} s)"
        return f"{as_text(summarise(self.plan))}\n\n{end}"

    def to_dict(self) -> dict[str, Any]:
        """Return what was written and found as JSON-ready data."""
        return {
            "folder": str(self.folder),
            "failed": self.failed,
            "findings": [finding.to_dict() for finding in self.findings],
            "ledger": self.ledger,
            "seconds": round(self.seconds, 3),
            "stale": list(self.stale),
            "summary": summarise(self.plan),
        }

    @property
    def failed(self) -> bool:
        """Whether a finding is an error."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def build_output(
    site: str, out: Path, *, external: bool, progress: Callable[[str], None], prune: bool = False
) -> BuiltSite:
    """Write `out/<site>/`: plan, configs/, cables/, diagram, hosts files, findings. Raises InputError.

    `prune` removes the files of devices that the plan no longer has.
    """
    from fabric.analysis.check import check_site
    from fabric.interop.diagram import diagram
    from fabric.interop.formats import write
    from fabric.interop.hosts_files import hosts_files
    from fabric.interop.output import require_apart, write_files
    from fabric.render.registry import render_site
    from fabric.render.stale import settle_stale
    from fabric.render.writer import require_ours, write_tree

    start = time.perf_counter()
    planned = plan_site(site, two_tiers_for="rendering")
    plan = planned.plan
    folder = out / plan.site
    hosts = hosts_files(plan)
    require_apart(site, folder, hosts)
    rendered = dict(render_site(plan))
    require_ours(folder / "configs", planned.inventory)
    # files whose numbers cannot be kept are not written: the next run could give others
    note = planned.keep_ledger()
    folder.mkdir(parents=True, exist_ok=True)
    progress(
        f"planned {plan.site}: {len(plan.switches)} switches, {len(plan.servers)} servers, {len(plan.links)} links"
    )
    written = write_tree(folder / "configs", rendered.items(), inventory=planned.inventory)
    progress(f"rendered {len(rendered)} devices, {len(written.written)} files written, {written.unchanged} unchanged")
    for line in settle_stale(folder / "configs", written, remove=prune):
        progress(line)
    report = check_site(plan, folder=folder / "configs", external=external, problems=planned.problems)
    findings = list(report.problems)
    outside = "".join(f", {name} on {count} files" for name, count in report.asked.items())
    outside += "".join(f"; {name} skipped: {reason}" for name, reason in report.skipped.items())
    progress(f"checked {report.files} files with {len(report.rules)} rules{outside}")
    replace_file(folder / "plan.json", json.dumps(plan.to_dict(), indent=1) + "\n")
    replace_file(folder / "findings.json", json.dumps([f.to_dict() for f in findings], indent=1) + "\n")
    for name in CABLE_FORMATS:
        write_files(write(plan, name), folder / "cables")
    replace_file(folder / "diagram.svg", diagram(plan))
    write_files(hosts, folder)
    stale = () if prune else written.stale
    progress(f"cable files, diagram and hosts files written; {note}")
    return BuiltSite(folder, plan, note, time.perf_counter() - start, tuple(findings), stale)


def _verdict(findings: Sequence[Problem]) -> str:
    counts = {severity: sum(f.severity is severity for f in findings) for severity in Severity}
    parts = ", ".join(f"{n} {severity.value}" for severity, n in counts.items() if n)
    return f"findings: {parts or 'none'}"
