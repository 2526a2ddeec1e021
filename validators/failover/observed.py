"""What long flows and canaries met during an event, flow by flow, from the reports of both sides; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections.layout import address_text
from validators.failover.flows import AGAIN_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from validators.failover.flows import FlowsSpec


_TAIL_MS, _MOST_TAIL_MS = 100, 1500


@dataclass(frozen=True)
class Silence:
    """The longest silence of one direction: times on the receiver's clock; `first_good_ns` None: it never ended."""

    last_good_ns: int
    first_good_ns: int | None
    outage_ms: float


@dataclass(frozen=True)
class SlotSeen:
    """One connection: both directions, how it ended, and where it was made again."""

    slot: int
    towards: Silence
    back: Silence
    reset: bool
    moved: bool
    public_before: str
    public_after: str
    remade_ms: float | None

    @property
    def survived(self) -> bool:
        """The connection itself came back in both directions, with the ends it had."""
        return self.towards.first_good_ns is not None and self.back.first_good_ns is not None and not self.reset

    @property
    def outage_ms(self) -> float:
        """The longer of the two silences in ms."""
        return max(self.towards.outage_ms, self.back.outage_ms)


@dataclass(frozen=True)
class CanarySeen:
    """A new connection: when it was opened (ns since 1970), whether it was answered, as whom the far end saw it.

    `at_once`: its first packet was answered, not only the one that asked again.
    """

    opened_ns: int
    answered: bool
    public: str
    at_once: bool = True


@dataclass(frozen=True)
class FlowsSeen:
    """All connections of one mode, the canaries and how fine the measurement was.

    `resolution_ms` is the time between two frames of a flow as really sent (99th percentile, the slower side).
    `new_silence` is the longest stretch of time without a canary that was answered at once. `canaries` are those that
    are decided: answered, or long enough asked for again. `pause_ms` is the longest time for which a tester's host did
    not let it run.
    """

    slots: tuple[SlotSeen, ...]
    never_opened: int
    resolution_ms: float
    tester_drops: int
    canaries_opened: int
    canaries_answered: int
    new_silence: Silence | None
    canaries: tuple[CanarySeen, ...] = ()
    pause_ms: float = 0.0


def observed(spec: FlowsSpec, initiator: Mapping[str, Any], responder: Mapping[str, Any]) -> FlowsSeen:
    """Merge both reports."""
    back, towards = initiator["gaps"], responder["gaps"]
    resolution = max(_send_gap_ms(initiator["send_gaps"]), _send_gap_ms(responder["send_gaps"]))
    # a silence that runs at the end is only one if it is longer than what the testers themselves leave between frames
    tail = max(5000 * spec.interval_s, _TAIL_MS, 3 * resolution if math.isfinite(resolution) else _MOST_TAIL_MS)
    usable = np.flatnonzero((back["first"][: spec.slots] > 0) & (towards["first"][: spec.slots] > 0))
    slots = tuple(_slot(spec, int(i), initiator, responder, tail) for i in usable)
    opened = np.asarray(initiator["opened"][spec.long :])
    first = np.asarray(back["first"][spec.long :])
    # the youngest canaries had no time to be answered
    opened = np.where(opened < opened.max(initial=0) - _TAIL_MS * 1_000_000, opened, 0)
    at_once = (first > 0) & (first - opened < AGAIN_S * 1e9)
    return FlowsSeen(
        slots,
        spec.slots - len(usable),
        resolution,
        initiator["port"]["ring_drops"] + responder["port"]["ring_drops"],
        int((opened > 0).sum()),
        int(((opened > 0) & (first > 0)).sum()),
        _canary_silence(opened, at_once),
        _canaries(opened, first, at_once, responder["src"][spec.long :]),
        1000 * max(side.get("pause_s", 0.0) for side in (initiator, responder)),
    )


def _canaries(opened: Any, first: Any, at_once: Any, public: Any) -> tuple[CanarySeen, ...]:
    """Return each canary that is decided, in the order in which they were opened."""
    decided = (first > 0) | (opened < opened.max(initial=0) - int(AGAIN_S * 1e9) - _TAIL_MS * 1_000_000)
    return tuple(
        CanarySeen(int(opened[i]), bool(first[i]), address_text(int(public[i])) if public[i] else "", bool(at_once[i]))
        for i in np.flatnonzero((opened > 0) & decided)
    )


def _slot(
    spec: FlowsSpec, slot: int, initiator: Mapping[str, Any], responder: Mapping[str, Any], tail_ms: float
) -> SlotSeen:
    back, towards = _silence(initiator["gaps"], slot, tail_ms), _silence(responder["gaps"], slot, tail_ms)
    resets = [int(side["resets"][slot]) for side in (initiator, responder) if side["resets"][slot]]
    lost = bool(resets) or None in (towards.first_good_ns, back.first_good_ns)
    # when it was lost: an end may be told so after the client has given it up for its silence and made it again
    since = min([*resets, int(initiator["gaps"]["last"][slot]), int(responder["gaps"]["last"][slot])])
    after, remade = "", None
    made = [
        flow
        for flow in range(slot + spec.slots, spec.long, spec.slots)
        if lost and int(initiator["gaps"]["first"][flow]) > since
    ]
    if made:
        # a replacement may have met the gateway that lost its traffic next: the first that went on talking is where the
        # connection ended up, whatever a client that was held up itself took for silence and opened after it
        flow = next((flow for flow in made if _lives(initiator, responder, flow, tail_ms)), made[-1])
        remade = (int(initiator["gaps"]["first"][flow]) - since) / 1e6
        after = address_text(int(responder["src"][flow]))
    before = address_text(int(responder["src"][slot]))
    moved = bool(responder["moved_at"][slot])
    return SlotSeen(slot, towards, back, bool(resets), moved, before, after, remade)


def _lives(initiator: Mapping[str, Any], responder: Mapping[str, Any], flow: int, tail_ms: float) -> bool:
    sides = (initiator, responder)
    reset = any(side["resets"][flow] for side in sides)
    return not reset and all(_silence(side["gaps"], flow, tail_ms).first_good_ns is not None for side in sides)


def _silence(gaps: Mapping[str, Any], flow: int, tail_ms: float) -> Silence:
    after = int(gaps["after"][flow])
    outage = float(gaps["silence"][flow]) / 1e6
    if after == 0 and outage <= tail_ms:
        after = int(gaps["last"][flow])
    return Silence(int(gaps["before"][flow]), after or None, round(outage, 3))


def _send_gap_ms(histogram: Any) -> float:
    """Return the 99th percentile of a histogram with bins of 0.1 ms.

    Infinite when nothing was sent twice, and when it lies in the last bin, which has no upper end.
    """
    total = np.cumsum(histogram)
    at = int(np.searchsorted(total, 0.99 * total[-1]))
    if not total[-1] or at == len(total) - 1:
        return float("inf")
    return round((at + 1) / 10, 1)


def _canary_silence(opened: Any, at_once: Any) -> Silence | None:
    """Return the longest time between the openings of two canaries, answered at once, that lie next to each other."""
    good = np.sort(opened[(opened > 0) & at_once])
    if len(good) < 2:
        return None
    last_opened = int(opened.max())
    steps = np.diff(good)
    at = int(np.argmax(steps))
    if last_opened - int(good[-1]) > int(steps[at]):
        return Silence(int(good[-1]), None, round((last_opened - int(good[-1])) / 1e6, 3))
    return Silence(int(good[at]), int(good[at + 1]), round(int(steps[at]) / 1e6, 3))
