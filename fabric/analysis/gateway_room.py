"""What the gateways carry for a rate of requests: connections a second and at once, NAT ports, Gb/s, handshakes.

Each request is one new flow, held for its life and then for the idle timeout (Little's law: flows at once = rate x
time held). One gateway of a group serves an exposure at a time, so one share of the pool and one gateway's links
decide. What a gateway's CPU does is not in a plan: `kvfabric probe ladder` measures it.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.plan import Exposure, Plan

PORTS_PER_ADDRESS = 64_512  # 65,536 less the well-known 1,024
TLS_ROUND_TRIPS = 2  # TCP 1 (RFC 9293) and TLS 1.3 1 (RFC 8446) before the first byte of a request


@dataclass(frozen=True, slots=True)
class Requests:
    """What is asked of every exposure: new requests a second, seconds each lives, bytes one way, round-trip time."""

    per_s: float = 0.0
    life_s: float = 10.0
    size_bytes: float = 0.0
    rtt_s: float = 0.02


@dataclass(frozen=True, slots=True)
class GatewayRoom:
    """One stateful exposure's room.

    `most_at_once` is the smaller of NAT ports and the conntrack table, per protocol and remote address and port;
    `new_per_s` what that sustains; `at_once` the flows that the asked rate holds; `handshaking` those of them that
    are still in their TCP handshake, and `handshake_s` the time to the first byte of a TLS request; `gbps` what one
    gateway carries one way and `asked_gbps` what is asked of it. `binds` names what is too small, empty when
    nothing is.
    """

    tenant: str
    exposure: str
    mode: str
    gateway: str
    addresses: int
    nat_ports: int
    idle_timeout_s: int
    most_at_once: int
    new_per_s: float
    asked_per_s: float
    at_once: float
    handshaking: float
    handshake_s: float
    gbps: int
    asked_gbps: float
    binds: str

    @property
    def enough(self) -> bool:
        """Whether the exposure serves what is asked."""
        return not self.binds


def gateway_room(plan: Plan, asked: Requests) -> list[GatewayRoom]:
    """Return the room of each stateful exposure (`masquerade`, `portForward`); static ones keep no state."""
    return [
        _room(plan, tenant.name, exposure, asked)
        for tenant in plan.tenants.values()
        for exposure in tenant.exposures
        if exposure.mode != "static" and plan.groups[exposure.group].gateways
    ]


def gateway_gbps(plan: Plan, name: str) -> int:
    """Return what a gateway can carry one way: the smaller of its links inside and outside, Gb/s."""
    gateway = plan.gateways[name]
    sides = (gateway.uplinks, gateway.externals)
    return min(sum(plan.links[link].speed for link in side) for side in sides)


def _room(plan: Plan, tenant: str, exposure: Exposure, asked: Requests) -> GatewayRoom:
    members = plan.groups[exposure.group].gateways
    sizes = [_addresses(share.first, share.last) for share in exposure.shares]
    addresses = min(sizes) if sizes else 1
    table = min(plan.gateways[g].conntrack_max for g in members)
    ports = addresses * PORTS_PER_ADDRESS
    most = min(ports, table) if exposure.mode == "masquerade" else table
    hold = asked.life_s + exposure.idle_timeout_s
    gbps = min(gateway_gbps(plan, g) for g in members)
    asked_gbps = asked.per_s * asked.size_bytes * 8 / 1e9
    too_small = {
        "NAT ports": exposure.mode == "masquerade" and asked.per_s * hold > ports,
        "conntrack table": asked.per_s * hold > table,
        "Gb/s": asked_gbps > gbps,
    }
    return GatewayRoom(
        tenant=tenant,
        exposure=exposure.name,
        mode=exposure.mode,
        gateway=members[0],
        addresses=addresses,
        nat_ports=ports,
        idle_timeout_s=exposure.idle_timeout_s,
        most_at_once=most,
        new_per_s=most / hold,
        asked_per_s=asked.per_s,
        at_once=asked.per_s * hold,
        handshaking=asked.per_s * asked.rtt_s,
        handshake_s=asked.rtt_s * TLS_ROUND_TRIPS,
        gbps=gbps,
        asked_gbps=asked_gbps,
        binds=", ".join(name for name, small in too_small.items() if small),
    )


def _addresses(first: str, last: str) -> int:
    return int(IPv4Address(last)) - int(IPv4Address(first)) + 1
