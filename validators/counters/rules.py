"""What counters must say about lossless traffic, after sonic-mgmt's RoCEv2 incast rules, and which must be there.

No loss, no NAK, no pause on a lossy priority, the traffic in its class on every hop; and after an incast, pause on the
lossless priority under load. A counter that should exist and does not is an error, so that a device that counts
nothing cannot pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from validators.counters.readings import (
    BYTES,
    DROPS,
    ECN_MARKED,
    ERRORS,
    NAKS,
    PAUSE,
    RETRANSMISSIONS,
    STORM_DROPS,
    STORMS,
    Key,
    MissingCounterError,
)
from validators.devices.dialects import SONIC
from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Plan, TrafficClass
    from validators.counters.readings import Readings
    from validators.counters.station import Station

CHECK = "counters.path"
_WAYS = ("rx", "tx")
_LOSSES = frozenset({DROPS, NAKS, STORM_DROPS})
_MEASURED = {PAUSE: "frames", BYTES: "bytes", DROPS: "packets", ECN_MARKED: "packets", STORMS: "storms"}


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a station's counters should obey: the lossless classes, and the priority that the traffic ran on.

    `congested`: pause must be seen on `loaded`. Nothing sends PFC frames on virtual ports, so it is never asked there.
    """

    lossless: tuple[TrafficClass, ...]
    loaded: int
    congested: bool = False

    @property
    def priorities(self) -> tuple[int, ...]:
        """The lossless priorities."""
        return tuple(c.priority for c in self.lossless)


def expected_keys(station: Station, expected: Expectation) -> list[Key]:
    """Return the counters that must exist on a station, by what it is."""
    found: list[Key] = []
    for port in station.ports:
        if station.dialect == SONIC:
            found += [Key(port, PAUSE, way, p) for way in _WAYS for p in range(8)]
            found += [Key(port, what, "tx", c.queue) for c in expected.lossless for what in (BYTES, DROPS, STORMS)]
            found += [Key(port, STORM_DROPS, way, c.queue) for c in expected.lossless for way in _WAYS]
            found += [Key(port, ECN_MARKED, "tx", c.queue) for c in expected.lossless if c.ecn_max]
        elif station.virtual:
            found += [Key(port, PAUSE, way, p) for way in _WAYS for p in range(8)]
            found += [Key(port, BYTES, way, p) for way in _WAYS for p in expected.priorities]
            found += [Key(port, what, way) for way in _WAYS for what in (DROPS, ERRORS)]
        else:
            found += [Key(port, what, way, p) for what in (PAUSE, BYTES) for way in _WAYS for p in expected.priorities]
        if station.host and (station.rdma or not station.virtual):
            found += [Key(port, NAKS), Key(port, RETRANSMISSIONS)]
        if station.host and not station.virtual:
            found.append(Key(port, DROPS))
    return found


def judge_station(
    plan: Plan, station: Station, before: Readings, after: Readings, expected: Expectation, tenants: Iterable[str] = ()
) -> Result:
    """Judge one device. ERROR when a counter is missing or ran backwards, FAIL with every rule that was broken."""
    subject = f"{station.device} {' '.join(station.ports)}"
    labels = {"device": station.device, "tenant": ",".join(sorted(set(tenants)))}
    keys = expected_keys(station, expected)
    others = [k for k in before.values if k in after.values and k not in set(keys)]
    try:
        grown = before.delta(after, [*keys, *others])
    except MissingCounterError as error:
        return Result(CHECK, subject, State.ERROR, str(error), station.device, labels=labels)
    parts = tuple(_port(plan, station, port, grown, expected) for port in station.ports)
    state = combine(part.state for part in parts)
    text = "; ".join(part.text for part in parts if part.state is state) if state is not State.PASS else _good(station)
    silent = _silent(station, grown, expected)
    if silent:
        state, text = State.FAIL, "; ".join([*([text] if state is State.FAIL else []), silent])
    return Result(CHECK, subject, state, text, station.device, parts=parts, labels=labels)


def _port(plan: Plan, station: Station, port: str, grown: dict[Key, int], expected: Expectation) -> Result:
    mine = {key: value for key, value in grown.items() if key.port == port}
    broken = [f"{key} +{value}" for key, value in mine.items() if value and key.what in _LOSSES]
    broken += [f"{key} +{value} on a lossy priority" for key, value in mine.items() if value and _lossy(key, expected)]
    labels = plan_labels(plan, station.device, port)
    parts = tuple(_counted(labels, way, priority, mine) for way in _WAYS for priority in _moved(way, mine, expected))
    state = State.FAIL if broken else State.PASS
    text = "; ".join(broken) or f"{port}: no loss, no pause on a lossy priority"
    evidence = {str(key): value for key, value in mine.items() if value}
    place = f"{station.device} {labels['port']}"
    return Result(CHECK, f"{station.device} {port}", state, text, place, parts=parts, labels=labels, evidence=evidence)


def _moved(way: str, mine: dict[Key, int], expected: Expectation) -> list[int]:
    """The priorities worth a line of their own: the lossless ones, and those on which something was counted."""
    moved = {key.priority for key, value in mine.items() if value and key.direction == way and key.priority >= 0}
    return sorted(moved | set(expected.priorities))


def _counted(labels: dict[str, str], way: str, priority: int, mine: dict[Key, int]) -> Result:
    """One direction and priority of a port, with every counter that it has: only facts, so UNKNOWN decides nothing."""
    values = {key.what: value for key, value in mine.items() if (key.direction, key.priority) == (way, priority)}
    measured = tuple(
        Measurement(what, float(value), _MEASURED[what]) for what, value in values.items() if what in _MEASURED
    )
    text = ", ".join(f"{value} {what}" for what, value in values.items()) or "not counted by this device"
    own = {**labels, "direction": way, "priority": str(priority)}
    subject = f"{labels['device']} {labels['port']} {way} priority {priority}"
    return Result("counters.priority", subject, State.PASS if values else State.SKIPPED, text, "", measured, labels=own)


def _silent(station: Station, grown: dict[Key, int], expected: Expectation) -> str:
    if not expected.congested or station.virtual:
        return ""
    paused = any(value for key, value in grown.items() if key.what == PAUSE and key.priority == expected.loaded)
    return "" if paused else f"no pause on lossless priority {expected.loaded}, though many sent to one"


def _lossy(key: Key, expected: Expectation) -> bool:
    return key.what == PAUSE and key.priority not in expected.priorities


def _good(station: Station) -> str:
    naks = ", no NAK" if station.host and station.rdma else ""
    note = "; ports are virtual, nobody sends PFC frames there" if station.virtual else ""
    return f"no loss{naks}, no pause on a lossy priority{note}"


def plan_labels(plan: Plan, device: str, interface: str) -> dict[str, str]:
    """Return what the plan knows of a port: device, port, far end, tenant, VRF; only the first two if unknown."""
    link = plan.link_at.get((device, interface))
    labels = {"device": device, "port": interface}
    if link is None:
        return labels
    far = link.far(device)
    labels |= {"port": link.end(device).port, "far": f"{far.device} {far.port}", "link": link.id}
    if link.tenant:
        labels |= {"tenant": link.tenant, "vrf": plan.tenants[link.tenant].vrf}
    return labels
