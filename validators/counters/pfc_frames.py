"""802.1Qbb PFC frames, made and recognised with scapy, so that a lab can prove its counting path end to end.

Form (IEEE 802.1Qbb, MAC control): destination 01:80:C2:00:00:01, EtherType 0x8808, opcode 0x0101, a vector of enabled
priorities, and eight pause times in quanta of 512 bit times. Time 0 with its bit set resumes (XON).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

DESTINATION = "01:80:c2:00:00:01"
ETHERTYPE = 0x8808
_OPCODE = 0x0101
_BODY = struct.Struct("!HH8H")


@dataclass(frozen=True, slots=True)
class PfcFrame:
    """Pause times by priority, in quanta; 0 resumes. Priorities not in it are left alone."""

    source: str
    quanta: dict[int, int]


def craft(source: str, quanta: Mapping[int, int]) -> bytes:
    """Return a frame of 60 bytes without FCS. Raises ValueError for a priority or time that does not exist."""
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    if any(not 0 <= p <= 7 or not 0 <= q <= 0xFFFF for p, q in quanta.items()):
        raise ValueError(f"priorities are 0..7 and quanta 0..65535, not {dict(quanta)}")
    vector = sum(1 << priority for priority in quanta)
    body = _BODY.pack(_OPCODE, vector, *(quanta.get(priority, 0) for priority in range(8)))
    frame = bytes(Ether(dst=DESTINATION, src=source, type=ETHERTYPE) / Raw(body))
    return frame.ljust(60, b"\0")


def recognise(frame: bytes) -> PfcFrame | None:
    """Return what a frame pauses, None when it is not a PFC frame (a global pause frame has another opcode)."""
    from scapy.layers.l2 import Ether

    if len(frame) < 14 + _BODY.size:
        return None
    ether = Ether(frame)
    body = frame[14 : 14 + _BODY.size]
    opcode, vector, *times = _BODY.unpack(body)
    if ether.type != ETHERTYPE or str(ether.dst).lower() != DESTINATION or opcode != _OPCODE:
        return None
    return PfcFrame(str(ether.src), {p: times[p] for p in range(8) if vector & 1 << p})
