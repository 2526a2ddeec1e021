"""The idle probe: flows of every kind and many ages, each left alone for its age and then answered once from afar.

One pass measures all timers at once: a flow whose age is below the timer gets its answer through, a flow whose age is
above does not. Each flow is probed once only, because a probe that passes would refresh the timer. All times are
taken at the responder (`last` packet that passed the gateway -> probe), so two clocks are never compared; when a packet
came is the kernel's word, since a busy host lets the responder see it late.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections import layout
from validators.connections.frames import build
from validators.connections.initiator import ANSWER, CONFIRM, CREATE, VALIDATE, initial_sequence
from validators.connections.pacing import paced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from validators.connections.port import Port

FINISH, KEEP = 5, 6
_KEEP_S = 1.0  # a two-way UDP flow talks this often until it is a stream, so that no short timer ends it before
_NEVER = np.inf


@dataclass(frozen=True)
class Kind:
    """A protocol and the state in which its flows are left alone."""

    protocol: int
    answered: bool = False
    confirmed: bool = False
    finished: bool = False


KINDS = {
    "icmp": Kind(layout.ICMP),
    "udp-one-way": Kind(layout.UDP),
    "udp-two-packets": Kind(layout.UDP, answered=True),
    "udp-two-way": Kind(layout.UDP, answered=True, confirmed=True),
    "dns": Kind(layout.UDP, answered=True),
    "tcp-half-open": Kind(layout.TCP),
    "tcp-established": Kind(layout.TCP, answered=True, confirmed=True),
    "tcp-half-closed": Kind(layout.TCP, answered=True, confirmed=True, finished=True),
}


@dataclass(frozen=True)
class IdleSpec:
    """What to measure: for each kind the ages in seconds at which a flow is probed, and where it goes.

    `ages[kind]` is one flow per entry (repeat an age for more trials). `ports[kind]` is the destination port;
    `stream_s` is how long a two-way UDP flow talks before it falls silent (Linux needs more than 2 s to call it a
    stream). Source ports count up from `first_port`, one per flow. `per_s` limits how fast flows are opened.
    """

    source: str
    destination: str
    ages: dict[str, list[float]]
    ports: dict[str, int]
    first_port: int = 20000
    stream_s: float = 2.5
    per_s: float = 2000.0
    run: int = 1

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> IdleSpec:
        """Read what `asdict` wrote; raises TypeError or ValueError for anything else."""
        spec = cls(**data)
        unknown = set(spec.ages) - set(KINDS)
        if unknown:
            msg = f"no such kind of flow: {', '.join(sorted(unknown))}"
            raise ValueError(msg)
        if spec.count + spec.first_port > 65536:
            msg = f"{spec.count} flows do not fit into source ports from {spec.first_port}"
            raise ValueError(msg)
        return spec

    @property
    def count(self) -> int:
        """How many flows there are."""
        return sum(len(ages) for ages in self.ages.values())

    def spread(self) -> _Flows:
        """Return the per-flow arrays; flow = place in the order of `ages`."""
        kinds = [name for name, ages in self.ages.items() for _ in ages]
        table = [KINDS[name] for name in kinds]
        return _Flows(
            np.array(kinds),
            np.array([kind.protocol for kind in table]),
            np.array([kind.answered for kind in table]),
            np.array([kind.confirmed for kind in table]),
            np.array([kind.finished for kind in table]),
            np.array([age for ages in self.ages.values() for age in ages]),
            np.array([self.ports.get(name, 7) for name in kinds]),
        )


@dataclass(frozen=True)
class _Flows:
    kind: NDArray[Any]
    protocol: NDArray[Any]
    answered: NDArray[np.bool_]
    confirmed: NDArray[np.bool_]
    finished: NDArray[np.bool_]
    age: NDArray[np.float64]
    dport: NDArray[Any]

    def protocols(self) -> list[int]:
        return [int(value) for value in np.unique(self.protocol)]


def _flow_of(
    frames: NDArray[Any], protocol: int, run: int, count: int, *, back: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the flow number of each frame and which frames belong to this run at all."""
    if protocol == layout.TCP:
        raw = frames["ack" if back else "seq"].astype(np.int64) - (1 if back else 0)
        flows, same = raw >> 12, (raw >> 8) & 0xF == (run & 0xF)
    else:
        flows = frames["flow"].astype(np.int64)
        same = (frames["magic"] == layout.MAGIC) & (frames["number"] >> 8 == run)
    good = same & (flows >= 0) & (flows < count)
    return np.where(good, flows, 0), good


