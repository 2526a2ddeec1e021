"""JUnit XML: a suite per stage, a case per atomic result, failure apart from error apart from skipped.

A case with parts is a testcase per part, so `tests` counts results; properties say how many cases they are of. A case's
seconds are shared by its testcases, so that those of a suite add up to its time.

Case names hold the case's id, so that viewers which merge equal names never merge two results. Source: the Ant/Jenkins
JUnit schema, which GitLab, Jenkins and GitHub actions read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from validators.report.model import seconds_of

if TYPE_CHECKING:
    from validators.report.model import Leaf, Run

# XML 1.0 has no way to write these characters, not even escaped
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_QUOTES = {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}


def to_junit(run: Run) -> str:
    """Return the run as JUnit XML. `unknown` counts as an error: it must never look green."""
    by_stage: dict[str, list[Leaf]] = {}
    for leaf in run.leaves():
        by_stage.setdefault(leaf.record.stage, []).append(leaf)
    everything = [leaf for leaves in by_stage.values() for leaf in leaves]
    shares = _shares(everything)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {_attributes(f'kvfabric {run.info.site}', everything, shares)}>",
    ]
    for stage, leaves in by_stage.items():
        lines.append(
            f'<testsuite {_attributes(stage, leaves, shares)} timestamp="{_text(run.info.started.rstrip("Z"))}">'
        )
        lines += _properties(run, leaves)
        lines += [_case(leaf, shares[leaf.id]) for leaf in leaves]
        lines.append("</testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _shares(leaves: list[Leaf]) -> dict[str, int]:
    """Return milliseconds by testcase. Those of a case are shared evenly, to the last one: no sum may lose any."""
    by_case: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        by_case.setdefault(leaf.record.case, []).append(leaf)
    shares: dict[str, int] = {}
    for mine in by_case.values():
        whole, rest = divmod(round(1000 * seconds_of(mine[0].record)), len(mine))
        shares |= {leaf.id: whole + (number < rest) for number, leaf in enumerate(mine)}
    return shares


def _attributes(name: str, leaves: list[Leaf], shares: dict[str, int]) -> str:
    states = [leaf.result.state.value for leaf in leaves]
    errors = states.count("error") + states.count("unknown")
    seconds = sum(shares[leaf.id] for leaf in leaves) / 1000
    return (
        f'name="{_text(name)}" tests="{len(leaves)}" failures="{states.count("fail")}" errors="{errors}" '
        f'skipped="{states.count("skipped")}" time="{seconds:.3f}"'
    )


def _properties(run: Run, leaves: list[Leaf]) -> list[str]:
    info = run.info
    facts = {
        "site": info.site,
        "verdict": run.verdict,
        "without": "; ".join(run.without),
        "ports": info.ports,
        "note": run.note,
        "cases": str(len({leaf.record.case for leaf in leaves})),
        "results": str(len(leaves)),
        "run.cases": str(len(run.records)),
        "run.counts": ", ".join(f"{n} {state}" for state, n in run.counts.items() if n),
        "run.seconds": "" if run.wall_s is None else f"{run.wall_s:.0f}",
        "plan": info.plan,
        "catalog": info.catalog,
        "engine": info.engine,
        "seed": str(info.seed),
    }
    facts |= {f"version.{name}": version for name, version in info.versions.items()}
    rows = [f'<property name="{_text(name)}" value="{_text(value)}"/>' for name, value in facts.items()]
    return ["<properties>", *rows, "</properties>"]


def _case(leaf: Leaf, milliseconds: int) -> str:
    result = leaf.result
    names = f'classname="{_text(f"{leaf.record.stage}.{result.check}")}" name="{_text(leaf.id)}"'
    head = f'<testcase {names} time="{milliseconds / 1000:.3f}"'
    text = result.text + (f"\nplace: {result.place}" if result.place else "")
    state = result.state.value
    if state == "pass":
        return f"{head}/>"
    if state == "skipped":
        return f'{head}><skipped message="{_text(result.text)}"/></testcase>'
    tag = "failure" if state == "fail" else "error"
    body = escape(_FORBIDDEN.sub("?", text))
    return f'{head}><{tag} type="{state}" message="{_text(result.text)}">{body}</{tag}></testcase>'


def _text(value: str) -> str:
    return escape(_FORBIDDEN.sub("?", value), _QUOTES)
