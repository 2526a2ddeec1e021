"""Devices of the plan, from the filled fabrics and their links: switches, servers, gateways; and the fabrics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fabric.allocation.addresses import stable_mac
from fabric.allocation.renames import identity_of
from fabric.hardware.profiles import nic_models
from fabric.plan import (
    ABOVE_LEAVES,
    EXTERNAL_LINK,
    FABRIC_LINK,
    GATEWAY_LINK,
    SERVER_LINK,
    SPINE,
    Fabric,
    Gateway,
    Server,
    ServerPort,
    ServiceAddress,
    Switch,
)
from fabric.qos.build import build_qos
from fabric.tenancy.build import vrf_of
from fabric.topology.fabrics import gateway_fabric, gateway_names, parse_nic, server_names, switch_spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.allocation.numbers import Numbers
    from fabric.drafts import Drafts
    from fabric.inventory.models import SwitchClass
    from fabric.links import Links
    from fabric.plan import Port, Qos
    from fabric.problem import Problem
    from fabric.topology.fabrics import FabricDraft
    from fabric.topology.switches import Draft

_KINDS = {"compute": "compute", "storage": "storage", "metadata": "metadata"}
_DEFAULT_XPUS = 8


@dataclass(frozen=True, slots=True)
class Devices:
    """The plan's devices by name, in plan order, and its fabrics."""

    fabrics: dict[str, Fabric]
    switches: dict[str, Switch]
    servers: dict[str, Server]
    gateways: dict[str, Gateway]


