"""One step of a ladder: create connections at a rate, validate every one, and merge what both sides saw.

RFC 9693: phase 1 fills the gateway's table with new connections only; phase 2 sends one frame back through each
recorded four-tuple. A connection counts only when that frame arrives where the first one came from.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections import layout
from validators.connections.initiator import Initiator
from validators.connections.responder import Responder
from validators.connections.tuples import TupleSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from validators.connections.pacing import Pace
    from validators.connections.packet_socket import Ring
    from validators.connections.port import Port


@dataclass(frozen=True)
class StepSpec:
    """One step: how many connections, at which rates, answered when.

    `answer_every`: 1 answers every UDP or ICMP connection at once, 64 a sample (for the handshake time), 0 none; TCP
    always answers. `confirm` sends a third UDP packet, after which gateways count a flow as established.
    `validate_per_s` is RFC 9693's alpha x R. `hold_s` waits between the phases (RFC 9693's D).
    """

    protocol: str
    connections: int
    rate_per_s: float
    space: TupleSpace
    answer_every: int = 64
    confirm: bool = False
    validate_per_s: float = 0.0
    hold_s: float = 0.0
    settle_s: float = 0.5
    seed: int = 1
    skip: int = 0
    run: int = 1

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StepSpec:
        """Read what `asdict` wrote; raises TypeError or ValueError for anything else."""
        return cls(**{**data, "space": TupleSpace.from_dict(data["space"])})


@dataclass(frozen=True)
class StepObservation:
    """What one step saw: plain numbers, ready for JSON. Rates per second, times in ms, `limit` says nothing yet."""

    protocol: str
    asked_per_s: float
    real_per_s: float
    connections: int
    arrived: int
    validated: int
    repeated: int
    wrong_ends: int
    shared_ends: int
    bad_checksums: int
    resets: int
    tester_drops: int
    tester_refused: int
    handshake_ms: dict[str, float]
    public_addresses: dict[str, int]
    public_ports: dict[str, float]
    create_s: float
    validate_s: float
    validate_per_s: float
    gateway: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return asdict(self)


def run_step(inside: Port, outside: Port, spec: StepSpec) -> StepObservation:
    """Run both sides of a step in this process (RFC 9693's tester with an initiator and a responder interface)."""
    protocol = layout.PROTOCOLS[spec.protocol]
    tuples = spec.space.pick(spec.connections, seed=spec.seed, skip=spec.skip)
    initiator = Initiator(inside, protocol, tuples, spec.run, confirm=spec.confirm)
    responder = Responder(outside, protocol, spec.connections, spec.run, answer_every=spec.answer_every)

    def both() -> None:
        responder.poll()
        initiator.poll()

    answering = protocol == layout.TCP or spec.answer_every > 0
    created = initiator.create(spec.rate_per_s, both if answering else None)
    settle([initiator, responder], spec.settle_s)
    time.sleep(spec.hold_s)
    validated = responder.validate(spec.validate_per_s or spec.rate_per_s, initiator.poll)
    settle([initiator, responder], spec.settle_s)
    return merge(spec, initiator.report(), responder.report(), created, validated)


def settle(sides: list[Initiator | Responder], quiet_s: float) -> None:
    """Poll until nothing has arrived for `quiet_s`, at most ten times as long."""
    hard = time.monotonic() + 10 * quiet_s
    quiet = time.monotonic() + quiet_s
    while time.monotonic() < min(quiet, hard):
        if any(_waits(side.ring) for side in sides):
            quiet = time.monotonic() + quiet_s
        for side in sides:
            side.poll()
        time.sleep(0.002)


def _waits(ring: Ring) -> bool:
    return ring.wait(0.0)


def merge(
    spec: StepSpec, initiator: dict[str, Any], responder: dict[str, Any], created: Pace, validated: Pace
) -> StepObservation:
    """Put the reports of both sides together; pure. `hold_ns` of the responder makes two clocks comparable."""
    seen = np.asarray(responder["seen"]) > 0
    return StepObservation(
        protocol=spec.protocol,
        asked_per_s=spec.rate_per_s,
        real_per_s=created.real_per_s,
        connections=spec.connections,
        arrived=int(seen.sum()),
        validated=int((np.asarray(initiator["validations"]) > 0).sum()),
        repeated=int((np.asarray(responder["seen"]) > 1).sum() + (np.asarray(initiator["validations"]) > 1).sum()),
        wrong_ends=initiator["wrong_ends"] + responder["changed_ends"],
        shared_ends=_shared_ends(responder, seen),
        bad_checksums=initiator["bad_checksums"] + responder["bad_checksums"],
        resets=initiator["resets"] + responder["resets"],
        tester_drops=initiator["port"]["ring_drops"] + responder["port"]["ring_drops"],
        tester_refused=initiator["port"]["refused"] + responder["port"]["refused"],
        handshake_ms=handshake_ms(initiator, responder),
        public_addresses=_addresses(np.asarray(responder["src"])[seen]),
        public_ports=_ports(spec, responder, seen),
        create_s=created.seconds,
        validate_s=validated.seconds,
        validate_per_s=validated.real_per_s,
    )


def handshake_ms(initiator: dict[str, Any], responder: dict[str, Any]) -> dict[str, float]:
    """Return percentiles of first frame -> answer in ms, without the time the responder itself held the frame."""
    answered, hold = np.asarray(initiator["answered_ns"]), np.asarray(responder["hold_ns"])
    known = (answered > 0) & (hold >= 0)
    if not known.any():
        return {}
    took = (answered - np.asarray(initiator["sent_ns"]) - hold)[known] / 1e6
    p50, p99 = np.percentile(took, [50, 99])
    return {
        "p50": round(float(p50), 4),
        "p99": round(float(p99), 4),
        "max": round(float(took.max()), 4),
        "flows": len(took),
    }


def _shared_ends(responder: dict[str, Any], seen: NDArray[np.bool_]) -> int:
    """Count flows whose translated four-tuple belongs to another flow too: answers could not be told apart."""
    public = (
        np.asarray(responder["src"])[seen].astype(np.uint64) << np.uint64(16) | np.asarray(responder["sport"])[seen]
    )
    far = np.asarray(responder["dst"])[seen].astype(np.uint64) << np.uint64(16) | np.asarray(responder["dport"])[seen]
    return len(public) - len(np.unique(np.stack([public, far]), axis=1).T) if len(public) else 0


def _addresses(src: NDArray[np.uint32]) -> dict[str, int]:
    """Return how many flows each source address carries; the 64 busiest ones."""
    values, counts = np.unique(src, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:64]
    return {layout.address_text(int(values[i])): int(counts[i]) for i in order}


def _ports(spec: StepSpec, responder: dict[str, Any], seen: NDArray[np.bool_]) -> dict[str, float]:
    """Return the range of source ports after translation and the share of flows that kept theirs."""
    if not seen.any():
        return {}
    after = np.asarray(responder["sport"])[seen]
    before = spec.space.pick(spec.connections, seed=spec.seed, skip=spec.skip).sport[seen]
    return {
        "lowest": int(after.min()),
        "highest": int(after.max()),
        "preserved": round(float((after == before).mean()), 4),
    }
