"""The side of a ladder that is reached: it records the ends it sees, answers at once where asked, and validates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections import layout
from validators.connections.frames import build, checksums_ok
from validators.connections.initiator import ANSWER, CONFIRM, CREATE, VALIDATE
from validators.connections.pacing import Pace, paced

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from validators.connections.port import Port


class Responder:
    """Keeps the state table of one step: for each flow the ends as they look after translation."""

    def __init__(self, port: Port, protocol: int, count: int, run: int, *, answer_every: int = 1) -> None:
        """Answer every `answer_every`-th flow at once (1: all, 0: none; TCP always answers)."""
        self.port, self.protocol, self.run = port, protocol, run
        self.answer_every = 1 if protocol == layout.TCP else answer_every
        self.src = np.zeros(count, np.uint32)
        self.dst = np.zeros(count, np.uint32)
        self.sport = np.zeros(count, np.uint16)
        self.dport = np.zeros(count, np.uint16)
        self.isn = np.zeros(count, np.uint32)
        self.seen = np.zeros(count, np.uint16)
        self.confirmed = np.zeros(count, np.bool_)
        self.hold_ns = np.full(count, -1, np.int64)
        self.changed_ends = self.bad_checksums = self.resets = self.strangers = 0
        self.ring = port.ring(protocol)
        self.ring.begin()
        self._template = port.template(protocol)
        self._data_template = port.template(protocol, data=True)

    def poll(self) -> None:
        """Take in what has arrived and answer what is to be answered at once."""
        frames, times = self.ring.read()
        if not len(frames):
            return
        if self.protocol == layout.TCP:
            raw = frames["seq"].astype(np.int64)
            flags = frames["flags"]
            self.resets += int((flags & layout.RST > 0).sum())
            first, confirm = flags == layout.SYN, flags == layout.ACK
            raw = np.where(confirm, raw - 1, raw)
            flows, run = raw >> 12, (raw >> 8) & 0xF == (self.run & 0xF)
            good = run & (flows < len(self.src)) & (flows >= 0)
        else:
            stage = frames["number"] & 0xFF
            flows = frames["flow"].astype(np.int64)
            first, confirm = stage == CREATE, stage == CONFIRM
            good = (frames["magic"] == layout.MAGIC) & (frames["number"] >> 8 == self.run) & (flows < len(self.src))
            self.bad_checksums += int((~checksums_ok(frames[good])).sum())
        self.strangers += int((~good).sum())
        self._confirms(frames[good & confirm], flows[good & confirm])
        self._record(frames[good & first], flows[good & first], times[good & first])

    def _confirms(self, frames: NDArray[Any], flows: NDArray[Any]) -> None:
        same = (frames["src"] == self.src[flows]) & (frames["sport"] == self.sport[flows])
        self.changed_ends += int((~same).sum())
        self.confirmed[flows[same]] = True

    def _record(self, frames: NDArray[Any], flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        if not len(flows):
            return
        self.src[flows], self.dst[flows], self.sport[flows] = frames["src"], frames["dst"], frames["sport"]
        if self.protocol != layout.ICMP:
            self.dport[flows] = frames["dport"]
        if self.protocol == layout.TCP:
            self.isn[flows] = frames["seq"]
        np.add.at(self.seen, flows, 1)
        if self.answer_every == 0:
            return
        chosen = flows % self.answer_every == 0
        now = flows[chosen]
        if len(now):
            begun, ended = self.port.sender.send(self._frames(now, ANSWER))
            left = begun + ((ended - begun) * np.arange(len(now))) // len(now)
            self.hold_ns[now] = left - times[chosen]

    def _frames(self, flows: NDArray[Any], stage: int) -> NDArray[Any]:
        ends: dict[str, Any] = {"src": self.dst[flows], "dst": self.src[flows]}
        number = (self.run << 8) | stage
        if self.protocol == layout.ICMP:
            return build(
                self._template,
                len(flows),
                **ends,
                kind=0,
                sport=self.sport[flows],
                echo_seq=CREATE,
                flow=flows,
                number=number,
            )
        ends |= {"sport": self.dport[flows], "dport": self.sport[flows]}
        if self.protocol == layout.UDP:
            return build(self._template, len(flows), **ends, flow=flows, number=number)
        sequence = self.isn[flows]
        if stage == ANSWER:
            flags = layout.SYN | layout.ACK
            return build(self._template, len(flows), **ends, seq=sequence, ack=sequence + 1, flags=flags)
        ends |= {"seq": sequence + 1, "ack": sequence + 1, "flags": layout.PSH | layout.ACK}
        return build(self._data_template, len(flows), **ends, flow=flows, number=number)

    def validate(self, rate_per_s: float, between: Callable[[], None] | None = None) -> Pace:
        """Phase 2: send one frame back through the recorded ends of every flow that was seen."""
        flows = np.flatnonzero(self.seen)

        def send(first: int, last: int) -> None:
            self.port.sender.send(self._frames(flows[first:last], VALIDATE))

        return paced(len(flows), rate_per_s, send, between)

    def report(self) -> dict[str, Any]:
        """Return what was seen, with the per-flow arrays that the merge needs."""
        return {
            "src": self.src,
            "sport": self.sport,
            "dst": self.dst,
            "dport": self.dport,
            "seen": self.seen,
            "confirmed": int(self.confirmed.sum()),
            "hold_ns": self.hold_ns,
            "changed_ends": self.changed_ends,
            "bad_checksums": self.bad_checksums,
            "resets": self.resets,
            "strangers": self.strangers,
            "port": self.port.drops(),
        }
