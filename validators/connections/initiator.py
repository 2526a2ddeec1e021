"""The side of a ladder that opens connections, and counts the answers that come back through the recorded ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections import layout
from validators.connections.frames import build, checksums_ok
from validators.connections.pacing import Pace, paced

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from validators.connections.port import Port
    from validators.connections.tuples import Tuples

CREATE, ANSWER, CONFIRM, VALIDATE = 1, 2, 3, 4


def initial_sequence(flow: NDArray[Any], run: int) -> NDArray[np.uint32]:
    """Return the TCP sequence number that carries the flow (20 bits) and the run (4 bits); 8 bits are left to count."""
    sequence: NDArray[np.uint32] = (flow.astype(np.uint32) << np.uint32(12)) | np.uint32((run & 0xF) << 8)
    return sequence


class Initiator:
    """Opens the connections of one step."""

    def __init__(self, port: Port, protocol: int, tuples: Tuples, run: int, *, confirm: bool = False) -> None:
        """`run` tells frames of this step from late ones; `confirm` sends a third UDP packet after each answer."""
        self.port, self.protocol, self.tuples, self.run, self.confirm = port, protocol, tuples, run, confirm
        count = len(tuples)
        self.sent_ns = np.zeros(count, np.int64)
        self.answered_ns = np.zeros(count, np.int64)
        self.answers = np.zeros(count, np.uint16)
        self.validations = np.zeros(count, np.uint16)
        self.wrong_ends = self.bad_checksums = self.resets = self.strangers = 0
        self.ring = port.ring(protocol)
        self.ring.begin()
        self._template = port.template(protocol)

    def create(self, rate_per_s: float, between: Callable[[], None] | None = None) -> Pace:
        """Phase 1: send the first frame of every connection at `rate_per_s`."""
        return paced(len(self.tuples), rate_per_s, self._send_first, between)

    def _send_first(self, first: int, last: int) -> None:
        flows = np.arange(first, last)
        frames = self._frames(flows, CREATE)
        begun, ended = self.port.sender.send(frames)
        # frames leave one by one inside the call: share its time out among them
        self.sent_ns[first:last] = begun + ((ended - begun) * np.arange(last - first)) // max(1, last - first)

    def _frames(self, flows: NDArray[Any], stage: int) -> NDArray[Any]:
        pick = self.tuples
        ends: dict[str, Any] = {"src": pick.src[flows], "dst": pick.dst[flows], "sport": pick.sport[flows]}
        number = (self.run << 8) | stage
        if self.protocol == layout.TCP:
            sequence = initial_sequence(flows, self.run)
            ends["dport"] = pick.dport[flows]
            if stage == CREATE:
                return build(self._template, len(flows), **ends, seq=sequence, flags=layout.SYN)
            return build(self._template, len(flows), **ends, seq=sequence + 1, ack=sequence + 1, flags=layout.ACK)
        if self.protocol == layout.UDP:
            return build(self._template, len(flows), **ends, dport=pick.dport[flows], flow=flows, number=number)
        return build(self._template, len(flows), **ends, kind=8, echo_seq=stage, flow=flows, number=number)

    def poll(self) -> None:
        """Take in what has arrived; answer SYN-ACKs, and UDP answers when confirming."""
        frames, times = self.ring.read()
        if not len(frames):
            return
        if self.protocol == layout.TCP:
            self._tcp(frames, times)
        else:
            self._datagrams(frames, times)

    def _datagrams(self, frames: NDArray[Any], times: NDArray[np.int64]) -> None:
        good = (
            (frames["magic"] == layout.MAGIC)
            & (frames["number"] >> 8 == self.run)
            & (frames["flow"] < len(self.tuples))
        )
        self.strangers += int((~good).sum())
        self.bad_checksums += int((~checksums_ok(frames[good])).sum())
        frames, times = frames[good], times[good]
        flows = frames["flow"].astype(np.int64)
        stage = frames["number"] & 0xFF
        right = self._right_ends(frames, flows)
        self._count(flows, times, right, answer=stage == ANSWER, validation=stage == VALIDATE)
        if self.confirm:
            self._send_confirms(flows[right & (stage == ANSWER)])

    def _tcp(self, frames: NDArray[Any], times: NDArray[np.int64]) -> None:
        acked = frames["ack"].astype(np.int64) - 1
        flows = acked >> 12
        good = ((acked >> 8) & 0xF == (self.run & 0xF)) & (flows >= 0) & (flows < len(self.tuples))
        self.strangers += int((~good).sum())
        frames, times, flows = frames[good], times[good], flows[good]
        flags = frames["flags"]
        right = self._right_ends(frames, flows)
        self.resets += int((flags & layout.RST > 0).sum())
        answer = flags == (layout.SYN | layout.ACK)
        self._count(flows, times, right, answer=answer, validation=flags == (layout.PSH | layout.ACK))
        self._send_confirms(flows[right & answer])

    def _right_ends(self, frames: NDArray[Any], flows: NDArray[Any]) -> NDArray[np.bool_]:
        """An answer counts only if it comes from where the first frame went, to where it came from."""
        pick = self.tuples
        right: NDArray[np.bool_] = (frames["src"] == pick.dst[flows]) & (frames["dst"] == pick.src[flows])
        if self.protocol == layout.ICMP:
            right &= frames["sport"] == pick.sport[flows]
        else:
            right &= (frames["sport"] == pick.dport[flows]) & (frames["dport"] == pick.sport[flows])
        self.wrong_ends += int((~right).sum())
        return right

    def _count(
        self,
        flows: NDArray[Any],
        times: NDArray[np.int64],
        right: NDArray[np.bool_],
        *,
        answer: NDArray[Any],
        validation: NDArray[Any],
    ) -> None:
        first = flows[right & answer]
        fresh = self.answers[first] == 0
        self.answered_ns[first[fresh]] = times[right & answer][fresh]
        np.add.at(self.answers, first, 1)
        np.add.at(self.validations, flows[right & validation], 1)

    def _send_confirms(self, flows: NDArray[Any]) -> None:
        if len(flows):
            self.port.sender.send(self._frames(flows, CONFIRM))

    def report(self) -> dict[str, Any]:
        """Return what was seen, with the per-flow arrays that the merge needs."""
        return {
            "sent_ns": self.sent_ns,
            "answered_ns": self.answered_ns,
            "answers": self.answers,
            "validations": self.validations,
            "wrong_ends": self.wrong_ends,
            "bad_checksums": self.bad_checksums,
            "resets": self.resets,
            "strangers": self.strangers,
            "port": self.port.drops(),
        }
