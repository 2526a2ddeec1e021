"""Single packets for behaviour checks: described field by field, sent one by one, heard whole and dissected.

Slow on purpose: a NAT check needs a handful of packets, exactly these, and every one that comes back.
"""

from __future__ import annotations

import select
import struct
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from validators.connections import layout

if TYPE_CHECKING:
    from validators.connections.port import Port

_IPV4 = struct.Struct("!BBHHHBBHII")
_TOKEN = struct.Struct("!II")


def ones_complement(data: bytes) -> int:
    """Return the internet checksum of some bytes (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total >> 16) + (total & 0xFFFF)
    return ~total & 0xFFFF


def packet(fields: dict[str, Any]) -> bytes:
    """Return an IPv4 packet from its description.

    `protocol` (udp, tcp, icmp), `src`, `dst` (dotted); `sport`, `dport` (ICMP: `sport` is the echo identifier);
    `token` marks the payload; `size` pads the packet to that many bytes; TCP: `flags`, `seq`, `ack`; ICMP: `kind`,
    `code`, `rest` (the second word) and `inner` (hex of the packet that an error quotes); `ttl`, `df`.
    """
    protocol = layout.PROTOCOLS[fields["protocol"]]
    src, dst = layout.address(fields["src"]), layout.address(fields["dst"])
    data = _TOKEN.pack(layout.MAGIC, fields["token"]) if "token" in fields else b""
    upper = {layout.UDP: _udp, layout.TCP: _tcp, layout.ICMP: _icmp}[protocol]
    head = {layout.UDP: 8, layout.TCP: 20, layout.ICMP: 8}[protocol]
    data = data.ljust(max(len(data), int(fields.get("size", 0)) - 20 - head), b"\0")
    body = upper(fields, src, dst, data)
    fragment = 0x4000 if fields.get("df", True) else 0
    values = [0x45, fields.get("tos", 0), 20 + len(body), fields.get("ident", 0), fragment]
    values += [fields.get("ttl", 64), protocol, 0, src, dst]
    values[7] = ones_complement(_IPV4.pack(*values))
    return _IPV4.pack(*values) + body


def _pseudo(src: int, dst: int, protocol: int, length: int) -> bytes:
    return struct.pack("!IIBBH", src, dst, 0, protocol, length)


def _udp(fields: dict[str, Any], src: int, dst: int, data: bytes) -> bytes:
    length = 8 + len(data)
    head = struct.pack("!HHHH", fields["sport"], fields["dport"], length, 0)
    total = ones_complement(_pseudo(src, dst, layout.UDP, length) + head + data) or 0xFFFF
    return head[:6] + struct.pack("!H", total) + data


def _tcp(fields: dict[str, Any], src: int, dst: int, data: bytes) -> bytes:
    ports = (fields["sport"], fields["dport"], fields.get("seq", 0) & 0xFFFFFFFF, fields.get("ack", 0) & 0xFFFFFFFF)
    head = struct.pack("!HHIIBBHHH", *ports, 0x50, fields["flags"], fields.get("window", 65535), 0, 0)
    total = ones_complement(_pseudo(src, dst, layout.TCP, len(head) + len(data)) + head + data)
    return head[:16] + struct.pack("!H", total) + head[18:] + data


def _icmp(fields: dict[str, Any], src: int, dst: int, data: bytes) -> bytes:
    del src, dst
    if "inner" in fields:
        data = bytes.fromhex(fields["inner"])
    rest = fields["rest"] if "rest" in fields else (fields["sport"] << 16) | fields.get("echo_seq", 1)
    head = struct.pack("!BBHI", fields.get("kind", 8), fields.get("code", 0), 0, rest)
    return head[:2] + struct.pack("!H", ones_complement(head + data)) + head[4:] + data


def dissected(raw: bytes) -> dict[str, Any]:
    """Return the fields of an IPv4 packet as `packet` takes them, and whether its checksums are right.

    `ip_ok`, `sum_ok` (None when the packet is cut short, as the quote inside an ICMP error is), `inner` dissected.
    """
    if len(raw) < 20:
        return {"protocol": "short", "raw": raw.hex()}
    first, tos, length, ident, fragment, ttl, protocol, _, src, dst = _IPV4.unpack_from(raw)
    head = (first & 15) * 4
    body = raw[head:length]
    whole = len(raw) >= length
    found: dict[str, Any] = {
        "protocol": layout.PROTOCOL_NAMES.get(protocol, str(protocol)),
        "src": layout.address_text(src),
        "dst": layout.address_text(dst),
        "ttl": ttl,
        "tos": tos,
        "ident": ident,
        "df": bool(fragment & 0x4000),
        "length": length,
        "ip_ok": ones_complement(raw[:head]) == 0,
    }
    reader = {layout.UDP: _read_udp, layout.TCP: _read_tcp, layout.ICMP: _read_icmp}.get(protocol)
    if reader is not None and len(body) >= 8:
        found["sum_ok"] = _sum_ok(protocol, src, dst, body) if whole else None
        reader(found, body)
    return found


def _sum_ok(protocol: int, src: int, dst: int, body: bytes) -> bool:
    if protocol == layout.UDP and body[6:8] == b"\0\0":
        return True
    pseudo = b"" if protocol == layout.ICMP else _pseudo(src, dst, protocol, len(body))
    return ones_complement(pseudo + body) == 0


def _token(found: dict[str, Any], data: bytes) -> None:
    found["data"] = len(data)
    if len(data) >= 8 and _TOKEN.unpack_from(data)[0] == layout.MAGIC:
        found["token"] = _TOKEN.unpack_from(data)[1]


def _read_udp(found: dict[str, Any], body: bytes) -> None:
    found["sport"], found["dport"] = struct.unpack_from("!HH", body)
    _token(found, body[8:])


def _read_tcp(found: dict[str, Any], body: bytes) -> None:
    found["sport"], found["dport"] = struct.unpack_from("!HH", body)
    found["seq"] = struct.unpack_from("!I", body, 4)[0]
    if len(body) >= 20:
        found["ack"] = struct.unpack_from("!I", body, 8)[0]
        found["flags"] = body[13]
        _token(found, body[(body[12] >> 4) * 4 :])


def _read_icmp(found: dict[str, Any], body: bytes) -> None:
    found["kind"], found["code"] = body[0], body[1]
    found["rest"] = struct.unpack_from("!I", body, 4)[0]
    if body[0] in (0, 8):
        found["sport"] = found["rest"] >> 16
        _token(found, body[8:])
    else:
        found["inner"] = dissected(body[8:])


def send_all(port: Port, packets: list[dict[str, Any]], spacing_s: float = 0.0) -> dict[str, Any]:
    """Send packets in order through a port towards its next hop."""
    for fields in packets:
        port.sender.send_bytes(port.dmac + port.smac + b"\x08\x00" + packet(fields))
        if spacing_s:
            time.sleep(spacing_s)
    return {"sent": len(packets)}


class Listener:
    """Keeps and dissects every IPv4 packet to a port's addresses, at most the last 100,000."""

    def __init__(self, port: Port) -> None:
        """Listen from now on."""
        self._socket = port.listener()
        self._kept: deque[dict[str, Any]] = deque(maxlen=100_000)
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            if not select.select([self._socket], [], [], 0.05)[0]:
                continue
            raw = self._socket.recv(65535)
            with self._changed:
                self._kept.append({**dissected(raw[14:]), "at_ns": time.time_ns()})
                self._changed.notify_all()

    def take(self, wait_s: float, token: int | None = None) -> list[dict[str, Any]]:
        """Return what was heard since the last call, after waiting `wait_s`, or until a packet has this token."""
        with self._changed:
            self._changed.wait_for(lambda: token is not None and self._has(token), wait_s)
            return [self._kept.popleft() for _ in range(len(self._kept))]

    def _has(self, token: int) -> bool:
        return any(packet.get("token") == token for packet in self._kept)

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join(timeout=1)
        self._socket.close()
