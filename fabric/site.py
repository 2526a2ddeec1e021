"""The site builder: runs the rooms in order and puts their answers together into a `Plan`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fabric.allocation.numbers import Numbers
from fabric.allocation.renames import rename_devices
from fabric.devices import DeviceBuilder
from fabric.drafts import Drafts
from fabric.gateway.context import ExposureContext
from fabric.gateway.targets import default_route_target
from fabric.hardware.ranges import expand_hosts
from fabric.inventory.own_tables import OwnTables
from fabric.links import LinkBuilder
from fabric.plan import Exposure, GatewayGroup, Plan, PoolUse, Tenant
from fabric.problem import Severity
from fabric.qos.build import check_roce
from fabric.tenancy.build import TenancyBuilder, vrf_of
from fabric.tenancy.members import peerings
from fabric.topology.fabrics import FabricDraft, build_fabric, gateway_fabric, gateway_names, gateway_wants
from fabric.wellformed import SiteChecks, infrastructure

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.devices import Devices
    from fabric.inventory.load import Inventory
    from fabric.links import Links
    from fabric.problem import Problem
    from fabric.tenancy.build import Tenancy

_IDLE_TIMEOUT_S = 120
# errors that leave a tenant without some of its servers or addresses
_MEMBERSHIP = frozenset(
    {"tenant.server", "tenant.nic", "tenant.claimed", "tenant.subnet", "pools.exhausted", "pools.block"}
)


class SiteBuilder:
    """Builds one plan; afterwards `problems` holds everything found, warnings included."""

    def __init__(self, inventory: Inventory, ledger: Ledger) -> None:
        self.inventory, self.site, self.ledger = inventory, inventory.site, ledger
        self.problems: list[Problem] = []
        self.numbers = Numbers(inventory, ledger, self.problems)
        self.checks = SiteChecks(inventory, self.problems)

    def build(self) -> Plan | None:
        """Return the plan, or None when errors prevent one."""
        rename_devices(self.site, self.ledger)
        self.checks.references()
        racks = self.checks.racks()
        unbuildable = self._failed()
        groups = self._groups()
        self.checks.group_members(groups)
        check_roce(self.inventory, self.problems)
        peers = peerings(self.inventory, self.problems)
        if unbuildable:
            return None
        fabrics = self._fabrics()
        self.checks.names(fabrics)
        tenancy = TenancyBuilder(self.inventory, self.ledger, self.numbers, self.problems).build(peers)
        drafts = Drafts(self.inventory, self.ledger, fabrics, racks, groups, tenancy)
        exposures = self._exposures(drafts)
        if self._failed():
            return None
        links = LinkBuilder(drafts, self.numbers).build()
        devices = DeviceBuilder(drafts, links, self.numbers, self.problems).build()
        if self._failed():
            return None
        self.checks.as_numbers(devices.switches)
        own_tables = OwnTables(self.inventory, devices.switches.values(), self.problems).by_scope
        return self._plan(drafts, links, devices, self._tenants(tenancy, exposures), own_tables)

    def _failed(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def _fabrics(self) -> dict[str, FabricDraft]:
        found = {}
        for name in self.site.fabrics:
            draft = build_fabric(self.inventory, name, self.ledger, gateway_wants(self.inventory, name), self.problems)
            if draft:
                found[name] = draft
        return found

    def _groups(self) -> dict[str, tuple[str, ...]]:
        """Gateway groups as written, else one group `default` with every gateway in order."""
        if self.site.groups:
            return {
                name: tuple(h for p in patterns for h in expand_hosts(p)) for name, patterns in self.site.groups.items()
            }
        everyone = tuple(gateway for name, spec in self.site.gateways.items() for gateway in gateway_names(name, spec))
        return {"default": everyone} if everyone else {}

    def _exposures(self, drafts: Drafts) -> dict[str, tuple[Exposure, ...]]:
        """Resolve what tenants show; not when it is unclear who is in them, which would be told a second time."""
        unclear = any(p.severity is Severity.ERROR and p.rule in _MEMBERSHIP for p in self.problems)
        if unclear or not any(tenant.expose for tenant in self.site.tenants.values()):
            return {}
        from fabric.gateway.exposures import resolve_exposures

        fabrics = {gateway_fabric(self.inventory, spec) for spec in self.site.gateways.values()}
        services: dict[str, dict[str, str]] = {}
        for tenant, fabric, server, address in drafts.tenancy.services():
            if fabric in fabrics:
                services.setdefault(tenant, {})[server] = address
        context = ExposureContext(
            subnets={t: tuple(s for f, s in by.items() if f in fabrics) for t, by in drafts.tenancy.subnets.items()},
            services=services,
            groups=drafts.groups,
            idle_timeout_s={group: self._idle_timeout(gateways[0]) for group, gateways in drafts.groups.items()},
            infrastructure=tuple(infrastructure(self.site)),
        )
        exposures, problems = resolve_exposures(self.inventory, self.ledger, context)
        self.problems += problems
        return exposures

    def _idle_timeout(self, gateway: str) -> int:
        """The default of a gateway's class, in seconds."""
        classes = self.site.gateways.items()
        return next((spec.idle_timeout for name, spec in classes if gateway.startswith(f"{name}-")), _IDLE_TIMEOUT_S)

    # ------------------------------------------------------------------ the plan

    def _plan(
        self,
        drafts: Drafts,
        links: Links,
        devices: Devices,
        tenants: dict[str, Tenant],
        own_tables: dict[str, dict[str, dict[str, Any]]],
    ) -> Plan:
        groups = drafts.groups
        served = {
            name: tuple(t.name for t in tenants.values() if any(name in groups.get(e.group, ()) for e in t.exposures))
            for name in devices.gateways
        }
        return Plan(
            site=self.site.site,
            profile=self.site.profile,
            fabrics=devices.fabrics,
            switches=devices.switches,
            servers=devices.servers,
            gateways={name: replace(gateway, tenants=served[name]) for name, gateway in devices.gateways.items()},
            groups={name: GatewayGroup(name, gateways) for name, gateways in groups.items()},
            edges=links.edges,
            links=links.by_id,
            tenants=tenants,
            pools=self._pool_uses(drafts.tenancy),
            rt_asn=self.site.pools.rt_asn,
            settings={
                **self.site.services.settings(),
                **self._management_gateway(),
                "media": self.site.cables.reach,
                "racks": {name: {"row": r.row, "position": r.position} for name, r in self.site.racks.items()},
                **({"config_db": own_tables} if own_tables else {}),
            },
        )

    def _management_gateway(self) -> dict[str, str]:
        said = self.site.pools.management_gateway
        return {"management_gateway": str(said)} if said else {}

    def _tenants(self, tenancy: Tenancy, exposures: dict[str, tuple[Exposure, ...]]) -> dict[str, Tenant]:
        numbers = self.numbers.tenants
        asn = self.site.pools.rt_asn
        rts = {name: f"{asn}:{n.vni}" for name, n in numbers.items()}
        ports: dict[str, list[str]] = {}
        for (server, port), tenant in tenancy.owner.items():
            ports.setdefault(tenant, []).append(f"{server}:{port}")
        return {
            name: Tenant(
                name=name,
                vrf=vrf_of(name),
                vni=numbers[name].vni,
                vlan=numbers[name].vlan,
                rd_number=numbers[name].number,
                rt=rts[name],
                imports=(rts[name], default_route_target(rts[name])),
                peers=tenancy.peers[name],
                service=spec.service,
                subnets=tuple(tenancy.subnets[name].values()),
                ports=tuple(ports.get(name, ())),
                exposures=exposures.get(name, ()),
            )
            for name, spec in self.site.tenants.items()
        }

    def _pool_uses(self, tenancy: Tenancy) -> tuple[PoolUse, ...]:
        uses = list(self.numbers.uses())
        for (tenant, fabric), book in sorted(tenancy.books.items()):
            size = book.network.num_addresses // book.block
            name = f"tenant {tenant} {fabric} (blocks of {book.block})"
            uses.append(PoolUse(name, str(book.network), len(self.ledger.pools.get(book.pool, {})), size))
        return tuple(uses)
