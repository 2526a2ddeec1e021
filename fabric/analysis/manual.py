"""The manual of the rules, from their docstrings: `python -m fabric.analysis.manual > docs/rules.md`."""

from __future__ import annotations

import sys
from itertools import groupby

from fabric.analysis.rule import Rule, all_rules

_HEAD = """\
# Rules of `kvfabric check`

Made from the docstrings of `fabric/analysis/rules/`; do not edit. A rule reads the plan, the rendered files, or both.
Run one with `kvfabric check SITE --rule ID`, a subject with `--rule qos`, and existing files with `--from DIR`.
"""


def manual() -> str:
    """Return the whole manual as Markdown."""
    parts = [_HEAD]
    for subject, rules in groupby(all_rules().items(), key=lambda item: item[0].partition(".")[0]):
        parts.append(f"## {subject}\n")
        parts.extend(_page(name, rule) for name, rule in rules)
    return "\n".join(parts)


def _page(name: str, rule: type[Rule]) -> str:
    reads = f"`{rule.file}`" if rule.file else "the plan"
    lines = [f"### {name}", "", rule.title, "", f"- Severity: {rule.severity.value}; points at {reads}."]
    lines += [f"- Why: {rule.why}", f"- Fix: {rule.fix}"]
    if rule.source:
        lines.append(f"- Source: {rule.source}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(manual())
