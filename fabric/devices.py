"""Devices and cables of the plan, from the filled fabrics: switches, servers, gateways, edge routers and every link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.allocation.addresses import pair, stable_mac
from fabric.allocation.cables import number_cables
from fabric.allocation.renames import identity_of
from fabric.hardware.profiles import nic_models
from fabric.plan import (
    ABOVE_LEAVES,
    EXTERNAL_LINK,
    FABRIC_LINK,
    GATEWAY_LINK,
    MANAGEMENT_LINK,
    SERVER_LINK,
    SPINE,
    EdgeRouter,
    End,
    Fabric,
    Gateway,
    Link,
    Server,
    ServerPort,
    ServiceAddress,
    Switch,
)
from fabric.qos.build import build_qos
from fabric.topology.fabrics import edge_names, gateway_fabric, gateway_names, parse_nic, server_names, switch_spec
from fabric.topology.media import medium, one_medium_a_cage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.site import SiteBuilder
    from fabric.topology.fabrics import FabricDraft
    from fabric.topology.placement import Placed
    from fabric.topology.switches import Draft
    from fabric.topology.uplinks import Uplink

_KINDS = {"compute": "compute", "storage": "storage", "metadata": "metadata"}
_DEFAULT_XPUS = 8
_SPARE_EDGE_PORTS = 10_000  # numbers of removed gateways are held


class DeviceBuilder:
    """Turns the builder's drafts into the plan's frozen devices; fills its own attributes, in plan order."""

    def __init__(self, builder: SiteBuilder) -> None:
        self.builder = builder
        self.site, self.numbers = builder.site, builder.numbers
        self.fabric_plans: dict[str, Fabric] = {}
        self.switches: dict[str, Switch] = {}
        self.servers: dict[str, Server] = {}
        self.gateways: dict[str, Gateway] = {}
        self.edges: dict[str, EdgeRouter] = {}
        self.links: dict[str, Link] = {}
        self.media = self.site.cables.reach
        self._ports: dict[tuple[str, str], tuple[str, str, str]] = {}  # (server, port) -> link id, address, gateway
        self._vrfs: dict[str, set[str]] = {}
        self._positions: dict[tuple[str, str, str], int] = {}

    def build(self) -> None:
        """Build everything. Problems go to the site builder."""
        self._port_positions()
        for draft in self.builder.fabrics.values():
            self._server_links(draft)
        for draft in self.builder.fabrics.values():
            self._fabric_links(draft)
        self._gateway_links()
        self._external_links()
        self.links = one_medium_a_cage(self.links.values(), self.media)
        number_cables(self.links, self.numbers)
        self._switches()
        self._servers()
        self._gateways()
        self._fabrics()

    # ------------------------------------------------------------------ links

    def _add(self, link: Link) -> None:
        self.links[link.id] = link

    def _port_positions(self) -> None:
        """Where each port stands in its member block: ports that are RDMA-only never carry the service address."""
        for member in self.builder.members.blocks:
            for index, port in enumerate(member.ports):
                self._positions[member.server, member.fabric, port.name] = index

    def _server_links(self, draft: FabricDraft) -> None:
        books, owner, name = self.builder.books, self.builder.members.owner, draft.name
        length = self.site.cables.server_leaf if draft.spec.managed else self.site.cables.management
        kind = SERVER_LINK if draft.spec.managed else MANAGEMENT_LINK
        for placed in draft.placed:
            want = placed.want
            if want.group.startswith("gateway "):
                continue
            tenant = owner.get((want.server, want.port), "") if draft.spec.managed else ""
            book = books.get((tenant, name)) if tenant else None
            leaf_address = server_address = ""
            if book:
                position = self._positions[want.server, name, want.port]
                leaf_address, server_address = book.port_pair(want.server, position)
                self._vrfs.setdefault(placed.leaf.name, set()).add(tenant)
            link = self._link(name, kind, placed, server_address, leaf_address, length, tenant)
            self._add(link)
            self._ports[want.server, want.port] = (link.id, server_address, leaf_address.partition("/")[0])

    def _link(
        self, fabric: str, kind: str, placed: Placed, near: str, far: str, length: int, tenant: str = "", vlan: int = 0
    ) -> Link:
        want, leaf, port = placed.want, placed.leaf, placed.port
        return Link(
            id=leaf.used[port.name],
            cable=0,
            fabric=fabric,
            kind=kind,
            a=End(want.server, want.port, want.port, near),
            b=End(leaf.name, port.name, port.interface, far),
            speed=port.speed,
            length_m=length,
            medium=medium(self.media, port.speed, length),
            tenant=tenant,
            vlan=vlan,
        )

    def _fabric_links(self, draft: FabricDraft) -> None:
        ids = [uplink.leaf.used[uplink.leaf_port.name] for uplink in draft.uplinks]
        numbers: dict[str, int] = {}
        network = self.site.pools.links
        if draft.spec.links == "numbered" and draft.spec.managed:
            numbers = self.numbers.pairs("link", network, ids, ("pools", "links"))
        for link_id, uplink in zip(ids, draft.uplinks, strict=True):
            spine_address, leaf_address = pair(network, numbers[link_id]) if numbers else ("", "")
            self._add(self._fabric_link(draft, link_id, uplink, leaf_address, spine_address))

    def _fabric_link(self, draft: FabricDraft, link_id: str, uplink: Uplink, near: str, far: str) -> Link:
        length = self.site.cables.leaf_spine
        return Link(
            id=link_id,
            cable=0,
            fabric=draft.name,
            kind=FABRIC_LINK if draft.spec.managed else MANAGEMENT_LINK,
            a=End(uplink.leaf.name, uplink.leaf_port.name, uplink.leaf_port.interface, near),
            b=End(uplink.spine.name, uplink.spine_port.name, uplink.spine_port.interface, far),
            speed=uplink.leaf_port.speed,
            length_m=length,
            medium=medium(self.media, uplink.leaf_port.speed, length),
        )

    def _gateway_links(self) -> None:
        placed = [
            (draft, item)
            for draft in self.builder.fabrics.values()
            for item in draft.placed
            if item.want.group.startswith("gateway ")
        ]
        network = self.site.pools.gateway_links
        ids = [item.leaf.used[item.port.name] for _, item in placed]
        numbers = self.numbers.pairs("gateway-link", network, ids, ("pools", "gateway_links"))
        vlans = self._gateway_vlans([item for _, item in placed])
        for link_id, (draft, item) in zip(ids, placed, strict=True):
            far, near = pair(network, numbers[link_id])
            length = self.site.cables.gateway
            self._add(self._link(draft.name, GATEWAY_LINK, item, near, far, length, vlan=vlans.get(link_id, 0)))

    def _gateway_vlans(self, placed: list[Placed]) -> dict[str, int]:
        """Access VLANs for gateway links on switches whose ASIC cannot hold the /31 on the port."""
        by_switch: dict[str, list[str]] = {}
        for item in placed:
            if item.leaf.ports.profile.gateway_link_on_vlan:
                by_switch.setdefault(item.leaf.name, []).append(item.leaf.used[item.port.name])
        found: dict[str, int] = {}
        for switch, ids in by_switch.items():
            found |= self.numbers.range(f"gateway-vlan/{switch}", "gateway_vlans", ids)
        return found

    def _external_links(self) -> None:
        edge = self.site.edge
        if not edge or not self.site.gateways:
            return
        wanted = [
            (class_name, gateway, f"ex{e * spec.external + k}", edge_name, spec.external_speed)
            for class_name, spec in self.site.gateways.items()
            for gateway in gateway_names(class_name, spec)
            for e, edge_name in enumerate(edge_names(edge))
            for k in range(spec.external)
        ]
        keys = [f"{gateway}:{port}" for _, gateway, port, _, _ in wanted]
        numbers = self.numbers.pairs("edge-link", edge.links, keys, ("edge", "links"))
        places: dict[str, int] = {}
        for name in edge_names(edge):
            mine = [key for key, (*_, edge_name, _) in zip(keys, wanted, strict=True) if edge_name == name]
            self.numbers.means(f"edge-port/{name}", lambda number: f"eth{number + 1}")
            places |= self.numbers.take(f"edge-port/{name}", mine, len(keys) + _SPARE_EDGE_PORTS, ("edge",))
        for key, (class_name, gateway, port, edge_name, speed) in zip(keys, wanted, strict=True):
            far, near = pair(edge.links, numbers[key])
            far_port = f"eth{places[key] + 1}"
            fabric = gateway_fabric(self.builder.inventory, self.site.gateways[class_name]) or ""
            length = self.site.cables.external
            self._add(
                Link(
                    id=f"{key}--{edge_name}:{far_port}",
                    cable=0,
                    fabric=fabric,
                    kind=EXTERNAL_LINK,
                    a=End(gateway, port, port, near),
                    b=End(edge_name, far_port, far_port, far),
                    speed=speed,
                    length_m=length,
                    medium=medium(self.media, speed, length),
                )
            )
            if edge_name not in self.edges:
                self.edges[edge_name] = EdgeRouter(edge_name, edge.asn, far.partition("/")[0])

    # ------------------------------------------------------------------ devices

    def _switches(self) -> None:
        drafts = [(fabric, draft) for fabric in self.builder.fabrics.values() for draft in fabric.switches]
        managed = [(f, d) for f, d in drafts if f.spec.managed]
        names = [draft.name for _, draft in managed]
        loopbacks = self.numbers.addresses("loopback", "loopbacks", [*names, *self._gateway_names()])
        leaves = [draft.name for _, draft in managed if draft.kind not in ABOVE_LEAVES]
        vteps = self.numbers.addresses("vtep", "vteps", [*leaves, *self._gateway_names()])
        every = [draft.name for _, draft in drafts]
        self.management = self.numbers.addresses(
            "management", "management", [*every, *self._gateway_names(), *self._managed_servers()]
        )
        length = self.site.pools.management.prefixlen
        above = dict.fromkeys(_spine_asn_key(f, d) for f, d in drafts if d.kind in ABOVE_LEAVES)
        spine_asns = self.numbers.range("spine-asn", "spine_asn", above)
        own_asn = {name for f, d in managed for name in [d.name] if (spec := switch_spec(f.spec, d.kind)) and spec.asn}
        asns = self.numbers.range("leaf-asn", "leaf_asn", [n for n in leaves if n not in own_asn])
        self.loopbacks, self.vteps, self.spine_asns = loopbacks, vteps, spine_asns
        for fabric, draft in drafts:
            spec = switch_spec(fabric.spec, draft.kind)
            assert spec
            shared = draft.kind in ABOVE_LEAVES
            asn = spine_asns[_spine_asn_key(fabric, draft)] if shared else asns.get(draft.name, 0)
            if spec.asn:
                asn = spec.asn if shared else spec.asn + draft.index
            profile = draft.ports.profile
            self.switches[draft.name] = Switch(
                name=draft.name,
                kind=draft.kind,
                fabric=fabric.name,
                model=profile.model,
                nos=spec.nos or profile.nos,
                asn=asn if fabric.spec.managed else 0,
                router_id=loopbacks.get(draft.name, ""),
                vtep=vteps.get(draft.name, ""),
                management=f"{self.management[draft.name]}/{length}",
                mac=self._mac(draft.name),
                ports=_ports(draft),
                breakouts=draft.ports.breakouts,
                vrfs=self._present(draft.name, fabric.name),
                managed=fabric.spec.managed,
                rack=self.builder.racks.get(draft.name, ""),
                index=draft.index,
                pod=draft.pod,
            )

    def _mac(self, device: str, *purpose: str) -> str:
        return stable_mac(self.site.site, identity_of(self.builder.ledger, device), *purpose)

    def _present(self, leaf: str, fabric: str) -> tuple[str, ...]:
        """The VRFs of a leaf: tenants with ports there, and their peers', whose routes are leaked on the spot."""
        home = self._vrfs.get(leaf, set())
        peers = {peer for tenant in home for peer in self.builder.peers[tenant] if (peer, fabric) in self.builder.books}
        return tuple(f"Vrf-{tenant}" for tenant in self.site.tenants if tenant in home | peers)

    def _gateway_names(self) -> list[str]:
        return [name for cls, spec in self.site.gateways.items() for name in gateway_names(cls, spec)]

    def _managed_servers(self) -> list[str]:
        """Servers with a port in a management network get an address there."""
        fabrics = self._management_fabrics()
        return [server for server, by_fabric in self.builder.ports_of.items() if fabrics & set(by_fabric)]

    def _management_fabrics(self) -> set[str]:
        return {n for n, f in self.site.fabrics.items() if {"inband", "oob"} & set(f.carries)}

    def _answered_by_bmc(self, ports: Iterable[ServerPort]) -> bool:
        """Whether only the board's controller is there: who logs in to the address does not reach the server."""
        fabrics = self._management_fabrics()
        return all(nic_models()[port.model].bmc for port in ports if port.fabric in fabrics)

    def _servers(self) -> None:
        owner = self.builder.members.owner
        services: dict[str, list[ServiceAddress]] = {}
        for (tenant, fabric), book in self.builder.books.items():
            if book.service:
                for member in self.builder.blocks[tenant, fabric]:
                    address = book.service_address(member.server)
                    services.setdefault(member.server, []).append(ServiceAddress(tenant, fabric, address))
        length = self.site.pools.management.prefixlen
        for class_name, spec in self.site.servers.items():
            kind = spec.kind or _KINDS.get(class_name, "other")
            xpus = spec.xpus if spec.xpus is not None else (_DEFAULT_XPUS if kind == "compute" else 0)
            for index, name in enumerate(server_names(class_name, spec)):
                ports = []
                for fabric, found in self.builder.ports_of[name].items():
                    for port in found:
                        link, address, gateway = self._ports.get((name, port.name), ("", "", ""))
                        ports.append(
                            ServerPort(
                                port.name, port.nic, port.model, port.speed, fabric, port.rail, link,
                                owner.get((name, port.name), ""), address, gateway, port.rdma,
                            )
                        )  # fmt: skip
                address = f"{self.management[name]}/{length}" if name in self.management else ""
                of_bmc = self._answered_by_bmc(ports)
                self.servers[name] = Server(
                    name=name,
                    server_class=class_name,
                    kind=kind,
                    index=index,
                    xpus=xpus,
                    ports=tuple(ports),
                    services=tuple(services.get(name, ())),
                    management="" if of_bmc else address,
                    rack=self.builder.racks.get(name, ""),
                    bmc=address if of_bmc else "",
                )

    def _gateways(self) -> None:
        length = self.site.pools.management.prefixlen
        groups = self.builder.groups
        for class_name, spec in self.site.gateways.items():
            nic_count, nic = parse_nic(spec.nic)
            for name in gateway_names(class_name, spec):
                mine = [link for link in self.links.values() if link.a.device == name]
                self.gateways[name] = Gateway(
                    name=name,
                    gateway_class=class_name,
                    fabric=gateway_fabric(self.builder.inventory, spec) or "",
                    asn=self.site.pools.gateway_asn,
                    router_id=self.loopbacks[name],
                    vtep=self.vteps[name],
                    router_mac=self._mac(name, "rmac"),
                    management=f"{self.management[name]}/{length}",
                    uplinks=tuple(link.id for link in mine if link.kind == GATEWAY_LINK),
                    externals=tuple(link.id for link in mine if link.kind == EXTERNAL_LINK),
                    ranks={group: members.index(name) for group, members in groups.items() if name in members},
                    tenants=(),
                    health_interval_s=spec.health_interval,
                    health_failures=spec.health_failures,
                    drain_deadline_s=spec.drain_deadline,
                    conntrack_max=spec.conntrack_max,
                    rack=self.builder.racks.get(name, ""),
                    nic=nic,
                    nic_count=nic_count,
                )

    def _fabrics(self) -> None:
        by_fabric: dict[str, set[tuple[int, int]]] = {}
        for link in self.links.values():
            if link.kind in (FABRIC_LINK, SERVER_LINK):
                by_fabric.setdefault(link.fabric, set()).add((link.speed, link.length_m))
        for name, draft in self.builder.fabrics.items():
            spec = draft.spec
            qos = None
            if spec.managed and "backend" in spec.carries and self.site.profile == "distributed":
                profiles = [switch.ports.profile for switch in draft.switches]
                ports = by_fabric.get(name, set())
                qos = build_qos(self.builder.inventory, name, profiles, ports, self.builder.problems)
            self.fabric_plans[name] = Fabric(
                name=name,
                carries=tuple(spec.carries),
                managed=spec.managed,
                placement=spec.placement,
                numbered=spec.links == "numbered",
                mtu=spec.mtu,
                server_mtu=spec.server_mtu,
                spine_asn=self.spine_asns.get(name, 0),
                max_paths=spec.max_paths,
                qos=qos,
            )


def _ports(draft: Draft) -> tuple[Port, ...]:
    """The switch's ports with what uses them; unused ones are shared between all switches of the class."""
    zone_of = {port.name: zone for (zone, _), ports in draft.ports.zones.items() for port in ports}
    return tuple(
        replace(port, zone=zone_of.get(port.name, ""), link=draft.used.get(port.name, "")) for port in draft.ports.ports
    )


def _spine_asn_key(fabric: FabricDraft, draft: Draft) -> str:
    """Switches with one key share an AS: the spines of a fabric or, with three tiers, those of a pod (RFC 7938)."""
    return f"{fabric.name}/pod-{draft.pod}" if fabric.supers and draft.kind == SPINE else fabric.name


if TYPE_CHECKING:
    from fabric.plan import Port
