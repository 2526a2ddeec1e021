"""What one gateway serves, worked out of the plan: tenants with their numbers, exposures, announcements, neighbors."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, collapse_addresses
from typing import TYPE_CHECKING

from fabric.gateway import nat, timeouts
from fabric.gateway.targets import default_route_target

if TYPE_CHECKING:
    from fabric.plan import Exposure, Gateway, Plan, Tenant

EDGE_VRF = "Vrf-edge"
EDGE_TABLE = 999
_TABLE_BASE = 1000
_HANDOVER_TABLE_BASE = 100_000
# set in the packet mark of a flow that a draining gateway hands to the next one
HANDOVER_BIT = 0x4000_0000
# rank communities of the border: AS 50001 is reserved for them in this design
RANK_ASN = 50001
MED_STEP = 10


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A BGP neighbor on a numbered link: our interface and address (with length), its address, AS and name."""

    interface: str
    local: str
    address: str
    asn: int
    device: str


@dataclass(frozen=True, slots=True)
class Standby:
    """Another gateway of a tenant's group: its name, VTEP and router MAC."""

    name: str
    vtep: str
    router_mac: str


@dataclass(frozen=True, slots=True)
class Shown:
    """An exposure as this gateway shows it. `mark` is the conntrack mark of its flows, `label` names its counters.

    `first`/`last` are this gateway's share of a masquerade pool, empty in other modes.
    """

    exposure: Exposure
    mark: int
    label: str
    first: str = ""
    last: str = ""

    @property
    def pairs(self) -> tuple[nat.Block, ...]:
        """Blocks of a static exposure."""
        return nat.static_pairs(self.exposure.private, self.exposure.public) if self.exposure.mode == "static" else ()

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols whose flows have timers of their own here."""
        if self.exposure.mode == "masquerade":
            return ("tcp", "udp", "dns")
        return tuple(p for p in ("tcp", "udp") if any(m.protocol == p for m in self.exposure.ports))

    def policy(self, protocol: str) -> dict[str, int]:
        """Return the conntrack timers of a protocol (`tcp`, `udp` or `dns`), seconds by state."""
        return {"tcp": timeouts.tcp, "udp": timeouts.udp, "dns": timeouts.dns}[protocol](self.exposure.idle_timeout_s)


@dataclass(frozen=True, slots=True)
class Served:
    """A tenant on this gateway. `number` is its packet mark and conntrack zone, `table` its routing table.

    `standbys` are the other gateways of its group, in order of preference: while this one drains, new flows go to the
    first that can be reached.
    """

    tenant: Tenant
    number: int
    table: int
    bridge: str
    vxlan: str
    default_rt: str
    rank: int
    shown: tuple[Shown, ...]
    standbys: tuple[Standby, ...]

    @property
    def handover_mark(self) -> int:
        """Packet mark of what is handed to a standby."""
        return HANDOVER_BIT | self.number

    @property
    def handover_table(self) -> int:
        """Routing table of what is handed to a standby; empty unless the gateway drains."""
        return _HANDOVER_TABLE_BASE + self.number

    @property
    def subnets(self) -> tuple[str, ...]:
        """The tenant's own prefixes."""
        return tuple(subnet.prefix for subnet in self.tenant.subnets)

    @property
    def public(self) -> tuple[str, ...]:
        """The public addresses of the tenant as the fewest prefixes, the shares of other gateways included."""
        prefixes = {IPv4Network(prefix) for s in self.shown for prefix in s.exposure.public}
        return tuple(str(network) for network in collapse_addresses(prefixes))

    @property
    def hairpin(self) -> str:
        """The address that hosts wear when they call a public address of their own tenant."""
        pools = [s.first for s in self.shown if s.first]
        forwards = [s.exposure.public[0].partition("/")[0] for s in self.mode("portForward")]
        statics = [s.exposure.public[0].partition("/")[0] for s in self.mode("static")]
        return next(iter((*pools, *forwards, *statics)), "")

    def mode(self, mode: str) -> tuple[Shown, ...]:
        """Return the exposures of one mode."""
        return tuple(s for s in self.shown if s.exposure.mode == mode)


