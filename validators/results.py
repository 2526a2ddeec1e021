"""What a validator says: one state, why, how it was measured, and the parts it is made of.

A missing counter, a dead agent or an empty set of tests is never a pass: see `State` and `combine`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class State(StrEnum):
    """The five honest answers.

    PASS: measured, and as promised. FAIL: measured, and not as promised. ERROR: could not judge (a tool, a counter
    or an agent is missing). SKIPPED: not asked, with the reason. UNKNOWN: asked, and the answer decides nothing.
    """

    PASS = "pass"  # noqa: S105 - a state, not a secret
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


# why a check that disturbs traffic was not asked
NEEDS_PERMISSION = "disturbs traffic: give --allow-disruptive to run it"
# why a check of real ports was not asked where ports are virtual
NEEDS_PORTS = "needs real ports"
# what a case says that another one, or a stage, kept from being asked; the reason follows
NOT_RUN = "not run, because "
BAD = frozenset({State.FAIL, State.ERROR, State.UNKNOWN})
_ORDER = (State.FAIL, State.ERROR, State.UNKNOWN, State.PASS, State.SKIPPED)


def combine(states: Iterable[State]) -> State:
    """Return the state of a whole from its parts: the worst one; SKIPPED when all are, UNKNOWN for no part at all."""
    present = set(states)
    return next((state for state in _ORDER if state in present), State.UNKNOWN)


_PLACES = 3  # so many are named, more are counted


def places_of(parts: Iterable[Result]) -> str:
    """Return where somebody must go for the bad ones of these results, each place once."""
    places = list(dict.fromkeys(part.place for part in parts if part.state in BAD and part.place))
    more = f" and {len(places) - _PLACES} more" if len(places) > _PLACES else ""
    return ", ".join(places[:_PLACES]) + more


MEASURED, COMPUTED = "measured", "computed"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured number: what, how much, in which unit, over how many trials, and what limited it.

    `unit` is explicit (`Gb/s payload`, `GB/s`, `ms`, `connections/s`); `spread` is the half width between the
    smallest and largest trial unless `spread_kind` says otherwise; `limit` names what stopped it from being better
    (`device`, `path`, `tester`, or empty when nothing is known). `origin` is `computed` for a number of the plan that
    stands beside measured ones to compare with.
    """

    name: str
    value: float
    unit: str
    trials: int = 1
    spread: float | None = None
    spread_kind: str = "half-range"
    limit: str = ""
    tool: str = ""
    origin: str = MEASURED


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one check on one subject.

    `subject` is in the plan's own names (`compute-001:be0 -> compute-009:be0`); `text` says why in a sentence;
    `place` names what a person must touch (device, port, file, inventory line); `parts` are atomic sub-results;
    `evidence` holds raw observations that are JSON-ready. `labels` (tenant, vrf, device, port, direction, priority)
    join the result to the plan and to Prometheus. `test_id` is an outside id such as `ietf:inference-1.1`.
    """

    check: str
    subject: str
    state: State
    text: str
    place: str = ""
    measurements: tuple[Measurement, ...] = ()
    parts: tuple[Result, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    test_id: str = ""
    duration_s: float = 0.0
