"""Parts of the plan: traffic classes and lossless buffers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """One RoCE or control class: packets with these DSCPs get this traffic class, queue and priority group.

    `lossless` classes have PFC on `priority`. `ecn_min`/`ecn_max` are queue bytes of a port of up to `ecn_speed` Gb/s,
    `ecn_probability` per cent; zero when the class is not marked. `weight` is the DWRR share (1..100), 0 for strict
    priority.
    """

    name: str
    dscp: tuple[int, ...]
    priority: int
    queue: int
    lossless: bool
    weight: int
    ecn_min: int = 0
    ecn_max: int = 0
    ecn_probability: int = 0
    ecn_speed: int = 400

    def marks(self, speed: int) -> tuple[int, int]:
        """Return the queue bytes where marking begins and is full on a port of `speed` Gb/s.

        A faster port gets as much more: the queue is then as long in time. A slower one keeps them: a few packets of
        9 kB are no congestion.
        """
        if speed <= self.ecn_speed:
            return self.ecn_min, self.ecn_max
        return self.ecn_min * speed // self.ecn_speed, self.ecn_max * speed // self.ecn_speed


@dataclass(frozen=True, slots=True)
class Headroom:
    """Lossless buffer figures of one (speed, cable length): bytes. `source` says whose silicon table they come from."""

    speed: int
    cable_m: int
    size: int
    xon: int
    xoff: int
    xon_offset: int
    source: str


@dataclass(frozen=True, slots=True)
class Qos:
    """What RoCE needs from one fabric, switch and NIC alike. Times in milliseconds.

    `pool_size` and `pool_xoff` are bytes of the ingress lossless pool (its `xoff` is carved apart from `size`).
    `headroom_ratio` is how far the headroom of a switch's lossless ports may exceed `pool_xoff`, which they share.
    """

    classes: tuple[TrafficClass, ...]
    watchdog_detection_ms: int
    watchdog_restoration_ms: int
    watchdog_poll_ms: int
    watchdog_action: str
    headroom: tuple[Headroom, ...]
    pool_size: int
    pool_xoff: int
    hash_qpn: bool
    headroom_ratio: float = 2.0

    @property
    def lossless(self) -> tuple[TrafficClass, ...]:
        """The classes with PFC."""
        return tuple(c for c in self.classes if c.lossless)

    def headroom_for(self, speed: int, length_m: int) -> Headroom:
        """The row for a port: same speed, the shortest table cable that is not shorter. KeyError if there is none."""
        rows = [row for row in self.headroom if row.speed == speed and row.cable_m >= length_m]
        if not rows:
            raise KeyError((speed, length_m))
        return min(rows, key=lambda row: row.cable_m)
