"""Byte layout of the frames that the probes send: Ethernet, IPv4 and UDP, TCP or ICMP echo, as numpy structures.

All multi-byte fields are big endian on the wire, so a received frame can be read in place, without parsing.
The probe's own data is 12 bytes: `magic`, `flow` (index of the connection) and `number` (which message of the flow).
"""

from __future__ import annotations

import socket
from typing import Final

import numpy as np

MAGIC: Final = 0x6B764C31  # "kvL1"
ICMP: Final = 1
TCP: Final = 6
UDP: Final = 17
PROTOCOLS: Final = {"icmp": ICMP, "tcp": TCP, "udp": UDP}
PROTOCOL_NAMES: Final = {number: name for name, number in PROTOCOLS.items()}

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10

_Fields = list[tuple[str, str] | tuple[str, str, int]]

_ETHERNET: _Fields = [("dmac", "V6"), ("smac", "V6"), ("ethertype", ">u2")]
_IPV4: _Fields = [
    ("vihl", "u1"), ("tos", "u1"), ("length", ">u2"), ("ident", ">u2"), ("fragment", ">u2"),
    ("ttl", "u1"), ("protocol", "u1"), ("ip_sum", ">u2"), ("src", ">u4"), ("dst", ">u4"),
]  # fmt: skip
_UDP: _Fields = [("sport", ">u2"), ("dport", ">u2"), ("udp_length", ">u2"), ("sum", ">u2")]
_TCP: _Fields = [
    ("sport", ">u2"), ("dport", ">u2"), ("seq", ">u4"), ("ack", ">u4"),
    ("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("sum", ">u2"), ("urgent", ">u2"),
]  # fmt: skip
# an echo has one identifier for both ends: it takes the place of the source port
_ICMP: _Fields = [("kind", "u1"), ("code", "u1"), ("sum", ">u2"), ("sport", ">u2"), ("echo_seq", ">u2")]
_DATA: _Fields = [("magic", ">u4"), ("flow", ">u4"), ("number", ">u4")]
_PAD: _Fields = [("pad", "V6")]

UDP_FRAME: Final = np.dtype(_ETHERNET + _IPV4 + _UDP + _DATA + _PAD)
ICMP_FRAME: Final = np.dtype(_ETHERNET + _IPV4 + _ICMP + _DATA + _PAD)
TCP_FRAME: Final = np.dtype(_ETHERNET + _IPV4 + _TCP)
TCP_DATA_FRAME: Final = np.dtype(_ETHERNET + _IPV4 + _TCP + _DATA)

assert UDP_FRAME.itemsize == ICMP_FRAME.itemsize == 60, "the smallest Ethernet frame without its checksum"
assert (TCP_FRAME.itemsize, TCP_DATA_FRAME.itemsize) == (54, 66)

# what a receive ring keeps of each frame: the same for every frame of a protocol, so a block has a constant stride
CAPTURED: Final = {UDP: UDP_FRAME, TCP: TCP_FRAME, ICMP: ICMP_FRAME}


def address(text: str) -> int:
    """Return an IPv4 address as a number; raises OSError for anything else."""
    return int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")


def address_text(number: int) -> str:
    """Return an IPv4 number as dotted text."""
    return socket.inet_ntoa(int(number).to_bytes(4, "big"))


def mac_bytes(text: str) -> bytes:
    """Return `aa:bb:cc:dd:ee:ff` as six bytes; raises ValueError for anything else."""
    raw = bytes.fromhex(text.replace(":", ""))
    if len(raw) != 6:
        msg = f"not a MAC address: {text!r}"
        raise ValueError(msg)
    return raw


def mac_text(raw: bytes) -> str:
    """Return six bytes as `aa:bb:cc:dd:ee:ff`."""
    return raw.hex(":")
