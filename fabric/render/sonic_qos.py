"""SONiC tables of QoS: classes, PFC, ECN, buffers and the PFC watchdog, from the fabric's `Qos`.

The names of lossless profiles and priority-group ranges are those that SONiC's buffer manager works out itself
(traditional model): it re-points a group that is bound to a profile of another name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fabric.problem import InputError, Problem
from fabric.qos.headroom import is_lossless
from fabric.render.frr_view import site_view
from fabric.render.sonic_json import share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Headroom, Plan, Port, Qos, Switch, TrafficClass
    from fabric.render.sonic_json import Row, Table, Tables

MAP = "AZURE"
_PRIORITIES = range(8)
INGRESS_POOL, _EGRESS_POOL = "ingress_lossless_pool", "egress_lossless_pool"
_LOSSY_PG, _LOSSY_QUEUE, _LOSSLESS_QUEUE = "ingress_lossy_profile", "egress_lossy_profile", "egress_lossless_profile"
# Tomahawk 5 divides its buffer between two traffic managers: nothing can hold more than the half of its own
_TRAFFIC_MANAGERS = 2
# bytes of a lossy queue's guaranteed minimum: one cell-rounded standard frame
_LOSSY_MINIMUM = 1778


def qos_tables(plan: Plan, switch: Switch) -> Tables:
    """Return the QoS and buffer tables; none where the fabric has no RDMA class."""
    qos = plan.fabrics[switch.fabric].qos
    if qos is None:
        return {}
    return _maps(qos) | _schedulers(qos) | _profiles(qos) | _port_tables(plan, switch, qos)


def _maps(qos: Qos) -> Tables:
    to_queue = {str(p): str(p) for p in _PRIORITIES}
    to_group = {str(p): "0" for p in _PRIORITIES}
    pfc_to_queue = {str(p): str(p) for p in _PRIORITIES}
    to_tc = {str(dscp): "0" for dscp in range(64)}
    for item in qos.classes:
        to_queue[str(item.priority)] = str(item.queue)
        to_tc |= {str(dscp): str(item.priority) for dscp in item.dscp}
        if item.lossless:
            to_group[str(item.priority)] = str(item.priority)
            pfc_to_queue[str(item.priority)] = str(item.queue)
    return {
        "DSCP_TO_TC_MAP": {MAP: to_tc},
        "TC_TO_QUEUE_MAP": {MAP: to_queue},
        "TC_TO_PRIORITY_GROUP_MAP": {MAP: to_group},
        "MAP_PFC_PRIORITY_TO_QUEUE": {MAP: pfc_to_queue},
    }


def _schedulers(qos: Qos) -> Tables:
    rows: Table = {}
    marks: Table = {}
    for item in qos.classes:
        rows[_scheduler(item)] = {"type": "DWRR", "weight": str(item.weight)} if item.weight else {"type": "STRICT"}
        if item.ecn_max:
            marks |= {_mark(item, speed): _wred(item, speed) for speed in (0, *(row.speed for row in qos.headroom))}
    return {"SCHEDULER": rows, "WRED_PROFILE": marks}


def _scheduler(item: TrafficClass) -> str:
    return f"scheduler.{item.name}"


def _mark(item: TrafficClass, speed: int) -> str:
    """The profile of a port: one for all up to the speed that the thresholds are said for, one for each above."""
    name = f"{MAP}_{item.name.upper()}"
    return f"{name}_{speed}G" if speed > item.ecn_speed else name


def _wred(item: TrafficClass, speed: int) -> Row:
    """Mark with ECN, for any colour, between the two thresholds."""
    row = {"ecn": "ecn_all"}
    low, high = item.marks(speed)
    for colour in ("green", "yellow", "red"):
        row |= {
            f"wred_{colour}_enable": "true",
            f"{colour}_min_threshold": str(low),
            f"{colour}_max_threshold": str(high),
            f"{colour}_drop_probability": str(item.ecn_probability),
        }
    return row


def _profile_name(row: Headroom) -> str:
    return f"pg_lossless_{row.speed * 1000}_{row.cable_m}m_profile"


def _profiles(qos: Qos) -> Tables:
    size, most = str(qos.pool_size), str(qos.pool_size // _TRAFFIC_MANAGERS)
    profiles: Table = {
        _LOSSY_PG: {"pool": INGRESS_POOL, "size": "0", "static_th": most},
        _LOSSLESS_QUEUE: {"pool": _EGRESS_POOL, "size": "0", "static_th": most},
        _LOSSY_QUEUE: {"pool": _EGRESS_POOL, "size": str(_LOSSY_MINIMUM), "dynamic_th": "0"},
    }
    for row in qos.headroom:
        profiles[_profile_name(row)] = {
            "pool": INGRESS_POOL,
            "size": str(row.size),
            "xon": str(row.xon),
            "xoff": str(row.xoff),
            "xon_offset": str(row.xon_offset),
            "dynamic_th": "0",
        }
    return {
        "BUFFER_POOL": {
            INGRESS_POOL: {"type": "ingress", "mode": "dynamic", "size": size, "xoff": str(qos.pool_xoff)},
            _EGRESS_POOL: {"type": "egress", "mode": "static", "size": size},
        },
        "BUFFER_PROFILE": profiles,
    }


@dataclass(frozen=True, slots=True)
class _Bindings:
    """What every port of a fabric is bound to; the rows are shared by all ports and switches."""

    lossy: Row
    lossless: Row
    queues: dict[int, tuple[tuple[str, Row], ...]]
    buffer_queues: tuple[tuple[str, Row], ...]
    lossless_groups: tuple[str, ...]
    profiles: dict[tuple[int, int], Row]
    watchdog: Row


@lru_cache(maxsize=16)
def _bindings(qos: Qos) -> _Bindings:
    bound = {"dscp_to_tc_map": MAP, "tc_to_queue_map": MAP, "tc_to_pg_map": MAP, "pfc_to_queue_map": MAP}
    enabled = ",".join(str(item.priority) for item in sorted(qos.lossless, key=lambda c: c.priority))
    lossless_queues = {item.queue for item in qos.lossless}
    lossy_row, lossless_row = share({"profile": _LOSSY_QUEUE}), share({"profile": _LOSSLESS_QUEUE})
    by_first = dict.fromkeys(runs(q for q in _PRIORITIES if q not in lossless_queues), lossy_row)
    by_first |= dict.fromkeys(runs(lossless_queues), lossless_row)
    return _Bindings(
        lossy=share(bound),
        lossless=share(bound | {"pfc_enable": enabled, "pfcwd_sw_enable": enabled}),
        queues={speed: _queues(qos, speed) for speed in {0, *(row.speed for row in qos.headroom)}},
        buffer_queues=tuple(sorted(by_first.items())),
        lossless_groups=tuple(runs(item.priority for item in qos.lossless)),
        profiles={(row.speed, row.cable_m): share({"profile": _profile_name(row)}) for row in qos.headroom},
        watchdog=share(
            {
                "action": qos.watchdog_action,
                "detection_time": str(qos.watchdog_detection_ms),
                "restoration_time": str(qos.watchdog_restoration_ms),
            }
        ),
    )


_LOSSY_GROUP: Row = share({"profile": _LOSSY_PG})


def _port_tables(plan: Plan, switch: Switch, qos: Qos) -> Tables:
    """Bind every used port to the classes; PFC and its watchdog only where RDMA goes."""
    bindings, rdma = _bindings(qos), site_view(plan).rdma_links
    maps: Table = {"global": {"dscp_to_tc_map": MAP}}
    queues: Table = {}
    groups: Table = {}
    buffers: Table = {}
    watchdogs: Table = {"GLOBAL": {"POLL_INTERVAL": str(qos.watchdog_poll_ms)}}
    for port in switch.ports:
        link = plan.links.get(port.link)
        if link is None:
            continue
        name = port.interface
        pfc = is_lossless(link, rdma)
        maps[name] = bindings.lossless if pfc else bindings.lossy
        for queue, row in bindings.queues.get(port.speed) or bindings.queues[0]:
            queues[f"{name}|{queue}"] = row
        for run, row in bindings.buffer_queues:
            buffers[f"{name}|{run}"] = row
        groups[f"{name}|0"] = _LOSSY_GROUP
        if pfc:
            need = headroom(qos, port, link.length_m, switch.name)
            for run in bindings.lossless_groups:
                groups[f"{name}|{run}"] = bindings.profiles[need.speed, need.cable_m]
            watchdogs[name] = bindings.watchdog
    return {
        "PORT_QOS_MAP": maps,
        "QUEUE": queues,
        "BUFFER_PG": groups,
        "BUFFER_QUEUE": buffers,
        "CABLE_LENGTH": {MAP: _cables(plan, switch, qos)},
        "PFC_WD": watchdogs,
    }


def _queues(qos: Qos, speed: int) -> tuple[tuple[str, Row], ...]:
    """The queues of a port of a speed that carries the lossless class; 0 stands for every other."""
    return tuple((str(c.queue), share(_queue(c, speed))) for c in sorted(qos.classes, key=lambda c: c.queue))


def _queue(item: TrafficClass, speed: int) -> Row:
    row = {"scheduler": _scheduler(item)}
    return row | {"wred_profile": _mark(item, speed)} if item.ecn_max else row


def headroom(qos: Qos, port: Port, length_m: int, device: str) -> Headroom:
    """Return the headroom row of a port: the shortest listed cable that is long enough. InputError when none is."""
    fitting = [row for row in qos.headroom if row.speed == port.speed and row.cable_m >= length_m]
    if not fitting:
        text = f"no headroom figure for {port.speed}G over {length_m} m"
        fix = "add the speed and cable length to the switch model's buffer table, or shorten the cable"
        raise InputError([Problem("render.headroom", f"{device} {port.name}", text, fix)])
    return min(fitting, key=lambda row: row.cable_m)


def _cables(plan: Plan, switch: Switch, qos: Qos) -> Row:
    """The cable length of every port as the buffer manager must see it: a length that the profiles are named for."""
    listed: dict[int, list[int]] = {}
    for row in qos.headroom:
        listed.setdefault(row.speed, []).append(row.cable_m)
    shortest = min((row.cable_m for row in qos.headroom), default=5)
    cables: dict[str, str] = {}
    for port in switch.ports:
        link = plan.links.get(port.link)
        lengths = sorted(listed.get(port.speed, ()))
        length = next((m for m in lengths if link and m >= link.length_m), lengths[0] if lengths else shortest)
        cables[port.interface] = f"{length}m"
    return dict(cables)


def runs(numbers: Iterable[int]) -> list[str]:
    """Write numbers as runs, as SONiC's buffer manager does: 3 alone is `3`, 3 and 4 are `3-4`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [f"{a}-{b}" if b > a else str(a) for a, b in found]
