"""Build frames in bulk from a template: copy it N times, set the fields that vary, add their words to its checksums.

The one's complement sum of a template with its variable fields at zero is computed once; each frame then only adds
its own words (the incremental idea of RFC 1624), which numpy does for a whole batch at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from validators.connections import layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

Frames: TypeAlias = "NDArray[Any]"
Values: TypeAlias = "NDArray[Any] | int"

_IP_FIELDS = ("ident", "src", "dst")
_L4_FIELDS = (
    *("src", "dst", "sport", "dport", "flow", "number"),
    *("seq", "ack", "flags", "window", "urgent"),
    *("kind", "echo_seq"),
)
_HIGH_BYTE = ("kind",)  # first byte of its 16-bit word; `flags` is the second byte of its own


@dataclass(frozen=True)
class Template:
    """A frame whose variable fields are zero and whose checksums are sums of the rest, ready to be multiplied.

    `ip_base` and `l4_base` are unfolded one's complement sums; `l4_base` includes the constant part of the pseudo
    header (protocol and length) for UDP and TCP.
    """

    frame: bytes
    dtype: np.dtype[Any]
    protocol: int
    ip_base: int
    l4_base: int

    @classmethod
    def from_bytes(cls, frame: bytes) -> Template:
        """Make a template from any well-formed frame of the four layouts; raises ValueError if it is not one."""
        dtype = layout_of(frame)
        zeroed = np.frombuffer(frame, dtype).copy()
        protocol = int(zeroed["protocol"][0])
        names = zeroed.dtype.names or ()
        for name in {*_IP_FIELDS, *_L4_FIELDS, "magic", "ip_sum", "sum"} & set(names):
            zeroed[name] = 0
        if "magic" in names:
            zeroed["magic"] = layout.MAGIC
        raw = zeroed.tobytes()
        words = np.frombuffer(raw, ">u2").astype(np.uint64)
        l4_base = int(words[17:].sum())
        if protocol != layout.ICMP:
            l4_base += protocol + len(raw) - 34
        return cls(raw, dtype, protocol, int(words[7:17].sum()), l4_base)


def layout_of(frame: bytes) -> np.dtype[Any]:
    """Return the structure of a frame by its protocol and length."""
    if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[14] != 0x45:
        msg = "a template is an Ethernet frame with IPv4 without options"
        raise ValueError(msg)
    candidates = {
        (layout.UDP, 60): layout.UDP_FRAME,
        (layout.ICMP, 60): layout.ICMP_FRAME,
        (layout.TCP, 54): layout.TCP_FRAME,
        (layout.TCP, 66): layout.TCP_DATA_FRAME,
    }
    found = candidates.get((frame[23], len(frame)))
    if found is None:
        msg = f"no layout for IP protocol {frame[23]} with {len(frame)} bytes"
        raise ValueError(msg)
    return found


def plain_template(
    protocol: int, smac: bytes, dmac: bytes, *, data: bool = False, ttl: int = 64, tos: int = 0
) -> Template:
    """Make a template without scapy, for an agent that was not given one; `data` adds the probe's data to TCP."""
    dtype = layout.TCP_DATA_FRAME if protocol == layout.TCP and data else layout.CAPTURED[protocol]
    frame = np.zeros(1, dtype)
    length = dtype.itemsize - 14
    frame["dmac"], frame["smac"], frame["ethertype"] = np.void(dmac), np.void(smac), 0x0800
    frame["vihl"], frame["tos"], frame["length"], frame["ttl"], frame["protocol"] = 0x45, tos, length, ttl, protocol
    frame["fragment"] = 0x4000
    if protocol == layout.UDP:
        frame["udp_length"] = length - 20
    if protocol == layout.TCP:
        frame["offset"], frame["window"] = 0x50, 65535
    return Template.from_bytes(frame.tobytes())


def build(template: Template, count: int, **fields: Values) -> Frames:
    """Return `count` frames (a structured array) with the named fields set and every checksum right.

    Each field is an array of `count` values or one value for all. Addresses are numbers. A field that the layout
    does not have raises ValueError (numpy's own).
    """
    # repeating bytes is one copy; assigning a structure would go field by field
    frames = np.frombuffer(bytearray(template.frame * count), template.dtype)
    ip_sum = np.full(count, template.ip_base, np.uint64)
    l4_sum = np.full(count, template.l4_base, np.uint64)
    if template.protocol == layout.TCP and "window" not in fields:
        fields["window"] = 65535
    for name, value in fields.items():
        if name not in _IP_FIELDS and name not in _L4_FIELDS:
            msg = f"{name} cannot vary: the checksum would not follow"
            raise ValueError(msg)
        frames[name] = value
        words = _words(np.asarray(value), name)
        if name in _IP_FIELDS:
            ip_sum += words
        if name in _L4_FIELDS and not (template.protocol == layout.ICMP and name in ("src", "dst")):
            l4_sum += words
    frames["ip_sum"] = _folded(ip_sum)
    l4 = _folded(l4_sum)
    if template.protocol == layout.UDP:
        l4[l4 == 0] = 0xFFFF  # RFC 768: zero would mean "no checksum"
    frames["sum"] = l4
    return frames


def checksums_ok(frames: Frames) -> NDArray[np.bool_]:
    """Tell for each whole frame (no truncated one) whether its IP and transport checksums are right."""
    words = np.ascontiguousarray(frames).view(np.uint8).reshape(len(frames), -1).view(">u2").astype(np.uint32)
    ip_ok = _folded(words[:, 7:17].sum(axis=1, dtype=np.uint64)) == 0
    l4 = words[:, 17:].sum(axis=1, dtype=np.uint64)
    pseudo = words[:, 13:17].sum(axis=1, dtype=np.uint64) + frames["protocol"] + frames["length"].astype(np.uint64) - 20
    l4 += np.where(frames["protocol"] == layout.ICMP, 0, pseudo).astype(np.uint64)
    result: NDArray[np.bool_] = ip_ok & (_folded(l4) == 0)
    return result


def _words(value: NDArray[Any], name: str) -> NDArray[np.uint64]:
    """Return what a field adds to a one's complement sum of 16-bit words."""
    wide = value.astype(np.uint64)
    if name in _HIGH_BYTE:
        return wide << np.uint64(8)
    return (wide >> np.uint64(16)) + (wide & np.uint64(0xFFFF))


def _folded(total: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Fold carries and complement."""
    for _ in range(3):
        total = (total >> np.uint64(16)) + (total & np.uint64(0xFFFF))
    return (~total.astype(np.uint16)).astype(np.uint16)
