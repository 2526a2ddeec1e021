"""Counters of every NIC and switch port on the way of a round: before it, while it runs, and after it.

What a device answers is parsed at once; a device that cannot be read leaves its reason, never zeros.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.counters import watch_table
from validators.counters.readings import Readings
from validators.counters.station import Station, command, parse
from validators.devices.answers import UnreadableError
from validators.rdma.asking import asking
from validators.rdma.path import ports_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.plan import Plan, Qos
    from validators.rdma.places import Places
    from validators.rdma.sets import Flow

_TOGETHER = 8
_TIMEOUT_S = 30.0


def stations_of(plan: Plan, flows: Sequence[Flow], places: Places, backend: str) -> list[Station]:
    """Return what is watched for a round of flows: their NICs, and the switches between them that can be reached."""
    ends = {(e.server, e.port): e for flow in flows for e in (flow.owner, flow.reader)}
    found = []
    for device, ports in ports_of(plan, flows).items():
        host, virtual = device in plan.servers, not places.physical
        # over TCP a host may have any NIC, so only those of a lab are read
        if not places.reaches(device) or (host and not virtual and backend == "tcp"):
            continue
        rdma = {port: places.rdma_device(ends[device, port]) for port in ports} if host and backend != "tcp" else {}
        found.append(Station(device, ports, places.dialect(device), host, virtual, rdma))
    return found


@contextmanager
def counting(stations: Sequence[Station], places: Places, qos: Qos | None) -> Iterator[list[str]]:
    """Put counting tables on virtual stations, and take them away whatever happens. Yields what went wrong."""
    classes = {c.priority: c.dscp for c in qos.classes} if qos else {}
    virtual = [station for station in stations if station.virtual]
    problems: list[str] = []
    try:
        for station, (_, error) in zip(
            virtual, ask_all(virtual, places, [watch_table.install(s.ports, classes) for s in virtual]), strict=True
        ):
            problems += [f"{station.device}: no counting table: {error}"] if error else []
        yield problems
    finally:
        ask_all(virtual, places, [watch_table.remove()] * len(virtual))


class Sampler:
    """Takes a sample when told to, and others every `interval_s` until `stop`."""

    def __init__(self, stations: Sequence[Station], places: Places, interval_s: float) -> None:
        self.stations, self.places, self.interval_s = stations, places, interval_s
        self.samples: list[dict[str, Any]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True, name="counters")

    def start(self) -> None:
        """Take the first sample, then others in the background."""
        self.samples.append(take("before", self.stations, self.places))
        self._thread.start()

    def end(self) -> None:
        """Take no more samples, also no last one."""
        self._done.set()
        self._thread.join()

    def stop(self) -> list[dict[str, Any]]:
        """Take the last sample and return all of them."""
        self.end()
        self.samples.append(take("after", self.stations, self.places))
        return self.samples

    def _loop(self) -> None:
        while not self._done.wait(self.interval_s):
            self.samples.append(take("during", self.stations, self.places))


def take(when: str, stations: Sequence[Station], places: Places) -> dict[str, Any]:
    """Read all stations at about the same time: rows of counters by device, or the reason why there are none."""
    at, devices = time.time(), {}
    for station, (text, error) in zip(stations, ask_all(stations, places), strict=True):
        devices[station.device] = {"error": error} if error else _read(station, text)
    return {"when": when, "at": at, "devices": devices}


def readings(sample: dict[str, Any], device: str) -> Readings:
    """Return a device's readings in a sample. Raises UnreadableError with the reason when there are none."""
    found = sample["devices"].get(device, {"error": "was not asked"})
    if "error" in found:
        raise UnreadableError(f"{device}: {found['error']}")
    return Readings.from_rows(device, found["rows"])


def _read(station: Station, text: str) -> dict[str, Any]:
    try:
        return {"rows": parse(station, text).rows()}
    except UnreadableError as error:
        return {"error": str(error)}


def ask_all(
    stations: Sequence[Station], places: Places, commands: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """Run a command, by default that of its counters, on every station; (what it said, what went wrong) in order."""

    def ask(number: int) -> tuple[str, str]:
        station = stations[number]
        try:
            line = commands[number] if commands else command(station)
            done = places.agent(station.device).execute(["sh", "-c", line], b"", _TIMEOUT_S)
        except (CouldNotRunError, UnreadableError) as error:
            return "", str(error)
        text = done.stdout.decode(errors="replace")
        # a part that failed says so to its parser, which knows what should have been there
        failed = bool(commands) and done.code != 0
        return text, f"exit {done.code}: {done.stderr.decode(errors='replace').strip()[-200:]}" if failed else ""

    with asking(places, _TOGETHER) as pool:
        return list(pool.map(ask, range(len(stations))))
