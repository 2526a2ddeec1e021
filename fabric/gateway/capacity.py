"""What a masquerade pool can carry: concurrent connections and new connections per second.

A public address has 65,536 - 1,024 = 64,512 ports a protocol that a gateway gives to flows. Linux may use one port
for two flows to different destinations, so these figures are the floor: what is certain even when all flows go to one
address and port of the outside, as with one API endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.gateway import timeouts
from fabric.gateway.nat import size

if TYPE_CHECKING:
    from fabric.plan import Exposure, Gateway

PORTS_PER_ADDRESS = 65_536 - 1_024


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """Capacity of `addresses` public addresses, for one protocol towards one outside address and port.

    `concurrent` counts flows. `rates` are new connections per second that can go on for ever, by how the flow ends.
    """

    addresses: int
    concurrent: int
    rates: dict[str, float]


def concurrency(addresses: int) -> int:
    """Return how many flows of one protocol a pool carries at once."""
    return addresses * PORTS_PER_ADDRESS


def sustained_rate(addresses: int, life_s: float, idle_s: float) -> float:
    """Return new connections per second that never exhaust a pool, for flows that live `life_s` and are then silent.

    A port stays taken for its flow's life and for the idle timeout after its last packet.
    """
    return concurrency(addresses) / (life_s + idle_s)


def pool_capacity(addresses: int, idle_s: int, life_s: float) -> PoolCapacity:
    """Return the capacity of a pool for flows of `life_s` seconds: UDP, TCP that is closed, TCP that is abandoned."""
    tcp = timeouts.tcp(idle_s)
    rates = {
        "udp": sustained_rate(addresses, life_s, timeouts.udp(idle_s)["replied"]),
        "tcp-closed": sustained_rate(addresses, life_s, tcp["time_wait"]),
        "tcp-abandoned": sustained_rate(addresses, life_s, tcp["established"]),
        "dns": sustained_rate(addresses, 0.0, timeouts.dns(idle_s)["replied"]),
    }
    return PoolCapacity(addresses, concurrency(addresses), rates)


def share_addresses(exposure: Exposure, gateway: str) -> int:
    """Return how many public addresses of a masquerade pool one gateway owns; all when it is not divided."""
    from ipaddress import IPv4Address

    owned = [s for s in exposure.shares if s.gateway == gateway]
    if exposure.shares:
        return sum(int(IPv4Address(s.last)) - int(IPv4Address(s.first)) + 1 for s in owned)
    return size(exposure.public)


def table_use(gateway: Gateway, addresses: int) -> float:
    """Return the part of the conntrack table that full TCP and UDP pools would take: above 1 the table is the limit."""
    return 2 * concurrency(addresses) / gateway.conntrack_max
