"""The plan: the whole site, decided. Everything downstream reads this and never the inventory.

All parts are frozen. Addresses are strings (`10.0.0.1`, with a length where the field says so), speeds are line rates
in Gb/s, MTUs are bytes of IP packet, lengths are metres, times are seconds unless the name says otherwise.

Conventions: in a link, end `a` is the lower tier (server, gateway, leaf) and end `b` the upper (leaf, spine, edge);
ports have NOS-neutral names (`E1/7/2`) and every end also has the interface name that the device itself uses
(`Ethernet52` on a switch, `be0-port0` on a server), which labs keep.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from ipaddress import IPv4Interface
from typing import TYPE_CHECKING, Any

from fabric.plan_qos import Headroom, Qos, TrafficClass
from fabric.plan_tenants import EdgeRouter, Exposure, Gateway, GatewayGroup, PoolShare, PortMap, Subnet, Tenant

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "ABOVE_LEAVES",
    "BORDER_LEAF",
    "EDGE",
    "EXTERNAL_LINK",
    "FABRIC_LINK",
    "GATEWAY",
    "GATEWAY_LINK",
    "LEAF",
    "LEAF_KINDS",
    "MANAGEMENT_LINK",
    "SERVER",
    "SERVER_LINK",
    "SPINE",
    "SUPER_SPINE",
    "Breakout",
    "EdgeRouter",
    "End",
    "Exposure",
    "Fabric",
    "Gateway",
    "GatewayGroup",
    "Headroom",
    "Link",
    "Plan",
    "PoolShare",
    "PoolUse",
    "Port",
    "PortMap",
    "Qos",
    "Server",
    "ServerPort",
    "ServiceAddress",
    "Subnet",
    "Switch",
    "Tenant",
    "TrafficClass",
]

# device kinds
LEAF, BORDER_LEAF, SPINE, SUPER_SPINE = "leaf", "border-leaf", "spine", "super-spine"
SERVER, GATEWAY, EDGE = "server", "gateway", "edge"
LEAF_KINDS = frozenset({LEAF, BORDER_LEAF})
ABOVE_LEAVES = frozenset({SPINE, SUPER_SPINE})

# link kinds
FABRIC_LINK, SERVER_LINK, GATEWAY_LINK, EXTERNAL_LINK, MANAGEMENT_LINK = (
    "fabric",
    "server",
    "gateway",
    "external",
    "management",
)


@dataclass(frozen=True, slots=True)
class Port:
    """A logical switch port as it will be configured, used or spare.

    `lanes` is the NOS's lane list (`17,18,19,20`); `subport` is 0 for an unbroken cage, else 1..n; `link` is a link id,
    or empty for a spare port.
    """

    name: str
    interface: str
    cage: int
    subport: int
    speed: int
    lanes: str
    alias: str
    index: int
    fec: str
    zone: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Breakout:
    """How one cage is split: the NOS-neutral parent (`E1/7`), its NOS name (`Ethernet48`) and the mode (`2x400G`)."""

    cage: int
    parent: str
    interface: str
    mode: str


@dataclass(frozen=True, slots=True)
class Switch:
    """A leaf, border leaf, spine or super-spine of one fabric.

    `router_id` is also Loopback0 (/32); `vtep` is Loopback1 (/32), empty on spines; `management` is the in-band address
    with length. `vrfs` names the tenant VRFs present here, in order. `pod` is the pod of a leaf or spine in a
    fabric of three tiers (`01`, `b01` for border leaves), the plane of a super-spine (`plane-01`), else empty.
    """

    name: str
    kind: str
    fabric: str
    model: str
    nos: str
    asn: int
    router_id: str
    vtep: str
    management: str
    mac: str
    ports: tuple[Port, ...]
    breakouts: tuple[Breakout, ...]
    vrfs: tuple[str, ...]
    managed: bool = True
    rack: str = ""
    index: int = 0
    pod: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link. `address` carries a length (`10.1.64.1/31`), empty when unnumbered."""

    device: str
    port: str
    interface: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One cable (or one leg of a breakout cable) between two ports.

    `tenant` is the tenant whose VRF holds the leaf side of a server link, else empty. `vlan` is the access VLAN that
    carries the address on a switch that cannot hold it on the port (Tomahawk 5 towards a gateway), else 0.
    """

    id: str
    cable: int
    fabric: str
    kind: str
    a: End
    b: End
    speed: int
    length_m: int
    medium: str
    tenant: str = ""
    vlan: int = 0

    def end(self, device: str) -> End:
        """Return the end on `device`; KeyError if the link does not touch it."""
        if self.a.device == device:
            return self.a
        if self.b.device == device:
            return self.b
        raise KeyError(device)

    def far(self, device: str) -> End:
        """Return the end that is not on `device`; KeyError if the link does not touch it."""
        if self.a.device == device:
            return self.b
        if self.b.device == device:
            return self.a
        raise KeyError(device)


@dataclass(frozen=True, slots=True)
class Fabric:
    """One physical network. `carries` lists networks (`backend`, `frontend`, `storage`, `inband`, `oob`).

    `numbered` is true when leaf-spine links have /31s. `mtu` is between switches, `server_mtu` towards servers and
    gateways. `qos` is None where RDMA is off. Unmanaged fabrics are cabled and counted but get no configuration.
    """

    name: str
    carries: tuple[str, ...]
    managed: bool
    placement: str
    numbered: bool
    mtu: int
    server_mtu: int
    spine_asn: int
    max_paths: int
    qos: Qos | None
    vxlan_port: int = 4789


@dataclass(frozen=True, slots=True)
class ServerPort:
    """A server NIC port: its cable, tenant and addresses.

    `address` has its /31 length; `gateway` is the leaf's side without length. `network` is the fabric's name; `rail` is
    the position of the NIC in its group (0-based). `tenant` is empty on an unassigned port, which has no address.
    """

    name: str
    nic: str
    model: str
    speed: int
    fabric: str
    rail: int
    link: str
    tenant: str
    address: str
    gateway: str
    rdma: bool


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """A /32 that a server answers on, whichever NIC is up: the tenant, the fabric that routes it, the address."""

    tenant: str
    fabric: str
    address: str


@dataclass(frozen=True, slots=True)
class Server:
    """A compute, storage or other server. `xpus` counts accelerators.

    `management` is where its system answers, `bmc` where its board's management controller does (with length; empty for
    none). A server whose only ports in the management networks are the controller's has no `management`.
    """

    name: str
    server_class: str
    kind: str
    index: int
    xpus: int
    ports: tuple[ServerPort, ...]
    services: tuple[ServiceAddress, ...]
    management: str
    rack: str = ""
    bmc: str = ""


@dataclass(frozen=True, slots=True)
class PoolUse:
    """How full a number or address pool is."""

    name: str
    range: str
    used: int
    size: int


@dataclass(frozen=True)
class Plan:
    """The site: devices, links, tenants and the numbers they got. Look-ups only, no decisions."""

    site: str
    profile: str
    fabrics: dict[str, Fabric]
    switches: dict[str, Switch]
    servers: dict[str, Server]
    gateways: dict[str, Gateway]
    groups: dict[str, GatewayGroup]
    edges: dict[str, EdgeRouter]
    links: dict[str, Link]
    tenants: dict[str, Tenant]
    pools: tuple[PoolUse, ...]
    rt_asn: int
    settings: dict[str, Any] = field(default_factory=dict)

    def management_gateway(self, address: str) -> str:
        """The router of the management network that `address` (with length) is in: what the site says, or the last."""
        return str(self.settings.get("management_gateway") or IPv4Interface(address).network[-2])

    @cached_property
    def links_of(self) -> dict[str, tuple[Link, ...]]:
        """Links by device, in plan order."""
        found: dict[str, list[Link]] = {}
        for link in self.links.values():
            found.setdefault(link.a.device, []).append(link)
            found.setdefault(link.b.device, []).append(link)
        return {device: tuple(links) for device, links in found.items()}

    @cached_property
    def kind_of(self) -> dict[str, str]:
        """Device kind by name, over every device of the site."""
        kinds = {name: switch.kind for name, switch in self.switches.items()}
        kinds.update(dict.fromkeys(self.servers, SERVER))
        kinds.update(dict.fromkeys(self.gateways, GATEWAY))
        kinds.update(dict.fromkeys(self.edges, EDGE))
        return kinds

    @cached_property
    def tenant_of_vrf(self) -> dict[str, Tenant]:
        """Tenants by VRF name."""
        return {tenant.vrf: tenant for tenant in self.tenants.values()}

    @cached_property
    def link_at(self) -> dict[tuple[str, str], Link]:
        """Links by (device, port name) and by (device, interface name)."""
        found: dict[tuple[str, str], Link] = {}
        for link in self.links.values():
            for end in (link.a, link.b):
                found[end.device, end.port] = link
                found[end.device, end.interface] = link
        return found

    @cached_property
    def graph(self) -> nx.MultiGraph[str]:
        """The site as a networkx multigraph: nodes carry `kind`, edges (keyed by link id) carry `speed` and `link`."""
        import networkx

        graph: nx.MultiGraph[str] = networkx.MultiGraph(name=self.site)
        for name, kind in self.kind_of.items():
            graph.add_node(name, kind=kind)
        for link in self.links.values():
            graph.add_edge(link.a.device, link.b.device, key=link.id, speed=link.speed, link=link)
        return graph

    def switches_of(self, fabric: str, *kinds: str) -> tuple[Switch, ...]:
        """The switches of a fabric, only of `kinds` when given, in plan order."""
        return tuple(s for s in self.switches.values() if s.fabric == fabric and (not kinds or s.kind in kinds))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole plan as JSON-ready data."""
        return asdict(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: two runs with the same digest had the same design."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()
