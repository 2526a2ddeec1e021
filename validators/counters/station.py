"""A device whose counters are watched: which ports, which command reads them, how its answer becomes readings.

`virtual` stations are Linux routers and servers of a lab: they count classes and PFC frames with a table of their own.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from validators.counters import linux, sonic, watch_table
from validators.counters.readings import Key, Readings, merged
from validators.devices.answers import UnreadableError
from validators.devices.dialects import LINUX, SONIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Source = tuple[str, str, Callable[[str], dict[Key, int]]]

_MARK = "#kvfabric "
_CUT = re.compile(rf"^{_MARK}", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Station:
    """One watched device. `rdma` maps a host's ports to their RDMA devices, empty on switches and for TCP."""

    device: str
    ports: tuple[str, ...]
    dialect: str = LINUX
    host: bool = False
    virtual: bool = False
    rdma: dict[str, str] = field(default_factory=dict)


def command(station: Station) -> str:
    """Return one shell command that reads all of a station's counters. Raises UnreadableError for an unknown dialect.

    Each part is headed by a marker line, so that one session and one process tree are enough.
    """
    return "; ".join(f"echo '{_MARK}{name}'; {line}" for name, line, _ in _sources(station))


def parse(station: Station, text: str) -> Readings:
    """Return the readings in what `command` printed. Raises UnreadableError naming the device and the part."""
    parts = {name: body for name, _, body in (part.partition("\n") for part in _CUT.split(text)[1:])}
    found = []
    for name, _, parser in _sources(station):
        if name not in parts:
            raise UnreadableError(f"{station.device}: said nothing to {name}")
        try:
            found.append(parser(parts[name]))
        except UnreadableError as error:
            raise UnreadableError(f"{station.device}: {error}") from error
    wanted = set(station.ports)
    whole = merged(station.device, found)
    return Readings(station.device, {key: value for key, value in whole.values.items() if key.port in wanted})


def _sources(station: Station) -> list[Source]:
    if station.dialect == SONIC:
        return _sonic(station.ports)
    if station.dialect != LINUX:
        raise UnreadableError(f"{station.device}: nobody knows how to read counters from {station.dialect}")
    if station.virtual:
        return _virtual(station)
    return [(f"nic {port}", _nic(port), partial(linux.nic, port)) for port in station.ports]


def _sonic(ports: Sequence[str]) -> list[Source]:
    names = " ".join(shlex.quote(port) for port in ports)
    database = (
        f'for p in {names}; do echo "port $p"; sonic-db-cli COUNTERS_DB HGETALL '
        '"COUNTERS:$(sonic-db-cli COUNTERS_DB HGET COUNTERS_PORT_NAME_MAP $p)"; done'
    )
    return [
        ("pfc", "show pfc counters", sonic.pfc_counters),
        ("watchdog", "pfcwd show stats -e", sonic.watchdog_counters),
        ("queues", "queuestat -j", sonic.queue_counters),
        ("wred", "wredstat -j", sonic.wred_counters),
        ("counters-db", database, sonic.counters_db),
    ]


def _virtual(station: Station) -> list[Source]:
    found: list[Source] = [
        ("links", "ip -j -s -s link show", linux.links),
        ("queues", "tc -j -s qdisc show", linux.qdiscs),
        ("classes", watch_table.read(), watch_table.parse),
    ]
    for port, device in station.rdma.items():
        line = f"rdma -j statistic show link {shlex.quote(device)}/1"
        found.append((f"rdma {port}", line, partial(linux.rdma_statistic, port, "rxe")))
    return found


def _nic(port: str) -> str:
    """Return a command that prints driver, ethtool and RDMA counters of a NIC port."""
    name = shlex.quote(port)
    base = f"/sys/class/net/{name}/device"
    return (
        f'echo "driver $(basename "$(readlink -f {base}/driver)")"; ethtool -S {name}; '
        f"for f in {base}/infiniband/*/ports/1/hw_counters/*; do "
        'echo "hw $(basename "$f") $(cat "$f" 2>/dev/null)"; done'
    )
