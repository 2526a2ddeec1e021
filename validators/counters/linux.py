"""Counters of a Linux host: `ethtool -S` of mlx5 and bnxt_en, RDMA hardware counters, `dcb -j pfc show`.

Names: the kernel's mlx5 counter documentation, and the mlx5, bnxt_re and rxe drivers' hw_counters tables.
"""

from __future__ import annotations

import json
import re
from typing import Any

from validators.counters.readings import (
    CNPS,
    DROPS,
    ECN_MARKED,
    NAKS,
    PAUSE,
    PAUSE_US,
    RETRANSMISSIONS,
    Key,
    UnreadableError,
)

_LINE = re.compile(r"^\s+(\S.*?):\s+(\d+)$")
_ETHTOOL = (
    (re.compile(r"^(rx|tx)_prio(\d)_pause$"), PAUSE),
    (re.compile(r"^(rx|tx)_prio(\d)_pause_duration$"), PAUSE_US),
    (re.compile(r"^(rx|tx)_prio(\d)_discards$"), DROPS),
    (re.compile(r"^(rx|tx)_pfc_ena_frames_pri(\d)$"), PAUSE),
)
_BNXT_DURATION = re.compile(r"^pfc_pri(\d)_(rx|tx)_duration_us$")
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
            found[key] = int(match[2])
    return found


def _ethtool_key(port: str, name: str) -> Key | None:
    for pattern, what in _ETHTOOL:
        if match := pattern.match(name):
            return Key(port, what, match[1], int(match[2]))
    if match := _BNXT_DURATION.match(name):
        return Key(port, PAUSE_US, match[2], int(match[1]))
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


def dcb_pfc(port: str, text: str) -> dict[Key, int]:
    """Parse `dcb -s -j pfc show dev PORT`: requests are pause frames sent, indications are received ones."""
    try:
        data: Any = json.loads(text)
        found = {Key(port, PAUSE, "tx", p): int(v) for p, v in enumerate(data["requests"])}
        found |= {Key(port, PAUSE, "rx", p): int(v) for p, v in enumerate(data["indications"])}
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"dcb pfc of {port}: {error}") from error
    return found
