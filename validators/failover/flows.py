"""Long flows that talk in both directions all the time, so that a gap of one flow is known to one interval.

Slot i is a connection that the probe wants to keep. Its first flow (`flow = i`) goes on sending until it is reset, so
that one that survives is seen to. When it has been silent for `reopen_s` or was reset, replacements
(`flow = i + slots * n`) are tried until one is answered, as a client would, and that one is replaced in its turn.
Canaries are new connections opened at a steady rate: they tell when *new* work is served again. One that is not
answered is asked for once more after `AGAIN_S`, as a client does whose first packet was lost (RFC 6298: 1 s). TCP flows
exchange bare ACKs and carry their number in the urgent pointer (URG unset), so a connection tracker sees a live, idle
connection and never a full window.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections import layout
from validators.connections.frames import build
from validators.connections.initiator import initial_sequence
from validators.failover.gaps import Gaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from validators.connections.port import Port

REPLACEMENTS = 16
AGAIN_S = 1.0


@dataclass(frozen=True)
class FlowsSpec:
    """`slots` connections of `protocol` (udp, tcp), one frame per `interval_s` in each direction.

    `new_per_s` canaries per second, at most `canaries`. Source ports count up from `first_port` on `source` and the
    addresses after it (`sources` of them); canaries have ports of their own, above those.
    """

    protocol: str
    source: str
    destination: str
    dport: int
    slots: int
    sources: int = 1
    first_port: int = 10000
    interval_s: float = 0.01
    reopen_s: float = 0.2
    new_per_s: float = 100.0
    canaries: int = 10000
    run: int = 1

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FlowsSpec:
        """Read what `asdict` wrote; raises TypeError or ValueError for anything else."""
        spec = cls(**data)
        if spec.protocol not in ("udp", "tcp"):
            msg = f"long flows are udp or tcp, not {spec.protocol!r}"
            raise ValueError(msg)
        if spec.total > min(1 << 20, (65536 - spec.first_port) * spec.sources):
            msg = f"{spec.total} flows do not fit into the ports of {spec.sources} source addresses"
            raise ValueError(msg)
        return spec

    @property
    def long(self) -> int:
        """How many flow numbers slots and their replacements use; canaries come after them."""
        return self.slots * (1 + REPLACEMENTS)

    @property
    def total(self) -> int:
        """How many flow numbers there are."""
        return self.long + self.canaries

    def source_of(self, flows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return source address and port of flows."""
        return layout.address(self.source) + flows % self.sources, self.first_port + flows // self.sources


