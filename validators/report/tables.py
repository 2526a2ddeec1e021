"""Flat formats: JSON, CSV, Markdown and the Prometheus text format."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from validators.report.coverage import skipped_inside
from validators.report.figures import figure, name_of, trials_of
from validators.results import COMPUTED, MEASURED

if TYPE_CHECKING:
    from validators.report.model import Leaf, Run
    from validators.results import Measurement

_COLUMNS = (
    "stage",
    "check",
    "subject",
    "state",
    "text",
    "place",
    "tenant",
    "vrf",
    "device",
    "port",
    "direction",
    "case",
)
_LABELS = ("tenant", "vrf", "device", "port", "direction", "priority")


def to_json(run: Run) -> str:
    """Return the whole run: facts, verdict, counts, and every record with parts, measurements and evidence."""
    data = {
        "run": run.info.to_dict(),
        "verdict": run.verdict,
        "without": list(run.without),
        "note": run.note,
        "counts": run.counts,
        "sums": run.sums,
        "results": [record.to_dict() for record in run.records],
    }
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def to_csv(run: Run) -> str:
    """Return one line per atomic result. Cells that a spreadsheet would take for a formula get a leading quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for leaf in run.leaves():
        labels = leaf.record.result.labels | leaf.result.labels
        row = (
            leaf.record.stage, leaf.result.check, leaf.result.subject, leaf.result.state.value, leaf.result.text,
            leaf.result.place, *(labels.get(name, "") for name in _LABELS[:5]), leaf.record.case,
        )  # fmt: skip
        writer.writerow([f"'{cell}" if cell[:1] in {"=", "+", "-", "@"} else cell for cell in row])
    return out.getvalue()


def to_markdown(run: Run) -> str:
    """Return a summary to paste: verdict, a line per stage, then what is not as it should be."""
    info = run.info
    lines = [
        f"# Acceptance of {info.site}: {run.verdict}",
        "",
        *(["Without:", "", *(f"- {_cell(text)}" for text in run.without), ""] if run.without else []),
        f"Run {info.name}, engine {info.engine}, {info.started} to {info.finished or 'no end'}, "
        f"plan `{info.plan[:12]}`, seed {info.seed}.",
        "",
        *([f"This report is {run.note}.", ""] if run.note else []),
        f"{run.sums}. The table counts cases, junit.xml and results.csv results.",
        "",
        "| stage | cases | pass | fail | error | skipped | unknown | parts skipped |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = [(name, records, counts) for name, records, counts, _ in run.stages]
    for name, records, counts in (*rows, ("all", run.records, run.counts)):
        cells = " | ".join(str(counts.get(state, 0)) for state in ("pass", "fail", "error", "skipped", "unknown"))
        lines.append(f"| {name} | {len(records)} | {cells} | {len(skipped_inside(records))} |")
    bad = [record.result for record in run.problems]
    if bad:
        lines += [
            "",
            "## What is wrong",
            "",
            "| state | check | subject | why | place |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {r.state.value} | {r.check} | {_cell(r.subject)} | {_cell(r.text)} | {_cell(r.place)} |" for r in bad
        ]
    measured = [(record.result, m) for record in run.records for m in record.result.measurements]
    if measured:
        lines += [
            "",
            "## Measured",
            "",
            "| subject | what | value | trials | spread | limit |",
            "| --- | --- | ---: | ---: | ---: | --- |",
        ]
        lines += [
            f"| {_cell(r.subject)} | {_cell(name_of(m))} | {figure(m.value)} {m.unit} | {trials_of(m)} "
            f"| {'' if m.spread is None else figure(m.spread)} | {_cell(m.limit)} |"
            for r, m in measured
        ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# one name for what was measured, another for what the plan promises, which no dashboard may add to it
_FIGURES = {
    "kvfabric_measurement": (MEASURED, "A measured value"),
    "kvfabric_computed": (COMPUTED, "A value computed from the plan, not measured"),
}
_STATE_VALUES = {"pass": 0, "fail": 1, "error": 2, "skipped": 3, "unknown": 4}


def to_prometheus(run: Run) -> str:
    """Return the run in the text format for a node exporter's textfile collector.

    Source: Prometheus exposition formats, text-based format 0.0.4.
    """
    site = {"site": run.info.site}
    facts = {"verdict": run.verdict, "without": "; ".join(run.without), "ports": run.info.ports}
    lines = [
        "# HELP kvfabric_acceptance_accepted 1 when the last acceptance ended as accepted, else 0.",
        "# TYPE kvfabric_acceptance_accepted gauge",
        _sample("kvfabric_acceptance_accepted", site | facts, int(run.verdict == "accepted")),
        "# HELP kvfabric_acceptance_cases Cases of the last acceptance by stage and state.",
        "# TYPE kvfabric_acceptance_cases gauge",
    ]
    for name, _, counts, _ in run.stages:
        lines += [
            _sample("kvfabric_acceptance_cases", site | {"stage": name, "state": s}, n) for s, n in counts.items()
        ]
    lines += [
        "# HELP kvfabric_check_state State of an atomic result: 0 pass, 1 fail, 2 error, 3 skipped, 4 unknown.",
        "# TYPE kvfabric_check_state gauge",
    ]
    lines += [
        _sample("kvfabric_check_state", site | _labels(leaf), _STATE_VALUES[leaf.result.state.value])
        for leaf in run.leaves()
    ]
    figures = [(leaf, m) for leaf in _with_measurements(run) for m in leaf.result.measurements]
    for name, (origin, text) in _FIGURES.items():
        if samples := [
            _measured(name, leaf, m, site) for leaf, m in figures if (m.origin == COMPUTED) is (origin == COMPUTED)
        ]:
            lines += [f"# HELP {name} {text}; its unit is a label.", f"# TYPE {name} gauge", *samples]
    return "\n".join(lines) + "\n"


def _with_measurements(run: Run) -> list[Leaf]:
    from validators.report.model import Leaf

    leaves = [leaf for leaf in run.leaves() if leaf.is_part and leaf.result.measurements]
    wholes = [Leaf(r.case, r, r.result, is_part=False) for r in run.records if r.result.measurements]
    return wholes + leaves


def _measured(name: str, leaf: Leaf, measurement: Measurement, site: dict[str, str]) -> str:
    labels = site | _labels(leaf) | {"measurement": measurement.name, "unit": measurement.unit}
    return _sample(name, labels, measurement.value)


def _labels(leaf: Leaf) -> dict[str, str]:
    labels = leaf.record.result.labels | leaf.result.labels
    return {
        "stage": leaf.record.stage,
        "check": leaf.result.check,
        "id": leaf.id,
        **{name: labels[name] for name in _LABELS if labels.get(name)},
    }


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    inner = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value:.15g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
