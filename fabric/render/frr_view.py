"""What a switch's frr.conf says, worked out from the plan: sessions, VRFs, route targets and filters.

The same view serves SONiC's FRR and a Linux router's: the routing is one design (docs/design.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fabric.gateway.served import RANK_ASN
from fabric.gateway.targets import default_route_target
from fabric.plan import FABRIC_LINK, GATEWAY_LINK, LEAF_KINDS, SERVER_LINK, SPINE
from fabric.prefix_counts import RESTART_MINUTES, expected_from, prefix_limit
from fabric.qos.headroom import rdma_links
from fabric.render.text_templates import template

if TYPE_CHECKING:
    from fabric.plan import Link, Plan, Switch, Tenant

# a gateway's rank in its group travels as community 50001:<rank>; rank 0 gets the highest local preference
_BEST_PREFERENCE = 210


@dataclass(frozen=True, slots=True)
class Session:
    """A BGP neighbor: an interface name (unnumbered) or an address, its AS and who it is."""

    name: str
    unnumbered: bool
    asn: int
    group: str
    device: str
    text: str


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """A /32 that a server answers on, and the server's address on one of this leaf's ports."""

    address: str
    next_hop: str


@dataclass(frozen=True, slots=True)
class TenantVrf:
    """A tenant's VRF on one leaf.

    `home` is true when the tenant has ports here. A VRF without ports is here because a peer of the tenant has some:
    it only learns the tenant's routes from EVPN, for that peer to import. `own` and `peer_prefixes` are the tenant's
    and its peers' subnets in this fabric, `peers` the peers' VRFs.
    """

    tenant: Tenant
    home: bool
    rd: str
    own: tuple[str, ...]
    peers: tuple[str, ...]
    peer_prefixes: tuple[str, ...]
    routes: tuple[ServiceRoute, ...]

    @property
    def default_target(self) -> str:
        """Route target of the default route that gateways originate for this tenant."""
        return default_route_target(self.tenant.rt)


class SiteView:
    """Look-ups over one plan that every device shares, each worked out once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @cached_property
    def services(self) -> dict[str, tuple[ServiceRoute, ...]]:
        """Service routes by the server link that leads to them."""
        found: dict[str, tuple[ServiceRoute, ...]] = {}
        for server in self.plan.servers.values():
            for port in server.ports:
                routes = tuple(
                    ServiceRoute(service.address, port.address.partition("/")[0])
                    for service in server.services
                    if port.address and (service.tenant, service.fabric) == (port.tenant, port.fabric)
                )
                if routes:
                    found[port.link] = routes
        return found

    @cached_property
    def rdma_links(self) -> frozenset[str]:
        """Ids of the server links whose NIC carries RDMA."""
        return rdma_links(self.plan)

    @cached_property
    def subnets(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """A tenant's prefixes by (tenant, fabric)."""
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for tenant in self.plan.tenants.values():
            for subnet in tenant.subnets:
                key = (tenant.name, subnet.fabric)
                found[key] = (*found.get(key, ()), subnet.prefix)
        return found

    @cached_property
    def _tenant_vrfs(self) -> dict[str, tuple[TenantVrf, ...]]:
        return {}

    def tenant_vrfs(self, switch: Switch) -> tuple[TenantVrf, ...]:
        """The tenant VRFs on a leaf, in plan order: those with ports here, then as needed those of their peers."""
        known = self._tenant_vrfs.get(switch.name)
        if known is None:
            known = self._tenant_vrfs[switch.name] = self._work_out_vrfs(switch)
        return known

    def _work_out_vrfs(self, switch: Switch) -> tuple[TenantVrf, ...]:
        if not switch.vtep:
            return ()
        tenants, fabric = self.plan.tenants, switch.fabric
        links: dict[str, list[Link]] = {}
        for link in self.plan.links_of.get(switch.name, ()):
            if link.kind == SERVER_LINK and link.tenant:
                links.setdefault(link.tenant, []).append(link)
        around = {peer for name in links for peer in tenants[name].peers if (peer, fabric) in self.subnets}
        return tuple(
            self._tenant_vrf(switch, tenant, links.get(tenant.name))
            for tenant in tenants.values()
            if tenant.name in links or tenant.name in around
        )

    def _tenant_vrf(self, switch: Switch, tenant: Tenant, links: list[Link] | None) -> TenantVrf:
        fabric = switch.fabric
        peers = [p for p in tenant.peers if (p, fabric) in self.subnets] if links else []
        return TenantVrf(
            tenant=tenant,
            home=bool(links),
            rd=f"{switch.router_id}:{tenant.rd_number}",
            own=self.subnets.get((tenant.name, fabric), ()),
            peers=tuple(self.plan.tenants[peer].vrf for peer in peers),
            peer_prefixes=tuple(prefix for peer in peers for prefix in self.subnets[peer, fabric]),
            routes=tuple(route for link in links or () for route in self.services.get(link.id, ())),
        )


class _Last:
    view: SiteView | None = None


def site_view(plan: Plan) -> SiteView:
    """Return the shared look-ups of a plan; the last plan's are kept."""
    if _Last.view is None or _Last.view.plan is not plan:
        _Last.view = SiteView(plan)
    return _Last.view


def sessions(plan: Plan, switch: Switch) -> tuple[Session, ...]:
    """The BGP neighbors of a switch's default VRF, in plan order."""
    found = []
    for link in plan.links_of.get(switch.name, ()):
        far = link.far(switch.name)
        if link.kind == FABRIC_LINK:
            asn, group = plan.switches[far.device].asn, "FABRIC"
        elif link.kind == GATEWAY_LINK and far.device in plan.gateways:
            asn, group = plan.gateways[far.device].asn, "GATEWAYS"
        else:
            continue
        name = far.address.partition("/")[0] or link.end(switch.name).interface
        found.append(Session(name, not far.address, asn, group, far.device, f"{far.device} {far.port}"))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PeerGroup:
    """Sessions of one kind, the prefixes that each may bring, and what happens beyond."""

    name: str
    limit: int
    beyond: str


def peer_groups(plan: Plan, switch: Switch, around: tuple[Session, ...]) -> tuple[PeerGroup, ...]:
    """Return the peer groups of a switch that have sessions: other switches, gateways."""
    ends, inside = f"restart {RESTART_MINUTES}", "warning-only" if switch.kind in LEAF_KINDS else ""
    found = []
    for group, beyond in (("FABRIC", inside or ends), ("GATEWAYS", ends)):
        devices = {session.device for session in around if session.group == group}
        if devices:
            most = max(expected_from(plan, device) for device in devices)
            found.append(PeerGroup(group, prefix_limit(most), beyond))
    return tuple(found)


def loopback_pools(plan: Plan) -> tuple[str, ...]:
    """The pools that loopbacks and VTEPs are from, as a prefix list says `their /32s`."""
    pools = [pool.range for pool in plan.pools if pool.name in {"loopback", "vtep"}]
    return tuple(pool if pool.endswith("/32") else f"{pool} ge 32" for pool in pools)


def gateway_ranks(plan: Plan, fabric: str) -> tuple[tuple[int, str, int], ...]:
    """Return (rank, community, local preference) of every place that a gateway of the fabric has in a group."""
    ranks = {rank for gateway in plan.gateways.values() if gateway.fabric == fabric for rank in gateway.ranks.values()}
    return tuple((rank, f"{RANK_ASN}:{rank}", _BEST_PREFERENCE - rank) for rank in sorted(ranks))


def gateway_ways(plan: Plan, switch: Switch) -> tuple[Session, ...]:
    """The sessions of a spine to the leaf whose way to the gateways it prefers, so that each way is told by some spine.

    Only where leaves have gateways and tenants: one that loses its link to a gateway must know the way over another
    leaf already. Without it its servers' packets would go to the standby, which resets what the gateway knows. A spine
    tells one path, and never a useful one to the leaf it has it from.
    """
    leaves = [
        leaf
        for leaf in plan.switches_of(switch.fabric, *LEAF_KINDS)
        if any(link.kind == GATEWAY_LINK for link in plan.links_of.get(leaf.name, ()))
    ]
    if switch.kind != SPINE or len(leaves) < 2 or not any(leaf.vrfs for leaf in leaves):
        return ()
    number = [spine.name for spine in plan.switches_of(switch.fabric, SPINE)].index(switch.name)
    preferred = leaves[number % len(leaves)].name
    return tuple(session for session in sessions(plan, switch) if session.device == preferred)


def routing_text(plan: Plan, switch: Switch, *, fpm: bool) -> str:
    """Return the frr.conf of a switch; `fpm` adds SONiC's two forwarding-plane lines."""
    fabric = plan.fabrics[switch.fabric]
    around = sessions(plan, switch)
    return template("frr/frr.conf.j2").render(
        switch=switch,
        fpm=fpm,
        sessions=around,
        groups=peer_groups(plan, switch, around),
        loopbacks=loopback_pools(plan),
        gateway_asns=sorted({s.asn for s in around if s.group == "GATEWAYS"}),
        ways=gateway_ways(plan, switch),
        all_gateway_asns=sorted({gateway.asn for gateway in plan.gateways.values()}),
        ranks=gateway_ranks(plan, switch.fabric) if switch.vtep else (),
        vrfs=site_view(plan).tenant_vrfs(switch),
        max_paths=max(fabric.max_paths, len(around)),
    )
