"""What long flows met, from reports of both sides: when a connection was lost, where it was made again, new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from validators.connections import layout
from validators.failover.flows import FlowsSpec
from validators.failover.observed import FlowsSeen, observed

pytestmark = pytest.mark.unit

SPEC = FlowsSpec("tcp", "10.1.0.1", "198.18.0.1", 7000, slots=1, canaries=40, interval_s=0.1)
MS, END = 1_000_000, 10_000
OLD, NEW = layout.address("203.0.113.1"), layout.address("203.0.113.5")


class Reports:
    """Reports of a run of `END` ms: one slot on the old gateway, which talks to the end, and no canary."""

    def __init__(self) -> None:
        self.initiator, self.responder = (self._side() for _ in range(2))
        self.initiator["opened"] = np.zeros(SPEC.total, np.int64)
        self.responder |= {"src": np.zeros(SPEC.total, np.uint32), "moved_at": np.zeros(SPEC.total, np.int64)}
        self.talks(0, 100, END, OLD)

    @staticmethod
    def _side() -> dict[str, Any]:
        names = ("first", "last", "before", "after", "silence")
        gaps = {name: np.zeros(SPEC.total, np.int64) for name in names}
        histogram = np.zeros(5000, np.int64)
        histogram[1000] = 100
        return {
            "gaps": gaps,
            "resets": np.zeros(SPEC.total, np.int64),
            "send_gaps": histogram,
            "port": {"ring_drops": 0},
        }

    def talks(self, flow: int, first: float, last: float, public: int) -> None:
        """Let a flow be good from `first` to `last` (ms)."""
        for side in (self.initiator, self.responder):
            gaps = side["gaps"]
            gaps["first"][flow], gaps["last"][flow], gaps["before"][flow] = first * MS, last * MS, last * MS
            gaps["silence"][flow] = (END - last) * MS
        self.responder["src"][flow] = public

    def canary(self, number: int, opened: float, answered: float | None) -> None:
        """Open a canary, and answer it (ms)."""
        flow = SPEC.long + number
        self.initiator["opened"][flow] = opened * MS
        if answered is not None:
            self.initiator["gaps"]["first"][flow] = answered * MS
            self.responder["src"][flow] = OLD

    def seen(self) -> FlowsSeen:
        """Merge both."""
        return observed(SPEC, self.initiator, self.responder)


def test_a_flow_that_lives_was_not_made_again() -> None:
    reports = Reports()
    reports.talks(1, 2000, END, OLD)  # a client that lost patience
    (slot,) = reports.seen().slots
    assert slot.survived
    assert slot.remade_ms is None


def test_a_reset_says_when_a_flow_was_lost_though_frames_still_came() -> None:
    reports = Reports()
    reports.initiator["resets"][0] = 5000 * MS
    reports.talks(1, 5060, END, NEW)
    (slot,) = reports.seen().slots
    assert not slot.survived
    assert slot.remade_ms == pytest.approx(60)
    assert slot.public_after == "203.0.113.5"


def test_a_silence_without_end_says_when_a_flow_was_lost() -> None:
    reports = Reports()
    reports.talks(0, 100, 4000, OLD)
    reports.talks(1, 4500, END, NEW)
    (slot,) = reports.seen().slots
    assert not slot.survived
    assert slot.remade_ms == pytest.approx(500)


def test_what_was_opened_before_the_loss_did_not_make_the_connection_again() -> None:
    reports = Reports()
    reports.initiator["resets"][0] = 5000 * MS
    reports.talks(1, 4000, END, OLD)
    (slot,) = reports.seen().slots
    assert slot.remade_ms is None


def test_a_client_may_make_a_connection_again_before_its_end_is_told_of_the_loss() -> None:
    """Silence, then a connection by the next gateway, then that gateway's reset for what the old one had."""
    reports = Reports()
    reports.talks(0, 100, 4000, OLD)
    reports.initiator["resets"][0] = 4450 * MS
    reports.talks(1, 4430, END, NEW)
    (slot,) = reports.seen().slots
    assert slot.remade_ms == pytest.approx(430)
    assert slot.public_after == "203.0.113.5"


def test_what_a_client_that_was_held_up_opens_once_more_does_not_make_the_outage_longer() -> None:
    reports = Reports()
    reports.talks(0, 100, 4000, OLD)
    reports.talks(1, 4500, END, NEW)
    reports.talks(2, 8000, END, NEW)
    assert reports.seen().slots[0].remade_ms == pytest.approx(500)
    reports.responder["resets"][SPEC.slots] = 7900 * MS  # it met a gateway that lost its traffic next
    assert reports.seen().slots[0].remade_ms == pytest.approx(4000)


def test_new_connections_are_at_once_late_or_undecided() -> None:
    reports = Reports()
    for number in range(40):
        opened = 100 * number
        answer = {10: 1000 + 1020.0, 11: None, 35: None}.get(number, opened + 5)
        reports.canary(number, opened, answer)
    seen = reports.seen()
    decided = {canary.opened_ns // MS: canary for canary in seen.canaries}
    assert decided[1000].answered
    assert not decided[1000].at_once
    assert not decided[1100].answered
    assert 3500 not in decided  # it was not asked for again yet
    assert decided[500].at_once
    assert seen.new_silence
    assert seen.new_silence.outage_ms == 300  # from 900 to 1200: late is not at once