class _Side:
    """What both sides share: the ring, flow numbers in frames, sending at intervals."""

    def __init__(self, port: Port, spec: FlowsSpec) -> None:
        self.port, self.spec = port, spec
        self.protocol = layout.PROTOCOLS[spec.protocol]
        self.ring = port.ring(self.protocol)
        self.ring.begin()
        self.template = port.template(self.protocol)
        self.gaps = Gaps(spec.total)
        self.resets = np.zeros(spec.total, np.int64)
        self.number = np.zeros(spec.total, np.uint32)
        self.next_send = np.full(spec.long, np.inf)
        self._begun = 0  # flows from here on were never asked to send
        self.sent_at = np.zeros(spec.long)
        self.send_gaps = np.zeros(5000, np.int32)  # histogram, bins of 0.1 ms; the last one is open
        self.frozen_ns = 0

    def freeze(self) -> dict[str, Any]:
        """End the measurement here: both sides are frozen together, then reported at leisure."""
        self.frozen_ns = time.time_ns()
        return {"at_ns": self.frozen_ns}

    def read(self, *, back: bool) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
        """Return frames of this run, their flow numbers and receive times."""
        frames, times = self.ring.read()
        if self.protocol == layout.TCP:
            # a reset answers with the number that was acknowledged (RFC 9293 3.5.2): both sides use the same ones
            reset = frames["flags"] & (layout.RST | layout.ACK) == layout.RST
            raw = np.where(reset, frames["seq"], frames["ack" if back else "seq"]).astype(np.int64)
            raw -= reset | back | (frames["flags"] & layout.SYN == 0)
            flows, good = raw >> 12, (raw >> 8) & 0xF == (self.spec.run & 0xF)
        else:
            flows = frames["flow"].astype(np.int64)
            good = (frames["magic"] == layout.MAGIC) & (frames["number"] >> 24 == (self.spec.run & 0xFF))
        good &= (flows >= 0) & (flows < self.spec.total)
        return frames[good], flows[good], times[good]

    def due(self) -> NDArray[Any]:
        """Return the long flows whose next frame is due, and put them off by one interval."""
        now = time.monotonic()
        flows = np.flatnonzero(self.next_send[: self._begun] <= now)
        if len(flows):
            gaps = now - self.sent_at[flows][self.sent_at[flows] > 0]
            np.add.at(self.send_gaps, np.minimum(gaps * 10_000, len(self.send_gaps) - 1).astype(np.int64), 1)
            self.sent_at[flows] = now
            # keep each flow's own phase, so that frames stay spread over the interval when a round was late
            missed = np.floor((now - self.next_send[flows]) / self.spec.interval_s)
            self.next_send[flows] += (missed + 1) * self.spec.interval_s
        return flows

    def begin(self, flows: NDArray[Any]) -> None:
        """Let long flows send from now on, spread over one interval."""
        spread = (flows % 97) / 97 * self.spec.interval_s
        self.next_send[flows] = time.monotonic() + spread
        self._begun = max(self._begun, int(flows.max(initial=-1)) + 1)

    def end(self, flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        """Note when flows were reset (the first time counts); an end that was told so says no more on them."""
        fresh = self.resets[flows] == 0
        self.resets[flows[fresh]] = times[fresh]
        self.next_send[flows[flows < self.spec.long]] = np.inf

    def count(self, flows: NDArray[Any]) -> NDArray[Any]:
        """Return the next number of each flow; 0 is what opens it."""
        self.number[flows] += 1
        numbers: NDArray[Any] = self.number[flows]
        return numbers

    def common(self) -> dict[str, Any]:
        """Return the report's arrays that both sides have."""
        return {
            "gaps": self.gaps.report(self.frozen_ns or time.time_ns()),
            "resets": self.resets,
            "send_gaps": self.send_gaps,
            "port": self.port.drops(),
        }


class FlowsInitiator(_Side):
    """Opens the slots, keeps them talking, replaces silent ones and opens canaries."""

    def __init__(self, port: Port, spec: FlowsSpec) -> None:
        super().__init__(port, spec)
        self.opened = np.zeros(spec.total, np.int64)
        self._attempt = np.zeros(spec.slots, np.int64)
        self._try_at = np.full(spec.slots, np.inf)
        self._current = np.arange(spec.slots)  # the connection that each slot talks by: the last one answered
        self._canary_from = np.inf
        self._canaries = 0
        self._asked_again = 0
        self.wrong_ends = 0

    def start(self) -> dict[str, Any]:
        """Open every slot, 50 at a time; canaries begin at once."""
        for first in range(0, self.spec.slots, 50):
            self._open(np.arange(first, min(first + 50, self.spec.slots)))
            time.sleep(0.005)
            self.poll()
        self._canary_from = time.monotonic()
        return {"slots": self.spec.slots}

    def retry(self) -> dict[str, Any]:
        """Open slots that were not answered yet again; return how many were left."""
        left = np.flatnonzero(self.gaps.first[: self.spec.slots] == 0)
        if len(left):
            self._open(left)
        return {"unanswered": len(left)}

    def hang_up(self) -> dict[str, Any]:
        """Reset every TCP flow that was answered, so that no gateway waits for it; UDP has nothing to say."""
        flows = np.flatnonzero(self.gaps.first)
        if self.protocol == layout.TCP:
            for first in range(0, len(flows), 50):
                self._send(flows[first : first + 50], flags=layout.RST | layout.ACK)
                time.sleep(0.005)
        return {"flows": len(flows)}

    def _open(self, flows: NDArray[Any]) -> None:
        self.opened[flows] = time.time_ns()
        self._send(flows, opening=True)

    def _send(self, flows: NDArray[Any], *, opening: bool = False, flags: int = layout.ACK) -> None:
        if not len(flows):
            return
        src, sport = self.spec.source_of(flows)
        ends: dict[str, Any] = {
            "src": src,
            "sport": sport,
            "dst": layout.address(self.spec.destination),
            "dport": self.spec.dport,
        }
        if self.protocol == layout.UDP:
            number = (self.spec.run & 0xFF) << 24 | (0 if opening else self.count(flows))
            frames = build(self.template, len(flows), **ends, flow=flows, number=number)
        else:
            sequence = initial_sequence(flows, self.spec.run)
            if opening:
                frames = build(self.template, len(flows), **ends, seq=sequence, flags=layout.SYN)
            else:
                number = self.count(flows) & 0xFFFF
                ack = sequence + 1
                frames = build(self.template, len(flows), **ends, seq=ack, ack=ack, flags=flags, urgent=number)
        self.port.sender.send(frames)

    def poll(self) -> None:
        """Take in what has arrived; send what is due; replace what is silent; open canaries."""
        if self.frozen_ns:
            return
        frames, flows, times = self.read(back=True)
        if len(frames):
            self._take(frames, flows, times)
        self._send(self.due())
        self._replace()
        self._open_canaries()

    def _take(self, frames: NDArray[Any], flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        src, sport = self.spec.source_of(flows)
        right = (frames["src"] == layout.address(self.spec.destination)) & (frames["sport"] == self.spec.dport)
        right &= (frames["dst"] == src) & (frames["dport"] == sport)
        self.wrong_ends += int((~right).sum())
        if self.protocol == layout.TCP:
            reset = right & (frames["flags"] & layout.RST > 0)
            self.end(flows[reset], times[reset])
            right &= ~reset
            self._send(np.unique(flows[right & (frames["flags"] & layout.SYN > 0)]))
        flows, times = flows[right], times[right]
        new = np.unique(flows[self.gaps.first[flows] == 0])
        self.gaps.take(flows, times)
        new = new[new < self.spec.long]
        self.begin(new)
        slots = new[new < self.spec.slots]
        self._try_at[slots] = time.monotonic() + self.spec.reopen_s
        made = new[new >= self.spec.slots]
        self._current[made % self.spec.slots] = made

    def _replace(self) -> None:
        now = time.monotonic()
        slots = np.flatnonzero(self._try_at <= now)
        if not len(slots):
            return
        current = self._current[slots]
        silent = (time.time_ns() - self.gaps.last[current]) > self.spec.reopen_s * 1e9
        silent |= self.resets[current] > 0  # whatever still comes in by the other gateway: a client has given it up
        self._try_at[slots] = now + np.where(silent, self.spec.reopen_s, self.spec.reopen_s / 4)
        want = slots[silent]
        if len(want):
            # once the replacements' ports are used up, the last one goes on trying
            self._attempt[want] = np.minimum(self._attempt[want] + 1, REPLACEMENTS)
            self._open(want + self.spec.slots * self._attempt[want])

    def _open_canaries(self) -> None:
        if self._canary_from == np.inf:
            return
        due = min(self.spec.canaries, int((time.monotonic() - self._canary_from) * self.spec.new_per_s))
        if due > self._canaries:
            self._open(self.spec.long + np.arange(self._canaries, due))
            self._canaries = due
        self._ask_again()

    def _ask_again(self) -> None:
        oldest, long_ago = self._asked_again, time.time_ns() - AGAIN_S * 1e9
        while self._asked_again < self._canaries and self.opened[self.spec.long + self._asked_again] < long_ago:
            self._asked_again += 1
        if self._asked_again > oldest:
            again = self.spec.long + np.arange(oldest, self._asked_again)
            self._send(again[self.gaps.first[again] == 0], opening=True)

    def report(self) -> dict[str, Any]:
        """Return what each flow met on its way back to here."""
        return {**self.common(), "opened": self.opened, "wrong_ends": self.wrong_ends, "now": time.time_ns()}


class FlowsResponder(_Side):
    """Answers what opens, then talks back at the same interval through the ends it saw first, and no others."""

    def __init__(self, port: Port, spec: FlowsSpec) -> None:
        super().__init__(port, spec)
        self.src, self.dst = np.zeros(spec.total, np.uint32), np.zeros(spec.total, np.uint32)
        self.sport, self.dport = np.zeros(spec.total, np.uint16), np.zeros(spec.total, np.uint16)
        self.moved_to = np.zeros(spec.total, np.uint32)
        self.moved_at = np.zeros(spec.total, np.int64)

    def poll(self) -> None:
        """Take in what has arrived, answer what opens, send what is due."""
        if self.frozen_ns:
            return
        frames, flows, times = self.read(back=False)
        if len(frames):
            self._take(frames, flows, times)
        self._send(self.due(), opening=False)

    def _take(self, frames: NDArray[Any], flows: NDArray[Any], times: NDArray[np.int64]) -> None:
        if self.protocol == layout.TCP:
            reset = frames["flags"] & layout.RST > 0
            self.end(flows[reset], times[reset])
            frames, flows, times = frames[~reset], flows[~reset], times[~reset]
            opening = frames["flags"] & layout.SYN > 0
        else:
            opening = frames["number"] & 0xFFFFFF == 0
        # a canary that is asked for again may come by another gateway
        fresh = opening & ((self.src[flows] == 0) | (flows >= self.spec.long))
        self._learn(frames[fresh], flows[fresh])
        same = (frames["src"] == self.src[flows]) & (frames["sport"] == self.sport[flows])
        same &= (frames["dst"] == self.dst[flows]) & (frames["dport"] == self.dport[flows])
        stray = ~same & (self.src[flows] != 0) & (self.moved_at[flows] == 0)
        self.moved_to[flows[stray]], self.moved_at[flows[stray]] = frames["src"][stray], times[stray]
        self._send(np.unique(flows[same & opening]), opening=True)
        self.gaps.take(flows[same], times[same])

    def _learn(self, frames: NDArray[Any], flows: NDArray[Any]) -> None:
        self.src[flows], self.dst[flows] = frames["src"], frames["dst"]
        self.sport[flows], self.dport[flows] = frames["sport"], frames["dport"]
        self.begin(np.unique(flows[flows < self.spec.long]))

    def _send(self, flows: NDArray[Any], *, opening: bool) -> None:
        if not len(flows):
            return
        ends = {"src": self.dst[flows], "dst": self.src[flows], "sport": self.dport[flows], "dport": self.sport[flows]}
        if self.protocol == layout.UDP:
            number = (self.spec.run & 0xFF) << 24 | (0 if opening else self.count(flows))
            frames = build(self.template, len(flows), **ends, flow=flows, number=number)
        else:
            sequence = initial_sequence(flows, self.spec.run)
            ack = sequence + 1
            if opening:
                frames = build(self.template, len(flows), **ends, seq=sequence, ack=ack, flags=layout.SYN | layout.ACK)
            else:
                number = self.count(flows) & 0xFFFF
                frames = build(self.template, len(flows), **ends, seq=ack, ack=ack, flags=layout.ACK, urgent=number)
        self.port.sender.send(frames)

    def report(self) -> dict[str, Any]:
        """Return what each flow met on its way to here, and where it came from."""
        return {**self.common(), "src": self.src, "moved_to": self.moved_to, "moved_at": self.moved_at}


def make_side(kind: str, port: Port, spec: FlowsSpec) -> FlowsInitiator | FlowsResponder:
    """Return the `initiator` or the `responder` of long flows."""
    if kind == "initiator":
        return FlowsInitiator(port, spec)
    if kind == "responder":
        return FlowsResponder(port, spec)
    msg = f"no side {kind!r} of long flows"
    raise ValueError(msg)
