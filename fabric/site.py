"""The site builder: runs the rooms in order and puts their answers together into a `Plan`."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.allocation.ledger import PoolExhaustedError
from fabric.allocation.numbers import Numbers
from fabric.allocation.renames import rename_devices
from fabric.gateway.context import ExposureContext
from fabric.gateway.targets import default_route_target
from fabric.hardware.ranges import expand_hosts
from fabric.inventory.own_tables import OwnTables
from fabric.plan import (
    Exposure,
    Fabric,
    Gateway,
    GatewayGroup,
    Link,
    Plan,
    PoolUse,
    Server,
    Subnet,
    Switch,
    Tenant,
)
from fabric.problem import Severity
from fabric.qos.build import check_roce
from fabric.tenancy.members import AddressBook, Member, assign, peer_overlaps, peerings, subnet_of
from fabric.topology.fabrics import (
    FabricDraft,
    NicPort,
    build_fabric,
    gateway_fabric,
    gateway_names,
    gateway_wants,
    nic_ports,
    server_names,
)
from fabric.wellformed import SiteChecks, infrastructure

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.inventory.load import Inventory, Path_
    from fabric.problem import Problem

VRF_PREFIX = "Vrf-"
# errors that leave a tenant without some of its servers or addresses
_MEMBERSHIP = frozenset(
    {"tenant.server", "tenant.nic", "tenant.claimed", "tenant.subnet", "pools.exhausted", "pools.block"}
)


class SiteBuilder:
    """Builds one plan; afterwards `problems` holds everything found, warnings included."""

    def __init__(self, inventory: Inventory, ledger: Ledger) -> None:
        self.inventory, self.site, self.ledger = inventory, inventory.site, ledger
        self.problems: list[Problem] = []
        self.fabrics: dict[str, FabricDraft] = {}
        self.racks: dict[str, str] = {}
        self.numbers = Numbers(inventory, ledger, self.problems)
        self.checks = SiteChecks(inventory, self.problems)

    def build(self) -> Plan | None:
        """Return the plan, or None when errors prevent one."""
        rename_devices(self.site, self.ledger)
        self.checks.references()
        self.racks = self.checks.racks()
        unbuildable = self._failed()
        self.checks.group_members(self.groups)
        check_roce(self.inventory, self.problems)
        self.peers = peerings(self.inventory, self.problems)
        if unbuildable:
            return None
        for name in self.site.fabrics:
            draft = build_fabric(self.inventory, name, self.ledger, gateway_wants(self.inventory, name), self.problems)
            if draft:
                self.fabrics[name] = draft
        self.checks.names(self.fabrics)
        self._build_tenants()
        exposures = self._exposures()
        if self._failed():
            return None
        from fabric.devices import DeviceBuilder

        devices = DeviceBuilder(self)
        devices.build()
        if self._failed():
            return None
        links, switches, servers, gateways = devices.links, devices.switches, devices.servers, devices.gateways
        self.checks.as_numbers(switches)
        self.own_tables = OwnTables(self.inventory, switches.values(), self.problems).by_scope
        return self._plan(devices.fabric_plans, switches, servers, gateways, links, devices, exposures)

    def _failed(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def _bad(self, rule: str, path: Path_, subject: str, text: str, fix: str) -> None:
        self.problems.append(self.inventory.problem(rule, path, subject, text, fix))

    # ------------------------------------------------------------------ tenants

    def _build_tenants(self) -> None:
        site = self.site
        ports_of: dict[str, dict[str, tuple[NicPort, ...]]] = {}
        for class_name, spec in site.servers.items():
            by_fabric: dict[str, tuple[NicPort, ...]] = {}
            for group, nic in spec.nics.items():
                fabric = site.fabrics[nic.fabric]
                try:
                    ports = nic_ports(group, nic, "backend" in fabric.carries)
                except KeyError:
                    continue
                by_fabric[nic.fabric] = (*by_fabric.get(nic.fabric, ()), *ports)
            for server in server_names(class_name, spec):
                ports_of[server] = by_fabric
        self.ports_of = ports_of
        # ports in unmanaged fabrics are cabled only: they are nobody's
        managed = {
            server: {f: p for f, p in by_fabric.items() if site.fabrics[f].managed}
            for server, by_fabric in ports_of.items()
        }
        self.members = assign(self.inventory, managed, self.problems)
        self.blocks: dict[tuple[str, str], list[Member]] = {}
        for member in self.members.blocks:
            self.blocks.setdefault((member.tenant, member.fabric), []).append(member)
        self.subnets: dict[str, dict[str, Subnet]] = {}
        self.books: dict[tuple[str, str], AddressBook] = {}
        for tenant in site.tenants:
            fabrics = [fabric for fabric in site.fabrics if (tenant, fabric) in self.blocks]
            self.subnets[tenant] = subnet_of(self.inventory, tenant, fabrics, self.problems)
            self._check_subnets(tenant)
            for name in self.subnets[tenant]:
                self._addresses(tenant, name)
        flat = {tenant: tuple(by_fabric.values()) for tenant, by_fabric in self.subnets.items()}
        peer_overlaps(self.inventory, self.peers, flat, self.problems)

    def _check_subnets(self, tenant: str) -> None:
        for subnet in self.subnets[tenant].values():
            network = IPv4Network(subnet.prefix)
            path = ("tenants", tenant, "subnets", subnet.name)
            for name, pool in infrastructure(self.site):
                if network.overlaps(pool):
                    text = f"{subnet.prefix} overlaps the site's own {name} {pool}"
                    self._bad("tenant.overlap", path, f"tenant {tenant}", text, "move one of them")

    def has_service(self, fabric: str) -> bool:
        """Whether servers answer on a service address in this fabric."""
        return bool({"frontend", "storage"} & set(self.site.fabrics[fabric].carries))

    def _addresses(self, tenant: str, fabric: str) -> None:
        subnet = self.subnets[tenant][fabric]
        book = AddressBook(subnet.prefix, tenant, fabric, self.ledger, self.has_service(fabric))
        path = ("tenants", tenant, "subnets", subnet.name)
        was = self.site.tenants[tenant].was
        if was and f"tenant/{was}/{fabric}" in self.ledger.pools:
            self.ledger.pools.setdefault(book.pool, self.ledger.pools.pop(f"tenant/{was}/{fabric}"))
            block = self.ledger.pools.get("constant/block", {}).pop(f"tenant/{was}/{fabric}", None)
            if block:
                self.ledger.pools["constant/block"].setdefault(book.pool, block)
        try:
            book.allocate(self.blocks[tenant, fabric])
        except PoolExhaustedError as error:
            text = f"{subnet.prefix} is too small: {error.text} (blocks of {book.block} addresses)"
            self._bad("pools.exhausted", path, f"tenant {tenant}", text, "use a larger subnet")
            return
        except ValueError as error:
            self._bad("pools.block", path, f"tenant {tenant}", str(error), f"give fabric {fabric} a new subnet")
            return
        self.books[tenant, fabric] = book
        self.numbers.means(book.pool, book.block_prefix)

    # ------------------------------------------------------------------ the plan

    def _exposures(self) -> dict[str, tuple[Exposure, ...]]:
        """Resolve what tenants show; not when it is unclear who is in them, which would be told a second time."""
        unclear = any(p.severity is Severity.ERROR and p.rule in _MEMBERSHIP for p in self.problems)
        if unclear or not any(tenant.expose for tenant in self.site.tenants.values()):
            return {}
        from fabric.gateway.exposures import resolve_exposures

        fabrics = {gateway_fabric(self.inventory, spec) for spec in self.site.gateways.values()}
        services: dict[str, dict[str, str]] = {}
        for (tenant, fabric), book in self.books.items():
            if fabric in fabrics and book.service:
                for member in self.blocks[tenant, fabric]:
                    services.setdefault(tenant, {})[member.server] = book.service_address(member.server)
        context = ExposureContext(
            subnets={t: tuple(s for f, s in by.items() if f in fabrics) for t, by in self.subnets.items()},
            services=services,
            groups=self.groups,
            idle_timeout_s={
                group: next(
                    (
                        spec.idle_timeout
                        for name, spec in self.site.gateways.items()
                        if members[0].startswith(f"{name}-")
                    ),
                    120,
                )
                for group, members in self.groups.items()
            },
            infrastructure=tuple(infrastructure(self.site)),
        )
        exposures, problems = resolve_exposures(self.inventory, self.ledger, context)
        self.problems += problems
        return exposures

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Gateway groups as written, else one group `default` with every gateway in order."""
        if self.site.groups:
            return {
                name: tuple(h for p in patterns for h in expand_hosts(p)) for name, patterns in self.site.groups.items()
            }
        everyone = tuple(gateway for name, spec in self.site.gateways.items() for gateway in gateway_names(name, spec))
        return {"default": everyone} if everyone else {}

    def _plan(
        self,
        fabrics: dict[str, Fabric],
        switches: dict[str, Switch],
        servers: dict[str, Server],
        gateways: dict[str, Gateway],
        links: dict[str, Link],
        devices: DeviceBuilder,
        exposures: dict[str, tuple[Exposure, ...]],
    ) -> Plan:
        tenants = self._tenants(exposures)
        served = {
            name: tuple(
                t.name for t in tenants.values() if any(name in self.groups.get(e.group, ()) for e in t.exposures)
            )
            for name in gateways
        }
        return Plan(
            site=self.site.site,
            profile=self.site.profile,
            fabrics=fabrics,
            switches=switches,
            servers=servers,
            gateways={name: replace(gateway, tenants=served[name]) for name, gateway in gateways.items()},
            groups={name: GatewayGroup(name, members) for name, members in self.groups.items()},
            edges=devices.edges,
            links=links,
            tenants=tenants,
            pools=self._pool_uses(),
            rt_asn=self.site.pools.rt_asn,
            settings={
                **self.site.services.settings(),
                **self._management_gateway(),
                "media": self.site.cables.reach,
                "racks": {name: {"row": r.row, "position": r.position} for name, r in self.site.racks.items()},
                **({"config_db": self.own_tables} if self.own_tables else {}),
            },
        )

    def _management_gateway(self) -> dict[str, str]:
        said = self.site.pools.management_gateway
        return {"management_gateway": str(said)} if said else {}

    def _tenants(self, exposures: dict[str, tuple[Exposure, ...]]) -> dict[str, Tenant]:
        numbers = self.numbers.tenants
        asn = self.site.pools.rt_asn
        rts = {name: f"{asn}:{n.vni}" for name, n in numbers.items()}
        ports: dict[str, list[str]] = {}
        for (server, port), tenant in self.members.owner.items():
            ports.setdefault(tenant, []).append(f"{server}:{port}")
        return {
            name: Tenant(
                name=name,
                vrf=f"{VRF_PREFIX}{name}",
                vni=numbers[name].vni,
                vlan=numbers[name].vlan,
                rd_number=numbers[name].number,
                rt=rts[name],
                imports=(rts[name], default_route_target(rts[name])),
                peers=self.peers[name],
                service=spec.service,
                subnets=tuple(self.subnets[name].values()),
                ports=tuple(ports.get(name, ())),
                exposures=exposures.get(name, ()),
            )
            for name, spec in self.site.tenants.items()
        }

    def _pool_uses(self) -> tuple[PoolUse, ...]:
        uses = list(self.numbers.uses())
        for (tenant, fabric), book in sorted(self.books.items()):
            size = book.network.num_addresses // book.block
            name = f"tenant {tenant} {fabric} (blocks of {book.block})"
            uses.append(PoolUse(name, str(book.network), len(self.ledger.pools.get(book.pool, {})), size))
        return tuple(uses)


if TYPE_CHECKING:
    from fabric.devices import DeviceBuilder