@dataclass(frozen=True, slots=True)
class Announcement:
    """A public prefix announced outside, with the gateway's rank for it."""

    prefix: str
    rank: int

    @property
    def med(self) -> int:
        """Multi-exit discriminator: lower is preferred."""
        return MED_STEP * (self.rank + 1)


def served(plan: Plan, gateway: Gateway) -> tuple[Served, ...]:
    """Return the tenants that a gateway serves, in the plan's order."""
    names = frozenset(gateway.tenants)
    return tuple(_served(plan, plan.tenants[name], gateway) for name in plan.tenants if name in names)


def _served(plan: Plan, tenant: Tenant, gateway: Gateway) -> Served:
    here = [(i, e) for i, e in enumerate(tenant.exposures, 1) if e.group in gateway.ranks]
    number = tenant.rd_number
    shown = tuple(_shown(e, number << 8 | i, gateway) for i, e in here)
    rank = min(gateway.ranks[e.group] for _, e in here) if here else 0
    return Served(
        tenant=tenant,
        number=number,
        table=_TABLE_BASE + number,
        bridge=f"br{tenant.vni}",
        vxlan=f"vx{tenant.vni}",
        default_rt=default_route_target(tenant.rt),
        rank=rank,
        shown=shown,
        standbys=_standbys(plan, gateway, here[0][1].group) if here else (),
    )


def _standbys(plan: Plan, gateway: Gateway, group: str) -> tuple[Standby, ...]:
    others = (plan.gateways[name] for name in plan.groups[group].gateways if name != gateway.name)
    return tuple(Standby(other.name, other.vtep, other.router_mac) for other in others)


def _share(exposure: Exposure, gateway: Gateway) -> tuple[str, str]:
    return next(((s.first, s.last) for s in exposure.shares if s.gateway == gateway.name), ("", ""))


def _shown(exposure: Exposure, mark: int, gateway: Gateway) -> Shown:
    first, last = _share(exposure, gateway) if exposure.mode == "masquerade" else ("", "")
    return Shown(exposure, mark, f"{exposure.tenant}.{exposure.name}", first, last)


def announcements(tenants: tuple[Served, ...], gateway: Gateway) -> tuple[Announcement, ...]:
    """Return the public prefixes that this gateway announces, once each: shares of pools, other exposures whole."""
    found: dict[str, int] = {}
    for tenant in tenants:
        for shown in tenant.shown:
            rank = gateway.ranks[shown.exposure.group]
            prefixes = nat.prefixes_of(shown.first, shown.last) if shown.first else shown.exposure.public
            for prefix in () if shown.exposure.mode == "masquerade" and not shown.first else prefixes:
                found[prefix] = min(rank, found.get(prefix, rank))
    return tuple(Announcement(prefix, rank) for prefix, rank in found.items())


def fabric_neighbors(plan: Plan, gateway: Gateway) -> tuple[Neighbor, ...]:
    """Return the BGP neighbors on the inside, one a cable."""
    return _neighbors(plan, gateway, gateway.uplinks)


def edge_neighbors(plan: Plan, gateway: Gateway) -> tuple[Neighbor, ...]:
    """Return the BGP neighbors on the outside, one a cable."""
    return _neighbors(plan, gateway, gateway.externals)


def _neighbors(plan: Plan, gateway: Gateway, links: tuple[str, ...]) -> tuple[Neighbor, ...]:
    found = []
    for ident in links:
        link = plan.links[ident]
        own, far = link.end(gateway.name), link.far(gateway.name)
        device = plan.switches.get(far.device) or plan.edges[far.device]
        found.append(Neighbor(own.interface, own.address, far.address.partition("/")[0], device.asn, far.device))
    return tuple(found)
