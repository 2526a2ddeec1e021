"""Parts of the plan: tenants, what the outside sees of them, and the gateways that show it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subnet:
    """A tenant's address range in one fabric."""

    name: str
    prefix: str
    fabric: str


@dataclass(frozen=True, slots=True)
class PortMap:
    """One forwarded port: public port of the exposure's address to a private address and port."""

    protocol: str
    public_port: int
    private_address: str
    private_port: int


@dataclass(frozen=True, slots=True)
class PoolShare:
    """The public addresses of a masquerade exposure that one gateway owns, first to last, both included."""

    gateway: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Exposure:
    """What the gateways show of a tenant to the outside.

    `mode` is `masquerade` (inside starts), `portForward` (outside starts) or `static` (both ways, stateless, one to
    one). `private` and `public` are prefixes. `idle_timeout_s` is how long an idle established flow is kept; 0 for
    static. `shares` divides a masquerade pool between gateways, which share no state.
    """

    name: str
    tenant: str
    mode: str
    group: str
    private: tuple[str, ...]
    public: tuple[str, ...]
    idle_timeout_s: int
    ports: tuple[PortMap, ...] = ()
    shares: tuple[PoolShare, ...] = ()

    @property
    def title(self) -> str:
        """Mode and name for a sentence: `portForward forward`, `static`."""
        return exposure_title(self.mode, self.name)


def exposure_title(mode: str, name: str) -> str:
    """Name an exposure in a sentence; a name that says its mode (`static`, `static-2`) is enough by itself."""
    return name if name.startswith(mode) else f"{mode} {name}"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: one VRF and L3VNI in every fabric where it has ports.

    `rt` is the route target its own routes carry (2-byte AS form, RFC 4364). `imports` are the RTs that its VRF imports
    from EVPN: its own and that of its default route. A peer's RT is not among them: the peer's subnets come from the
    peer's VRF on the same leaf.
    `rd_number` completes `router_id:rd_number` on each VTEP. `vlan` is the L3VNI's VLAN and the only SVI of the VRF.
    `peers` are the tenants it exchanges routes with; peering never goes further than one step.
    """

    name: str
    vrf: str
    vni: int
    vlan: int
    rd_number: int
    rt: str
    imports: tuple[str, ...]
    peers: tuple[str, ...]
    service: bool
    subnets: tuple[Subnet, ...]
    ports: tuple[str, ...]
    exposures: tuple[Exposure, ...]


@dataclass(frozen=True, slots=True)
class GatewayGroup:
    """Gateways that serve the same exposures, first one preferred: active and standby, never shared state."""

    name: str
    gateways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gateway:
    """An x86 gateway: a VTEP on the inside, a BGP speaker towards the edge on the outside.

    `uplinks` and `externals` are link ids. `ranks` gives its place in each group (0 is preferred). `tenants` names the
    tenants with exposures it serves. `router_mac` is the RMAC of its VXLAN interfaces. `nic` is the model of the
    `nic_count` cards that its uplinks are ports of; the inventory does not say which card its external ports are on.
    """

    name: str
    gateway_class: str
    fabric: str
    asn: int
    router_id: str
    vtep: str
    router_mac: str
    management: str
    uplinks: tuple[str, ...]
    externals: tuple[str, ...]
    ranks: dict[str, int]
    tenants: tuple[str, ...]
    health_interval_s: int
    health_failures: int
    drain_deadline_s: int
    conntrack_max: int
    rack: str = ""
    nic: str = ""
    nic_count: int = 0


@dataclass(frozen=True, slots=True)
class EdgeRouter:
    """The provider's or campus router outside the gateways. Not ours to configure; labs play it."""

    name: str
    asn: int
    router_id: str
