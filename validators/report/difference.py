"""What got worse between two runs, what got better, and what is new or gone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.results import Measurement, Result, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from validators.report.model import Run

_RANK = {State.PASS: 0, State.SKIPPED: 1, State.UNKNOWN: 2, State.ERROR: 3, State.FAIL: 4}
_DIGEST = re.compile("#[0-9a-f]{8}(?=/|$)")
# units in which a smaller number is the better one
_LESS_IS_BETTER = frozenset({"ms", "s", "us", "ns", "packets lost", "bytes lost", "%lost", "% of all CPUs"})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `kind` is worse, better, slower, faster, new, gone or other."""

    kind: str
    case: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {"kind": self.kind, "case": self.case, "text": self.text}


def compare(baseline: Run, run: Run, tolerance: float = 0.05) -> list[Change]:
    """Return all differences, worst first. A measurement counts as changed beyond both its spread and `tolerance`.

    A case that only one of them has, or only one of them asked, is one difference, whatever parts it has. Figures of a
    lab's virtual ports say something about its CPU: that one has moved is said, and makes nothing slower or faster.
    """
    edited = _edited(baseline, run)
    before, after = _answers(baseline, edited), _answers(run)
    for case in before.keys() | after.keys():
        _whole_where_only_one_was_asked(case, before, after)
    in_lab = "virtual" in {baseline.info.ports, run.info.ports}
    changes = [
        Change("other", "plan", f"the plans differ: {a[:12]} and {b[:12]}")
        for a, b in [(baseline.info.plan, run.info.plan)]
        if a != b
    ]
    changes += [Change("other", case, "asked with other inputs than in the baseline") for case in edited.values()]
    both = [set(baseline.without), set(run.without)]
    changes += [Change("other", "coverage", f"only now without: {text}") for text in sorted(both[1] - both[0])]
    changes += [Change("other", "coverage", f"no longer without: {text}") for text in sorted(both[0] - both[1])]
    for case in before.keys() | after.keys():
        old, new = before.get(case, {}), after.get(case, {})
        for leaf in old.keys() | new.keys():
            changes += _changes(leaf, old.get(leaf), new.get(leaf), tolerance, in_lab=in_lab)
    order = ("worse", "slower", "gone", "new", "better", "faster", "other")
    return sorted(changes, key=lambda c: (order.index(c.kind), c.case))


def _answers(run: Run, edited: Mapping[str, str] | None = None) -> dict[str, dict[str, Result]]:
    """Return the atomic results of each case by key, and the case itself as the empty one."""
    found: dict[str, dict[str, Result]] = {_key(record.case, edited): {"": record.result} for record in run.records}
    for leaf in run.leaves():
        found[_key(leaf.record.case, edited)][_key(leaf.id, edited)] = leaf.result
    return found


def _whole_where_only_one_was_asked(
    case: str, before: dict[str, dict[str, Result]], after: dict[str, dict[str, Result]]
) -> None:
    """Leave the whole case where the other run does not have it, or skipped it, else its atomic results."""
    wholes = [side[case].pop("") for side in (before, after) if case in side]
    skipped = [whole.state is State.SKIPPED for whole in wholes]
    if len(wholes) == 1 or skipped[0] is not skipped[1]:
        for side in (before, after):
            if case in side:
                side[case] = {case: wholes.pop(0)}


def _edited(baseline: Run, run: Run) -> dict[str, str]:
    """Return the cases that have another id now although check and subject are the same, and their new ids."""
    ids = [{record.case for record in one.records} for one in (baseline, run)]
    old: dict[str, list[str]] = {}
    new: dict[str, list[str]] = {}
    for found, cases in ((old, ids[0] - ids[1]), (new, ids[1] - ids[0])):
        for case in cases:
            found.setdefault(case.rpartition("#")[0], []).append(case)
    return {old[about][0]: new[about][0] for about in old if about and len(old[about]) == 1 == len(new.get(about, ()))}


def _key(case: str, edited: Mapping[str, str] | None = None) -> str:
    """A leaf's id as the later run has it, without the position of a part, which moves when parts come and go."""
    for old, new in (edited or {}).items():
        if case == old or case.startswith(f"{old}/"):
            case = new + case.removeprefix(old)
    head, slash, tail = case.partition("/")
    number, colon, subject = tail.partition(":")
    return f"{head}/{subject}" if slash and colon and number.isdigit() else case


def _changes(case: str, before: Result | None, after: Result | None, tolerance: float, *, in_lab: bool) -> list[Change]:
    if before is None or after is None:
        if after is None:
            return [Change("gone", case, "was in the baseline and did not run now")]
        kind = "worse" if after.state in {State.FAIL, State.ERROR} else "new"
        return [Change(kind, case, f"new: {after.state.value}: {after.text}")]
    if before.state is not after.state:
        kind = "worse" if _RANK[after.state] > _RANK[before.state] else "better"
        place = f" [{after.place}]" if after.place else ""
        return [Change(kind, case, f"{before.state.value} -> {after.state.value}: {after.text}{place}")]
    measured = {m.name: m for m in before.measurements}
    pairs = [(measured[m.name], m) for m in after.measurements if m.name in measured]
    return [change for old, new in pairs if (change := _moved(case, old, new, tolerance, in_lab=in_lab)) is not None]


def _moved(case: str, old: Measurement, new: Measurement, tolerance: float, *, in_lab: bool) -> Change | None:
    if old.unit != new.unit or old.value == new.value:
        return None
    noise = max((old.spread or 0.0) + (new.spread or 0.0), tolerance * abs(old.value))
    delta = new.value - old.value
    if abs(delta) <= noise:
        return None
    worse = delta > 0 if new.unit in _LESS_IS_BETTER else delta < 0
    share = f" ({delta / old.value:+.0%})" if old.value else ""
    kind = "other" if in_lab else "slower" if worse else "faster"
    lab = ", in a lab" if in_lab else ""
    return Change(kind, case, f"{new.name}: {old.value:g} -> {new.value:g} {new.unit}{share}{lab}")


def plain_names(cases: Iterable[str]) -> dict[str, str]:
    """Return each case as a person writes it: without the digest of its inputs, where no other case is called so."""
    plain = {case: _DIGEST.sub("", case, count=1) for case in cases}
    often = Counter(plain.values())
    return {case: case if often[name] > 1 else name for case, name in plain.items()}