class IdleInitiator:
    """Opens the flows, plays its part until each falls silent, and notes which probes come through."""

    def __init__(self, port: Port, spec: IdleSpec) -> None:
        self.port, self.spec, self.flows = port, spec, spec.spread()
        self.alive = np.zeros(spec.count, np.bool_)
        self.wrong_ends = np.zeros(spec.count, np.bool_)
        self._confirm_at = np.full(spec.count, _NEVER)
        self._talk_at = np.full(spec.count, _NEVER)
        self._source, self._destination = layout.address(spec.source), layout.address(spec.destination)
        self._templates = {number: port.template(number) for number in self.flows.protocols()}
        self._rings = {number: port.ring(number) for number in self.flows.protocols()}
        for ring in self._rings.values():
            ring.begin()

    def start(self) -> dict[str, Any]:
        """Open all flows; kinds are interleaved so that a slow start hits all alike."""
        order = np.random.default_rng(1).permutation(self.spec.count)

        def send(first: int, last: int) -> None:
            self._send(order[first:last], CREATE)

        pace = paced(self.spec.count, self.spec.per_s, send, self.poll, largest=32)
        return {"flows": self.spec.count, "seconds": pace.seconds}

    def _send(self, flows: NDArray[Any], stage: int) -> None:
        for protocol, template in self._templates.items():
            mine = flows[self.flows.protocol[flows] == protocol]
            if len(mine):
                self.port.sender.send(build(template, len(mine), **self._fields(mine, protocol, stage)))

    def _fields(self, flows: NDArray[Any], protocol: int, stage: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"src": self._source, "dst": self._destination, "sport": flows + self.spec.first_port}
        if protocol == layout.ICMP:
            return {**fields, "kind": 8, "echo_seq": stage, "flow": flows, "number": (self.spec.run << 8) | stage}
        fields["dport"] = self.flows.dport[flows]
        if protocol == layout.UDP:
            return {**fields, "flow": flows, "number": (self.spec.run << 8) | stage}
        sequence = initial_sequence(flows, self.spec.run)
        if stage == CREATE:
            return {**fields, "seq": sequence, "flags": layout.SYN}
        flags = layout.ACK | (layout.FIN if stage == FINISH else 0)
        return {**fields, "seq": sequence + 1, "ack": sequence + 1, "flags": flags}

    def poll(self) -> None:
        """Take in answers and probes, and send what is due."""
        for protocol, ring in self._rings.items():
            frames, _ = ring.read()
            if len(frames):
                self._take(protocol, frames)
        now = time.monotonic()
        due = np.flatnonzero(self._talk_at <= now)
        if len(due):
            last = self._confirm_at[due] <= now
            self._send(due[last], CONFIRM)
            self._send(due[~last], KEEP)
            self._talk_at[due] = np.where(last, _NEVER, np.minimum(now + _KEEP_S, self._confirm_at[due]))

    def _take(self, protocol: int, frames: NDArray[Any]) -> None:
        flows, good = _flow_of(frames, protocol, self.spec.run, self.spec.count, back=True)
        frames, flows = frames[good], flows[good]
        right = (frames["src"] == self._destination) & (frames["dst"] == self._source)
        if protocol != layout.ICMP:
            right &= (frames["sport"] == self.flows.dport[flows]) & (frames["dport"] == flows + self.spec.first_port)
        self.wrong_ends[flows[~right]] = True
        flows, frames = flows[right], frames[right]
        if protocol == layout.TCP:
            self._take_tcp(frames, flows)
            return
        stage = frames["number"] & 0xFF
        self.alive[flows[stage == VALIDATE]] = True
        first = flows[(stage == ANSWER) & self.flows.confirmed[flows]]
        now = time.monotonic()
        self._confirm_at[first] = now + self.spec.stream_s
        self._talk_at[first] = now + min(_KEEP_S, self.spec.stream_s)

    def _take_tcp(self, frames: NDArray[Any], flows: NDArray[Any]) -> None:
        flags = frames["flags"]
        opened = flags == (layout.SYN | layout.ACK)
        half_open = ~self.flows.answered[flows]
        self.alive[flows[(opened & half_open) | (flags == (layout.PSH | layout.ACK))]] = True
        fresh = flows[opened & ~half_open]
        if len(fresh):
            self._send(fresh, CONFIRM)
            self._send(fresh[self.flows.finished[fresh]], FINISH)

    def report(self) -> dict[str, Any]:
        """Return which flows were still alive when probed."""
        return {"alive": self.alive, "wrong_ends": self.wrong_ends, "port": self.port.drops()}


