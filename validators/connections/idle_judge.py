"""Judge an idle pass: declared against measured, by kind of flow, as a pure function of what both ends saw."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from validators.connections.idle import IdleSpec

_LONGEST_PAUSE_S = 0.4
# how wide the gap around a timer may be, and how far beside it the timer may lie
FINEST_S, SLACK_S = 0.5, 0.05
CHECK = "gateway.idle-timeout"
# RFC 4787 REQ-5, RFC 5382 REQ-5, RFC 5508 REQ-1: the least time in seconds that the RFC asks for
RFC_LEAST = {
    "icmp": (60, "RFC 5508 REQ-1"),
    "udp-two-way": (120, "RFC 4787 REQ-5"),
    "tcp-established": (7440, "RFC 5382 REQ-5"),
    "tcp-half-open": (240, "RFC 5382 REQ-5"),
    "tcp-half-closed": (240, "RFC 5382 REQ-5"),
}


@dataclass(frozen=True)
class IdleRow:
    """What one kind of flow showed: seconds of the longest silence survived and of the shortest that killed.

    `survived` is 0 when nothing survived; `died` is infinite when nothing died. `mixed` counts flows on the wrong side
    of the timer (dead below a survivor): loss, or an eviction, but no timer.
    """

    kind: str
    survived: float
    died: float
    probed: int
    not_set_up: int
    mixed: int
    refused: int
    moved: int
    pause_s: float = 0.0

    @property
    def resolution(self) -> float:
        """The width of the gap in which the timer lies, in seconds."""
        return self.died - self.survived


def ages_around(declared_s: float, *, beyond_s: float = 3.0, step_s: float = 0.4, fine_s: float = 0.2) -> list[float]:
    """Return the ages to probe: every `step_s` from the start to `beyond_s` past the timer, and `fine_s` close to it.

    The whole range is covered so that a timer that is not the declared one is still measured to `step_s`.
    """
    coarse = np.arange(step_s, declared_s + beyond_s + step_s / 2, step_s)
    near = declared_s + np.arange(-4.5, 5) * fine_s
    ages = np.concatenate([coarse[np.abs(coarse - declared_s) > 4.5 * fine_s], near])
    return [round(float(age), 3) for age in np.sort(ages[ages > 0])]


def rows(spec: IdleSpec, initiator: Mapping[str, Any], responder: Mapping[str, Any]) -> list[IdleRow]:
    """Put what both ends saw together, one row per kind."""
    flows = spec.spread()
    age, most = np.asarray(responder["real_age"]), np.asarray(responder["age_most"])
    alive = np.asarray(initiator["alive"])
    found = []
    pause = max(float(side.get("pause_s", 0.0)) for side in (initiator, responder))
    for kind in spec.ages:
        mine = flows.kind == kind
        probed = mine & ~np.isnan(age)
        # who lived was silent for at least so long, who died for at most so long
        lived, dead = age[probed & alive], most[probed & ~alive]
        survived, died, mixed = _edge(lived, dead)
        refused = int(np.asarray(responder["refused"])[mine].sum())
        moved = int(np.asarray(initiator["wrong_ends"])[mine].sum())
        found.append(
            IdleRow(kind, survived, died, int(probed.sum()), int((mine & ~probed).sum()), mixed, refused, moved, pause)
        )
    return found


def _edge(lived: Any, dead: Any) -> tuple[float, float, int]:
    """Return the cut that puts the fewest flows on its wrong side: longest survived, shortest died, how many those are.

    Where several cuts are as good, all of them are in the gap: one flow on the wrong side must not choose.
    """
    edges = np.concatenate([[0.0], np.sort(lived)])
    wrong = np.array([int((dead < edge).sum() + (lived > edge).sum()) for edge in edges])
    best = edges[wrong == wrong.min()]
    above = dead[dead >= best[-1]]
    return float(best[0]), float(above.min()) if len(above) else math.inf, int(wrong.min())


def judge(
    subject: str,
    table: Sequence[IdleRow],
    declared: Mapping[str, float],
    *,
    rendered: Mapping[str, float] | None = None,
    finest_s: float = FINEST_S,
    slack_s: float = SLACK_S,
    labels: Mapping[str, str] | None = None,
) -> Result:
    """Return one result with a part per kind of flow.

    `declared` are the plan's seconds, `rendered` those that the gateway was given where they differ: a lab shortens
    long timers. A row passes when the timer lies in the gap between the last survivor and the first death, to
    `slack_s`, and the gap is not wider than `finest_s`. A kind that is not declared is measured and shown as unknown.
    """
    given = rendered or declared
    parts = tuple(
        _judge_row(subject, row, declared.get(row.kind), given.get(row.kind), finest_s, slack_s, dict(labels or {}))
        for row in table
    )
    return whole(subject, parts, labels=labels)


def whole(subject: str, parts: tuple[Result, ...], *, labels: Mapping[str, str] | None = None) -> Result:
    """Return the result of a truth table from the results of its rows."""
    known = [part for part in parts if part.evidence.get("declared_s") is not None]
    wrong = [part for part in parts if part.state not in (State.PASS, State.UNKNOWN)]
    shortened = any(part.evidence["rendered_s"] != part.evidence["declared_s"] for part in known)
    passed = sum(part.state is State.PASS for part in known)
    text = f"{passed} of {len(known)} declared timers measured as declared"
    text += ", long timers shortened for a lab" if shortened else ""
    if wrong:
        text += ": " + "; ".join(part.text for part in wrong)
    state = combine(part.state for part in known)
    return Result(CHECK, subject, state, text, parts=parts, labels=dict(labels or {}))


def decided(earlier: Result, later: Result) -> Result:
    """Return the result of two passes of one truth table: each row from the later pass that could decide it.

    A row that neither could decide alone is decided by both together: the timer lies in the gap of either.
    """
    before = {part.subject: part for part in earlier.parts}
    rows = (_decided(before.get(part.subject, part), part) for part in later.parts)
    return whole(later.subject, tuple(rows), labels=later.labels)


def _decided(one: Result, two: Result) -> Result:
    if two.state is not State.UNKNOWN:
        return two
    return _together(one, two) if one.state is State.UNKNOWN else one


def _together(one: Result, two: Result) -> Result:
    """Return a row with the gap that two passes leave; the second one's when that gap decides nothing."""
    facts = [one.evidence, two.evidence]
    wanted = two.evidence["rendered_s"]
    if wanted is None or any(fact["died_s"] is None for fact in facts):
        return two
    survived, died = max(fact["survived_s"] for fact in facts), min(fact["died_s"] for fact in facts)
    facts.append({"survived_s": survived, "died_s": died})
    if not all(fact["survived_s"] - SLACK_S <= wanted <= fact["died_s"] + SLACK_S for fact in facts):
        return two
    evidence = {**two.evidence, "survived_s": survived, "died_s": died, "resolution_s": round(died - survived, 3)}
    where = f"survived {survived:.2f} s, dead after {died:.2f} s in two passes"
    if not 0 < died - survived <= FINEST_S:
        text = f"{two.labels['kind']}: {where}: too coarse to confirm {wanted:g} s"
        return replace(two, text=text, evidence=evidence)
    kind, declared = two.labels["kind"], two.evidence["declared_s"]
    text = f"{kind}: {where}, wanted {wanted:g} s{_notes(kind, declared, wanted)}"
    half = round((died - survived) / 2, 3)
    figures = tuple(replace(figure, value=round(survived + half, 3), spread=half) for figure in two.measurements)
    return replace(two, state=State.PASS, text=text, measurements=figures, evidence=evidence)


