"""Cables of the plan, from the filled fabrics: every link with its ends, addresses, speed, length and medium."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.allocation.addresses import pair
from fabric.allocation.cables import number_cables
from fabric.plan import (
    EXTERNAL_LINK,
    FABRIC_LINK,
    GATEWAY_LINK,
    MANAGEMENT_LINK,
    SERVER_LINK,
    EdgeRouter,
    End,
    Link,
)
from fabric.topology.fabrics import edge_names, gateway_fabric, gateway_names
from fabric.topology.media import medium, one_medium_a_cage

if TYPE_CHECKING:
    from fabric.allocation.numbers import Numbers
    from fabric.drafts import Drafts
    from fabric.topology.fabrics import FabricDraft
    from fabric.topology.placement import Placed
    from fabric.topology.uplinks import Uplink

_SPARE_EDGE_PORTS = 10_000  # numbers of removed gateways are held


@dataclass(frozen=True, slots=True)
class Links:
    """All links by id, in plan order, and what they say of the devices at their ends."""

    by_id: dict[str, Link]
    edges: dict[str, EdgeRouter]
    ports: dict[tuple[str, str], tuple[str, str, str]]  # (server, port) -> link id, address, gateway
    tenants_of: dict[str, set[str]]  # leaf -> tenants with ports there


class LinkBuilder:
    """Makes the links of drafts; takes their numbers."""

    def __init__(self, drafts: Drafts, numbers: Numbers) -> None:
        self.drafts, self.site, self.numbers = drafts, drafts.site, numbers
        self.media = self.site.cables.reach
        self.links: dict[str, Link] = {}
        self.edges: dict[str, EdgeRouter] = {}
        self._ports: dict[tuple[str, str], tuple[str, str, str]] = {}
        self._tenants_of: dict[str, set[str]] = {}
        self._positions: dict[tuple[str, str, str], int] = {}

    def build(self) -> Links:
        """Return all of them."""
        self._port_positions()
        for draft in self.drafts.fabrics.values():
            self._server_links(draft)
        for draft in self.drafts.fabrics.values():
            self._fabric_links(draft)
        self._gateway_links()
        self._external_links()
        links = one_medium_a_cage(self.links.values(), self.media)
        number_cables(links, self.numbers)
        return Links(links, self.edges, self._ports, self._tenants_of)

    def _add(self, link: Link) -> None:
        self.links[link.id] = link

    def _port_positions(self) -> None:
        """Where each port stands in its member block: ports that are RDMA-only never carry the service address."""
        for members in self.drafts.tenancy.blocks.values():
            for member in members:
                for index, port in enumerate(member.ports):
                    self._positions[member.server, member.fabric, port.name] = index

    def _server_links(self, draft: FabricDraft) -> None:
        books, owner, name = self.drafts.tenancy.books, self.drafts.tenancy.owner, draft.name
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
                self._tenants_of.setdefault(placed.leaf.name, set()).add(tenant)
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
            for draft in self.drafts.fabrics.values()
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
            fabric = gateway_fabric(self.drafts.inventory, self.site.gateways[class_name]) or ""
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
