"""Templates made by scapy on the control host and sent to agents as hex: the agents themselves need no scapy.

Also dissects a frame that surprised a probe into text a person can read.
"""

from __future__ import annotations

from typing import Any

from validators.connections import layout


def scapy_template(protocol: str, smac: str, dmac: str, *, data: bool = False, ttl: int = 64, dscp: int = 0) -> bytes:
    """Return one whole frame built by scapy for `udp`, `tcp` or `icmp`; `data` adds the probe's data to TCP."""
    from scapy.layers.inet import ICMP, IP, TCP, UDP
    from scapy.layers.l2 import Ether
    from scapy.packet import Raw

    upper: dict[str, Any] = {
        "udp": UDP(sport=1, dport=2) / Raw(_payload(18)),
        "icmp": ICMP(type=8) / Raw(_payload(18)),
        "tcp": TCP(sport=1, dport=2, flags="S", window=65535) / Raw(_payload(12) if data else b""),
    }
    head = Ether(src=smac, dst=dmac) / IP(src="0.0.0.0", dst="0.0.0.0", ttl=ttl, tos=dscp << 2, flags="DF")  # noqa: S104
    return bytes(head / upper[protocol])


def dissect(frame: bytes) -> str:
    """Return scapy's view of a frame as indented text, for the evidence of a failed check."""
    from scapy.layers.l2 import Ether

    return str(Ether(frame).show(dump=True))


def _payload(size: int) -> bytes:
    return layout.MAGIC.to_bytes(4, "big").ljust(size, b"\0")
