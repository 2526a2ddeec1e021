"""The report as one HTML file that needs nothing from elsewhere: styles, drawings and the little script are inside."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from fabric.resources import data_folder
from validators.report.coverage import skipped_inside
from validators.report.figures import figure, name_of, trials_of
from validators.report.plots import plots_of
from validators.report.topology import coloured
from validators.results import State

if TYPE_CHECKING:
    import jinja2

    from validators.report.model import Run
    from validators.results import Result

_STATES = ("pass", "fail", "error", "unknown", "skipped")
_ROUND = 2 * math.pi * 40
_SHOWN_PARTS = 40
_LISTED_PARTS = 24
_NAMED = 8


def to_html(run: Run) -> str:
    """Return the report."""
    return _template().render(
        run=run,
        info=run.info,
        stages=run.stages,
        results=sum(1 for _ in run.leaves()),
        counts={state: run.counts[state] for state in _STATES},
        ring=_ring(run.counts),
        problems=run.problems,
        topology=coloured(run),
        plots=plots_of(run),
        measured=[(r, m) for r in run.records for m in r.result.measurements],
        skipped_inside=skipped_inside,
        shown_parts=_shown_parts,
        listed_parts=_listed_parts,
        part_line=part_line,
        software=_software(run),
        figure=figure,
        name_of=name_of,
        trials_of=trials_of,
        options=_flat(run.info.options),
    )


@cache
def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_folder("templates") / "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2")


def _ring(counts: dict[str, int]) -> list[dict[str, Any]]:
    """The arcs of the summary ring: lengths along a circle of radius 40."""
    total = sum(counts.values()) or 1
    arcs, at = [], 0.0
    for state in _STATES:
        length = _ROUND * counts[state] / total
        if length:
            arcs.append(
                {"state": state, "length": round(length, 2), "rest": round(_ROUND - length, 2), "at": round(-at, 2)}
            )
        at += length
    return arcs


def _shown_parts(result: Result) -> tuple[list[Result], int, int]:
    """Return the parts to show, how many good ones are only counted, and how many bad ones are cut."""
    bad = [part for part in result.parts if part.state.value not in {"pass", "skipped"}]
    return bad[:_SHOWN_PARTS], len(result.parts) - len(bad), max(0, len(bad) - _SHOWN_PARTS)


def _listed_parts(result: Result) -> tuple[Result, ...]:
    """Return the parts of a result that has few: of many (ports, cables) only bad ones are shown, where they are."""
    return result.parts if len(result.parts) <= _LISTED_PARTS else ()


def part_line(result: Result, part: Result) -> str:
    """Return a part in the list of its result: what the row and the part's own text say of its subject is left out."""
    place = part.subject.removeprefix("tenant ")
    rest = place.removeprefix(result.subject)
    if rest != place and rest[:1] in {"", " ", ":"}:
        place = rest.lstrip(" :")
    head, _, last = place.rpartition(": ")
    if last and part.text.startswith(last):
        place = head
    return f"{place}: {part.text}" if place else part.text


def _software(run: Run) -> list[tuple[str, str]]:
    """What devices said that they run, and which of them said so."""
    found: dict[str, list[str]] = {}
    for result in (record.result for record in run.records if record.result.check == "device-answers"):
        if result.state is State.PASS:
            text = result.text.replace(f" ({result.subject})", "")
            found.setdefault(text, []).append(result.subject)
    return [
        (
            text,
            ", ".join(names) if len(names) <= _NAMED else f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more",
        )
        for text, names in found.items()
    ]


def _flat(options: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)) for name, value in options.items()
    ]