class IdleResponder:
    """Plays the far end, then probes each flow once when it has been silent for its age."""

    def __init__(self, port: Port, spec: IdleSpec) -> None:
        self.port, self.spec, self.flows = port, spec, spec.spread()
        count = spec.count
        self.src, self.dst = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
        self.sport, self.dport = np.zeros(count, np.uint16), np.zeros(count, np.uint16)
        self.isn = np.zeros(count, np.uint32)
        self.last = np.full(count, _NEVER)
        self.real_age, self.age_most = np.full(count, np.nan), np.full(count, np.nan)
        self.refused = np.zeros(count, np.bool_)
        self._templates = {number: port.template(number) for number in self.flows.protocols()}
        self._data_template = port.template(layout.TCP, data=True)
        self._rings = {number: port.ring(number) for number in self.flows.protocols()}
        for ring in self._rings.values():
            ring.begin()

    def poll(self) -> None:
        """Take in what arrives, answer it, and send the probes that are due."""
        for protocol, ring in self._rings.items():
            frames, times = ring.read()
            if len(frames):
                self._take(protocol, frames, times / 1e9)
        now = time.time()
        due = np.flatnonzero(np.isnan(self.real_age) & (self.last + self.flows.age <= now))
        if len(due):
            self._send(due, VALIDATE)
            self.real_age[due], self.age_most[due] = now - self.last[due], time.time() - self.last[due]

    def _take(self, protocol: int, frames: NDArray[Any], times: NDArray[np.float64]) -> None:
        flows, good = _flow_of(frames, protocol, self.spec.run, self.spec.count, back=False)
        frames, flows, times = frames[good], flows[good], times[good]
        if protocol == layout.TCP:
            flags = frames["flags"]
            self.refused[flows[flags & layout.RST > 0]] = True
            first, confirm, finish = (flags == wanted for wanted in (layout.SYN, layout.ACK, layout.FIN | layout.ACK))
        else:
            stage = frames["number"] & 0xFF
            first, confirm = stage == CREATE, stage == CONFIRM
            finish = np.zeros(len(frames), np.bool_)
        self._record(frames[first], flows[first], times[first], protocol)
        # "last" is the last packet that can have refreshed the timer, as seen from here
        final = confirm & ~self.flows.finished[flows]
        self.last[flows[final]] = times[final]
        done = flows[finish]
        if len(done):
            self._send(done, FINISH)
            self.last[done] = time.time()

    def _record(self, frames: NDArray[Any], flows: NDArray[Any], times: NDArray[np.float64], protocol: int) -> None:
        if not len(flows):
            return
        self.src[flows], self.dst[flows], self.sport[flows] = frames["src"], frames["dst"], frames["sport"]
        if protocol != layout.ICMP:
            self.dport[flows] = frames["dport"]
        if protocol == layout.TCP:
            self.isn[flows] = frames["seq"]
        unanswered = ~self.flows.answered[flows]
        self.last[flows[unanswered]] = times[unanswered]
        answered = flows[~unanswered]
        if len(answered):
            self._send(answered, ANSWER)
            over = answered[~self.flows.confirmed[answered]]
            self.last[over] = time.time()

    def _send(self, flows: NDArray[Any], stage: int) -> None:
        for protocol in self._templates:
            mine = flows[self.flows.protocol[flows] == protocol]
            if not len(mine):
                continue
            data = protocol == layout.TCP and stage == VALIDATE
            if data:
                open_ones = self.flows.answered[mine]
                self._emit(mine[~open_ones], protocol, ANSWER, data=False)
                mine = mine[open_ones]
            self._emit(mine, protocol, stage, data=data)

    def _emit(self, flows: NDArray[Any], protocol: int, stage: int, *, data: bool) -> None:
        if not len(flows):
            return
        fields: dict[str, Any] = {"src": self.dst[flows], "dst": self.src[flows]}
        number = (self.spec.run << 8) | stage
        if protocol == layout.ICMP:
            fields |= {"kind": 0, "sport": self.sport[flows], "echo_seq": CREATE, "flow": flows, "number": number}
        elif protocol == layout.UDP:
            fields |= {"sport": self.dport[flows], "dport": self.sport[flows], "flow": flows, "number": number}
        else:
            fields |= {"sport": self.dport[flows], "dport": self.sport[flows]} | self._tcp_fields(
                flows, stage, data=data
            )
        self.port.sender.send(build(self._data_template if data else self._templates[protocol], len(flows), **fields))

    def _tcp_fields(self, flows: NDArray[Any], stage: int, *, data: bool) -> dict[str, Any]:
        sequence = self.isn[flows]
        if stage == ANSWER:
            return {"seq": sequence, "ack": sequence + 1, "flags": layout.SYN | layout.ACK}
        # a FIN takes one place in the sequence
        taken = np.where(self.flows.finished[flows], 2, 1).astype(np.uint32)
        flags = layout.ACK | (layout.PSH if data else 0)
        fields: dict[str, Any] = {"seq": sequence + 1, "ack": sequence + taken, "flags": flags}
        return {**fields, "flow": flows, "number": stage} if data else fields

    def remaining(self) -> dict[str, Any]:
        """Return how many flows are still to be probed, and how many never got as far as silence."""
        waiting = np.isnan(self.real_age)
        silent = self.last < _NEVER
        return {"waiting": int((waiting & silent).sum()), "not_set_up": int((~silent).sum())}

    def report(self) -> dict[str, Any]:
        """Return each flow's age when probed (NaN: never), at least and at most, and whether a RST came back."""
        ages = {"real_age": self.real_age, "age_most": self.age_most}
        return {**ages, "refused": self.refused, "port": self.port.drops()}