def _judge_row(
    subject: str,
    row: IdleRow,
    declared: float | None,
    wanted: float | None,
    finest_s: float,
    slack_s: float,
    labels: dict[str, str],
) -> Result:
    state, text = _verdict(row, wanted, finest_s, slack_s)
    measurements = []
    if math.isfinite(row.died):
        middle = (row.survived + row.died) / 2
        kind = "half of the gap between the last survivor and the first death"
        measurements.append(
            Measurement("idle timeout", round(middle, 3), "s", row.probed, round(row.resolution / 2, 3), kind)
        )
    text += _notes(row.kind, declared, wanted)
    evidence = {
        "declared_s": declared,
        "rendered_s": wanted,
        "survived_s": round(row.survived, 3),
        "died_s": round(row.died, 3) if math.isfinite(row.died) else None,
        "resolution_s": round(row.resolution, 3) if math.isfinite(row.died) else None,
        "flows": row.probed,
        "answered_by_reset": row.refused,
        "came_back_from_elsewhere": row.moved,
    }
    name = f"{subject} {row.kind}"
    return Result(
        CHECK,
        name,
        state,
        text,
        measurements=tuple(measurements),
        labels={**labels, "kind": row.kind},
        evidence=evidence,
    )


def _notes(kind: str, declared: float | None, wanted: float | None) -> str:
    """Say that a timer was rendered otherwise than declared, and that what is declared is less than an RFC asks for."""
    text = ""
    if declared is not None and wanted != declared:
        text += f" (rendered for the lab; the plan declares {declared:g} s)"
    rfc = RFC_LEAST.get(kind)
    if declared is not None and rfc is not None and declared < rfc[0]:
        text += f" (declared {declared:g} s; {rfc[1]} asks for at least {rfc[0]} s)"
    return text


def _verdict(row: IdleRow, wanted: float | None, finest_s: float, slack_s: float) -> tuple[State, str]:
    """Return state and words; what a tester that stood still has seen is not held against the gateway."""
    state, text = _measured(row, wanted, finest_s, slack_s)
    if state is not State.PASS and row.pause_s > _LONGEST_PAUSE_S:
        return State.UNKNOWN, f"{text}; tester-limited: a tester's host did not let it run for {row.pause_s:.1f} s"
    return state, text


def _measured(row: IdleRow, wanted: float | None, finest_s: float, slack_s: float) -> tuple[State, str]:
    if row.probed == 0:
        return State.ERROR, f"{row.kind}: no flow came as far as silence, nothing was measured"
    if row.mixed > max(1, row.probed // 50):
        return (
            State.ERROR,
            f"{row.kind}: {row.mixed} of {row.probed} flows on the wrong side of any timer: loss or eviction",
        )
    where = _where(row)
    if wanted is None:
        return State.UNKNOWN, f"{row.kind}: {where}, nothing is declared"
    if not math.isfinite(row.died):
        beyond = row.survived > wanted + slack_s
        state = State.FAIL if beyond else State.UNKNOWN
        return state, f"{row.kind}: {where}, wanted {wanted:g} s"
    if not row.survived - slack_s <= wanted <= row.died + slack_s:
        return State.FAIL, f"{row.kind}: {where}, wanted {wanted:g} s"
    if row.resolution > finest_s:
        return State.UNKNOWN, f"{row.kind}: {where}: too coarse to confirm {wanted:g} s"
    return State.PASS, f"{row.kind}: {where}, wanted {wanted:g} s"


def _where(row: IdleRow) -> str:
    if not math.isfinite(row.died):
        return f"survived {row.survived:.2f} s, the longest silence tried"
    return f"survived {row.survived:.2f} s, dead after {row.died:.2f} s"