class DeviceBuilder:
    """Turns drafts and their links into the plan's frozen devices; what is wrong is added to `problems`."""

    def __init__(self, drafts: Drafts, links: Links, numbers: Numbers, problems: list[Problem]) -> None:
        self.drafts, self.site, self.tenancy = drafts, drafts.site, drafts.tenancy
        self.links, self.numbers, self.problems = links, numbers, problems
        self.every = [(fabric, draft) for fabric in drafts.fabrics.values() for draft in fabric.switches]
        self.gateway_names = [
            name for class_name, spec in self.site.gateways.items() for name in gateway_names(class_name, spec)
        ]
        self._take_numbers()

    def build(self) -> Devices:
        """Return everything."""
        switches, servers, gateways = self._switches(), self._servers(), self._gateways()
        return Devices(self._fabrics(), switches, servers, gateways)

    def _take_numbers(self) -> None:
        managed = [(fabric, draft) for fabric, draft in self.every if fabric.spec.managed]
        names = [draft.name for _, draft in managed]
        leaves = [draft.name for _, draft in managed if draft.kind not in ABOVE_LEAVES]
        self.loopbacks = self.numbers.addresses("loopback", "loopbacks", [*names, *self.gateway_names])
        self.vteps = self.numbers.addresses("vtep", "vteps", [*leaves, *self.gateway_names])
        every = [draft.name for _, draft in self.every]
        self.management = self.numbers.addresses(
            "management", "management", [*every, *self.gateway_names, *self._managed_servers()]
        )
        above = dict.fromkeys(_spine_asn_key(f, d) for f, d in self.every if d.kind in ABOVE_LEAVES)
        self.spine_asns = self.numbers.range("spine-asn", "spine_asn", above)
        own_asn = {draft.name for fabric, draft in managed if _spec(fabric, draft).asn}
        self.asns = self.numbers.range("leaf-asn", "leaf_asn", [name for name in leaves if name not in own_asn])

    def _managed(self, name: str) -> str:
        """A device's management address with length, empty when it has none."""
        length = self.site.pools.management.prefixlen
        return f"{self.management[name]}/{length}" if name in self.management else ""

    def _switches(self) -> dict[str, Switch]:
        return {draft.name: self._switch(fabric, draft) for fabric, draft in self.every}

    def _switch(self, fabric: FabricDraft, draft: Draft) -> Switch:
        spec, profile = _spec(fabric, draft), draft.ports.profile
        shared = draft.kind in ABOVE_LEAVES
        asn = self.spine_asns[_spine_asn_key(fabric, draft)] if shared else self.asns.get(draft.name, 0)
        if spec.asn:
            asn = spec.asn if shared else spec.asn + draft.index
        return Switch(
            name=draft.name,
            kind=draft.kind,
            fabric=fabric.name,
            model=profile.model,
            nos=spec.nos or profile.nos,
            asn=asn if fabric.spec.managed else 0,
            router_id=self.loopbacks.get(draft.name, ""),
            vtep=self.vteps.get(draft.name, ""),
            management=self._managed(draft.name),
            mac=self._mac(draft.name),
            ports=_ports(draft),
            breakouts=draft.ports.breakouts,
            vrfs=self._present(draft.name, fabric.name),
            managed=fabric.spec.managed,
            rack=self.drafts.racks.get(draft.name, ""),
            index=draft.index,
            pod=draft.pod,
        )

    def _mac(self, device: str, *purpose: str) -> str:
        return stable_mac(self.site.site, identity_of(self.drafts.ledger, device), *purpose)

    def _present(self, leaf: str, fabric: str) -> tuple[str, ...]:
        """The VRFs of a leaf: tenants with ports there, and their peers', whose routes are leaked on the spot."""
        home, tenancy = self.links.tenants_of.get(leaf, set()), self.tenancy
        peers = {peer for tenant in home for peer in tenancy.peers[tenant] if (peer, fabric) in tenancy.books}
        return tuple(vrf_of(tenant) for tenant in self.site.tenants if tenant in home | peers)

    def _managed_servers(self) -> list[str]:
        """Servers with a port in a management network get an address there."""
        fabrics = self._management_fabrics()
        return [server for server, by_fabric in self.tenancy.ports_of.items() if fabrics & set(by_fabric)]

    def _management_fabrics(self) -> set[str]:
        return {n for n, f in self.site.fabrics.items() if {"inband", "oob"} & set(f.carries)}

    def _answered_by_bmc(self, ports: Iterable[ServerPort]) -> bool:
        """Whether only the board's controller is there: who logs in to the address does not reach the server."""
        fabrics = self._management_fabrics()
        return all(nic_models()[port.model].bmc for port in ports if port.fabric in fabrics)

    def _servers(self) -> dict[str, Server]:
        services: dict[str, list[ServiceAddress]] = {}
        for tenant, fabric, server, address in self.tenancy.services():
            services.setdefault(server, []).append(ServiceAddress(tenant, fabric, address))
        found = {}
        for class_name, spec in self.site.servers.items():
            kind = spec.kind or _KINDS.get(class_name, "other")
            xpus = spec.xpus if spec.xpus is not None else (_DEFAULT_XPUS if kind == "compute" else 0)
            for index, name in enumerate(server_names(class_name, spec)):
                ports = self._server_ports(name)
                of_bmc = self._answered_by_bmc(ports)
                found[name] = Server(
                    name=name,
                    server_class=class_name,
                    kind=kind,
                    index=index,
                    xpus=xpus,
                    ports=ports,
                    services=tuple(services.get(name, ())),
                    management="" if of_bmc else self._managed(name),
                    rack=self.drafts.racks.get(name, ""),
                    bmc=self._managed(name) if of_bmc else "",
                )
        return found

    def _server_ports(self, server: str) -> tuple[ServerPort, ...]:
        found = []
        for fabric, ports in self.tenancy.ports_of[server].items():
            for port in ports:
                link, address, gateway = self.links.ports.get((server, port.name), ("", "", ""))
                tenant = self.tenancy.owner.get((server, port.name), "")
                found.append(
                    ServerPort(
                        port.name, port.nic, port.model, port.speed, fabric, port.rail, link, tenant, address, gateway,
                        port.rdma,
                    )
                )  # fmt: skip
        return tuple(found)

    def _gateways(self) -> dict[str, Gateway]:
        found = {}
        for class_name, spec in self.site.gateways.items():
            nic_count, nic = parse_nic(spec.nic)
            for name in gateway_names(class_name, spec):
                mine = [link for link in self.links.by_id.values() if link.a.device == name]
                groups = {group: gateways for group, gateways in self.drafts.groups.items() if name in gateways}
                found[name] = Gateway(
                    name=name,
                    gateway_class=class_name,
                    fabric=gateway_fabric(self.drafts.inventory, spec) or "",
                    asn=self.site.pools.gateway_asn,
                    router_id=self.loopbacks[name],
                    vtep=self.vteps[name],
                    router_mac=self._mac(name, "rmac"),
                    management=self._managed(name),
                    uplinks=tuple(link.id for link in mine if link.kind == GATEWAY_LINK),
                    externals=tuple(link.id for link in mine if link.kind == EXTERNAL_LINK),
                    ranks={group: gateways.index(name) for group, gateways in groups.items()},
                    tenants=(),
                    health_interval_s=spec.health_interval,
                    health_failures=spec.health_failures,
                    drain_deadline_s=spec.drain_deadline,
                    conntrack_max=spec.conntrack_max,
                    rack=self.drafts.racks.get(name, ""),
                    nic=nic,
                    nic_count=nic_count,
                )
        return found

    def _fabrics(self) -> dict[str, Fabric]:
        return {
            name: Fabric(
                name=name,
                carries=tuple(draft.spec.carries),
                managed=draft.spec.managed,
                placement=draft.spec.placement,
                numbered=draft.spec.links == "numbered",
                mtu=draft.spec.mtu,
                server_mtu=draft.spec.server_mtu,
                spine_asn=self.spine_asns.get(name, 0),
                max_paths=draft.spec.max_paths,
                qos=self._qos(draft),
            )
            for name, draft in self.drafts.fabrics.items()
        }

    def _qos(self, draft: FabricDraft) -> Qos | None:
        spec = draft.spec
        if not (spec.managed and "backend" in spec.carries and self.site.profile == "distributed"):
            return None
        profiles = [switch.ports.profile for switch in draft.switches]
        cables = {
            (link.speed, link.length_m)
            for link in self.links.by_id.values()
            if link.fabric == draft.name and link.kind in (FABRIC_LINK, SERVER_LINK)
        }
        return build_qos(self.drafts.inventory, draft.name, profiles, cables, self.problems)


def _ports(draft: Draft) -> tuple[Port, ...]:
    """The switch's ports with what uses them; unused ones are shared between all switches of the class."""
    zone_of = {port.name: zone for (zone, _), ports in draft.ports.zones.items() for port in ports}
    return tuple(
        replace(port, zone=zone_of.get(port.name, ""), link=draft.used.get(port.name, "")) for port in draft.ports.ports
    )


def _spec(fabric: FabricDraft, draft: Draft) -> SwitchClass:
    spec = switch_spec(fabric.spec, draft.kind)
    assert spec  # a kind that the fabric does not have has no drafts
    return spec


def _spine_asn_key(fabric: FabricDraft, draft: Draft) -> str:
    """Switches with one key share an AS: the spines of a fabric or, with three tiers, those of a pod (RFC 7938)."""
    return f"{fabric.name}/pod-{draft.pod}" if fabric.supers and draft.kind == SPINE else fabric.name
