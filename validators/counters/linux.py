"""Counters of a Linux host: `ethtool -S` of mlx5 and bnxt_en, RDMA hardware counters, links, queues.

Names: the kernel's mlx5 counter documentation, and the mlx5, bnxt_re and rxe drivers' hw_counters tables.
"""

from __future__ import annotations

import re
from typing import Any

from fabric.strict_json import loads
from validators.counters.readings import (
    BYTES,
    CNPS,
    DROPS,
    ECN_MARKED,
    ERRORS,
    NAKS,
    PACKETS,
    PAUSE,
    PAUSE_ENDS,
    PAUSE_US,
    RETRANSMISSIONS,
    Key,
)
from validators.devices.answers import UnreadableError

QUEUE_DROPS = "queue drops"
_LINE = re.compile(r"^\s+(\S.*?):\s+(\d+)$")
_ETHTOOL = (
    (re.compile(r"^(rx|tx)_prio(\d)_pause$"), PAUSE),
    (re.compile(r"^(rx|tx)_prio(\d)_pause_duration$"), PAUSE_US),
    (re.compile(r"^(rx|tx)_prio(\d)_pause_transition$"), PAUSE_ENDS),
    (re.compile(r"^(rx|tx)_prio(\d)_(?:buf_|cong_)?discards?$"), DROPS),
    (re.compile(r"^(rx|tx)_prio(\d)_marked$"), ECN_MARKED),
    (re.compile(r"^(rx|tx)_prio(\d)_bytes$"), BYTES),
    (re.compile(r"^(rx|tx)_prio(\d)_packets$"), PACKETS),
    (re.compile(r"^(rx|tx)_bytes_pri(\d)$"), BYTES),
    (re.compile(r"^(rx|tx)_packets_pri(\d)$"), PACKETS),
    (re.compile(r"^(rx|tx)_pfc_ena_frames_pri(\d)$"), PAUSE),
)
_BNXT_PAUSE = re.compile(r"^pfc_pri(\d)_(rx|tx)_(duration_us|transitions)$")
_RDMA: dict[str, dict[str, str]] = {
    "mlx5_core": {
        "packet_seq_err": NAKS, "local_ack_timeout_err": RETRANSMISSIONS, "roce_adp_retrans": RETRANSMISSIONS,
        "out_of_sequence": RETRANSMISSIONS, "out_of_buffer": DROPS, "np_cnp_sent": CNPS,
        "np_ecn_marked_roce_packets": ECN_MARKED,
    },
    "bnxt_en": {
        "seq_err_naks_rcvd": NAKS, "to_retransmits": RETRANSMISSIONS, "oos_drop_count": DROPS,
        "rx_roce_discards": DROPS, "tx_cnp_pkts": CNPS, "rx_ecn_marked_pkts": ECN_MARKED,
    },
    "rxe": {"rcvd_seq_err": NAKS, "completer_retry_err": RETRANSMISSIONS, "out_of_seq_request": RETRANSMISSIONS},
}  # fmt: skip


def ethtool(port: str, text: str) -> dict[Key, int]:
    """Parse `ethtool -S`. Pause counters exist only for priorities with PFC on, which is what makes their lack tell."""
    if "statistics" not in text:
        raise UnreadableError("ethtool -S: has no statistics")
    found: dict[Key, int] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and (key := _ethtool_key(port, match[1])):
            # a driver may count one cause after another of the same thing
            found[key] = found.get(key, 0) + int(match[2])
    return found


def _ethtool_key(port: str, name: str) -> Key | None:
    for pattern, what in _ETHTOOL:
        if match := pattern.match(name):
            return Key(port, what, match[1], int(match[2]))
    if match := _BNXT_PAUSE.match(name):
        return Key(port, PAUSE_US if match[3] == "duration_us" else PAUSE_ENDS, match[2], int(match[1]))
    return None


def rdma(port: str, driver: str, counters: dict[str, int]) -> dict[Key, int]:
    """Sum a device's hardware counters by what they mean. Raises UnreadableError for a driver nobody described.

    A name that the driver should have and does not leaves its meaning out altogether, so that the rule that needs it
    errs: half a sum would pass for a small one.
    """
    names = _RDMA.get(driver)
    if names is None:
        raise UnreadableError(f"{port}: counters of driver {driver!r} are not known")
    lacking = {what for name, what in names.items() if name not in counters}
    found: dict[Key, int] = {}
    for name, what in names.items():
        if what not in lacking:
            found[Key(port, what)] = found.get(Key(port, what), 0) + counters[name]
    return found


def rdma_statistic(port: str, driver: str, text: str) -> dict[Key, int]:
    """Parse `rdma -j statistic show link DEVICE/1` for the netdev `port`. Raises UnreadableError."""
    try:
        rows: Any = loads(text)
        names = {name: value for name, value in rows[0].items() if isinstance(value, int)}
    except (ValueError, IndexError, AttributeError, KeyError) as error:
        raise UnreadableError(f"rdma statistic of {port}: {error} in {text[:80]!r}") from error
    return rdma(port, driver, names)


def nic(port: str, text: str) -> dict[Key, int]:
    """Parse a NIC port's `driver NAME` line, its `ethtool -S`, and its `hw NAME VALUE` lines, of mlx5 or bnxt.

    Raises UnreadableError for another driver, and when a part is missing.
    """
    driver = re.search(r"^driver (\S+)$", text, re.MULTILINE)
    if driver is None:
        raise UnreadableError(f"{port}: the driver is not said")
    hardware = {m[1]: int(m[2]) for m in re.finditer(r"^hw (\S+) (\d+)$", text, re.MULTILINE)}
    return {**ethtool(port, text), **rdma(port, driver[1], hardware)}


def links(text: str) -> dict[Key, int]:
    """Parse `ip -j -s -s link show`: errors, and what a port lost because nobody took it in time.

    Frames that no protocol wanted are `dropped` too for Linux, and are no loss: they are left out on the way in.
    """
    found: dict[Key, int] = {}
    try:
        for link in loads(text):
            name, stats = link["ifname"], link["stats64"]
            rx, tx = stats["rx"], stats["tx"]
            found[Key(name, DROPS, "rx")] = rx["over_errors"] + rx.get("missed_errors", 0) + rx.get("fifo_errors", 0)
            found[Key(name, DROPS, "tx")] = tx["dropped"]
            found[Key(name, ERRORS, "rx")], found[Key(name, ERRORS, "tx")] = rx["errors"], tx["errors"]
            for way, one in (("rx", rx), ("tx", tx)):
                found[Key(name, BYTES, way)], found[Key(name, PACKETS, way)] = one["bytes"], one["packets"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"ip -s link: {error} in {text[:80]!r}") from error
    return found


def qdiscs(text: str) -> dict[Key, int]:
    """Parse `tc -j -s qdisc show`: what each port's queues dropped, all queues of a port together."""
    found: dict[Key, int] = {}
    try:
        for queue in loads(text):
            key = Key(queue["dev"], QUEUE_DROPS, "tx")
            # a child's drops are in its root too
            if queue.get("root") or key not in found:
                found[key] = int(queue["drops"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"tc -s qdisc: {error} in {text[:80]!r}") from error
    return found
