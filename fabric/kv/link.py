"""What a port can carry in one direction, as KV bytes per second.

A 400 Gb/s port is 50 GB/s one way. It is full duplex, but a KV move is one direction: the other 50 GB/s do not help
it, and figures that add both directions are twice too high. Of those 50 GB/s a RoCEv2 packet of MTU 4096 fills 4,096
of 4,178 bytes on the wire with payload (preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12).
"""

from __future__ import annotations

ROCE_OVERHEAD_BYTES = 8 + 14 + 20 + 8 + 12 + 4 + 4 + 12
"""Bytes on the wire beside the payload of a RoCEv2 middle packet over IPv4, gap and preamble included."""


def mtu_share(mtu: int = 4096) -> float:
    """Return the share of the line rate that payload can have at an RDMA path MTU in bytes."""
    return mtu / (mtu + ROCE_OVERHEAD_BYTES)


def payload_gbps(line_gbps: float, mtu: int = 4096) -> float:
    """Return the most payload one direction of a port can carry, in Gb/s."""
    return line_gbps * mtu_share(mtu)


def one_way_bytes_per_second(line_gbps: float, ports: int = 1, efficiency: float = 1.0, mtu: int = 4096) -> float:
    """Return bytes/s of payload in one direction of `ports` ports at a share `efficiency` of the ceiling."""
    return payload_gbps(line_gbps, mtu) * 1e9 / 8 * ports * efficiency
