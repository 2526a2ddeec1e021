"""The site builder: runs the rooms in order and puts their answers together into a `Plan`."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.allocation.addresses import usable
from fabric.allocation.ledger import PoolExhaustedError
from fabric.allocation.numbers import Numbers
from fabric.gateway.context import ExposureContext
from fabric.hardware.ranges import expand_hosts
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
from fabric.tenancy.members import AddressBook, Member, assign, peer_overlaps, peerings, subnet_of
from fabric.topology.fabrics import (
    FabricDraft,
    NicPort,
    build_fabric,
    gateway_names,
    gateway_wants,
    nic_ports,
    server_names,
)

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.inventory.load import Inventory, Path_
    from fabric.problem import Problem

VRF_PREFIX = "Vrf-"


class SiteBuilder:
    """Builds one plan; afterwards `problems` holds everything found, warnings included."""

    def __init__(self, inventory: Inventory, ledger: Ledger) -> None:
        self.inventory, self.site, self.ledger = inventory, inventory.site, ledger
        self.problems: list[Problem] = []
        self.fabrics: dict[str, FabricDraft] = {}
        self.racks: dict[str, str] = {}
        self.numbers = Numbers(inventory, ledger, self.problems)

    def build(self) -> Plan | None:
        """Return the plan, or None when errors prevent one."""
        self._check_references()
        self._check_racks()
        if self._failed():
            return None
        for name in self.site.fabrics:
            draft = build_fabric(self.inventory, name, self.ledger, gateway_wants(self.inventory, name), self.problems)
            if draft:
                self.fabrics[name] = draft
        self._check_names()
        self._check_group_members()
        self._build_tenants()
        if self._failed():
            return None
        from fabric.devices import DeviceBuilder

        devices = DeviceBuilder(self)
        devices.build()
        if self._failed():
            return None
        links, switches, servers, gateways = devices.links, devices.switches, devices.servers, devices.gateways
        self._check_numbers_clash(switches)
        return self._plan(devices.fabric_plans, switches, servers, gateways, links, devices)

    def _failed(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    # ------------------------------------------------------------------ references and shapes

    def _bad(self, rule: str, path: Path_, subject: str, text: str, fix: str) -> None:
        self.problems.append(self.inventory.problem(rule, path, subject, text, fix))

    def _check_references(self) -> None:
        fabrics = self.site.fabrics
        known = f"fabrics here: {', '.join(fabrics)}"
        for name, server in self.site.servers.items():
            for group, nic in server.nics.items():
                if nic.fabric not in fabrics:
                    path: Path_ = ("servers", name, "nics", group, "fabric")
                    self._bad("inventory.fabric", path, f"servers {name}", f"no fabric '{nic.fabric}'", known)
        for name, gateway in self.site.gateways.items():
            if gateway.fabric and gateway.fabric not in fabrics:
                path = ("gateways", name, "fabric")
                self._bad("inventory.fabric", path, f"gateways {name}", f"no fabric '{gateway.fabric}'", known)
            elif not gateway.fabric and not any("frontend" in f.carries for f in fabrics.values()):
                text = "no fabric carries `frontend`, so there is nothing to attach to"
                self._bad("inventory.fabric", ("gateways", name), f"gateways {name}", text, "say `fabric:`")
        self._check_profile()
        self._check_mtu()
        self._check_pools()

    def _check_profile(self) -> None:
        carriers = [name for name, fabric in self.site.fabrics.items() if "backend" in fabric.carries]
        if self.site.profile == "minimal" and carriers:
            text = f"the minimal profile has no backend fabric, and '{carriers[0]}' carries one"
            fix = "use `profile: distributed`, or remove `backend` from `carries`"
            self._bad("inventory.profile", ("fabrics", carriers[0], "carries"), "profile", text, fix)
        if self.site.profile == "distributed" and not carriers:
            text = "the distributed profile needs a fabric that carries `backend`"
            self._bad("inventory.profile", ("profile",), "profile", text, "add one, or use `profile: minimal`")
        if self.site.gateways and not self.site.edge:
            text = "gateways need to know the routers outside: `edge` is missing"
            self._bad("inventory.edge", ("gateways",), "edge", text, "add `edge: {asn: 64999}`")

    def _check_mtu(self) -> None:
        for name, fabric in self.site.fabrics.items():
            if fabric.managed and fabric.server_mtu + 50 > fabric.mtu:
                text = f"server packets of {fabric.server_mtu} bytes and 50 of VXLAN do not fit an MTU of {fabric.mtu}"
                fix = f"server_mtu: {fabric.mtu - 64}"
                self._bad("inventory.mtu", ("fabrics", name), f"fabric {name}", text, fix)

    def _check_pools(self) -> None:
        """Address pools of the infrastructure must be apart, and apart from each other both ways."""
        ranges = self.infrastructure()
        for i, (name, network) in enumerate(ranges):
            for other, second in ranges[i + 1 :]:
                if network.overlaps(second):
                    text = f"{name} {network} and {other} {second} overlap"
                    self._bad("pools.overlap", ("pools", other), f"pool {other}", text, "give them disjoint ranges")
        pools = self.site.pools
        for left, right in (("spine_asn", "leaf_asn"), ("vlans", "gateway_vlans")):
            a, b = getattr(pools, left), getattr(pools, right)
            if a.first <= b.last and b.first <= a.last:
                text = f"{left} {a.first}-{a.last} and {right} {b.first}-{b.last} overlap"
                self._bad("pools.overlap", ("pools", right), f"pool {right}", text, "give them disjoint ranges")
        for name, most in (
            ("vlans", 4094),
            ("gateway_vlans", 4094),
            ("spine_asn", 4294967294),
            ("leaf_asn", 4294967294),
        ):
            last = getattr(pools, name).last
            if last > most:
                text = f"{last} is too large, the largest is {most}"
                self._bad("pools.range", ("pools", name), f"pool {name}", text, "lower it")

    def infrastructure(self) -> list[tuple[str, IPv4Network]]:
        """The named address ranges of the site's own devices."""
        pools = self.site.pools
        ranges = [
            (name, getattr(pools, name)) for name in ("management", "loopbacks", "vteps", "links", "gateway_links")
        ]
        return [*ranges, ("edge.links", self.site.edge.links)] if self.site.edge else ranges

    def _check_racks(self) -> None:
        for name, rack in self.site.racks.items():
            for pattern in rack.devices:
                for device in expand_hosts(pattern):
                    if device in self.racks:
                        text = f"{device} already stands in rack {self.racks[device]}"
                        self._bad("rack.twice", ("racks", name, "devices"), f"rack {name}", text, "keep one")
                    self.racks[device] = name

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
        self.peers = peerings(self.inventory, self.problems)
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
        subnets = list(self.subnets[tenant].values())
        for i, subnet in enumerate(subnets):
            network = IPv4Network(subnet.prefix)
            path = ("tenants", tenant, "subnets", subnet.name)
            for other in subnets[i + 1 :]:
                if network.overlaps(IPv4Network(other.prefix)):
                    text = f"{subnet.prefix} ({subnet.fabric}) and {other.prefix} ({other.fabric}) overlap"
                    self._bad("tenant.overlap", path, f"tenant {tenant}", text, "give them disjoint prefixes")
            for name, pool in self.infrastructure():
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
            book.allocate(self.blocks[tenant, fabric], self.numbers.renamed_servers)
        except PoolExhaustedError as error:
            text = f"{subnet.prefix} is too small: {error.text} (blocks of {book.block} addresses)"
            self._bad("pools.exhausted", path, f"tenant {tenant}", text, "use a larger subnet")
            return
        except ValueError as error:
            self._bad("pools.block", path, f"tenant {tenant}", str(error), f"give fabric {fabric} a new subnet")
            return
        self.books[tenant, fabric] = book

    # ------------------------------------------------------------------ the plan

    def _check_numbers_clash(self, switches: dict[str, Switch]) -> None:
        """AS numbers said by hand must not meet others: eBGP between two devices of one AS would be iBGP."""
        holders: dict[int, str] = {}
        if self.site.gateways:
            holders[self.site.pools.gateway_asn] = "the gateways"
        edge = self.site.edge
        if edge:
            other = holders.setdefault(edge.asn, "the edge routers")
            if other != "the edge routers":
                text = f"AS {edge.asn} is used by {other} and the edge routers"
                self._bad("pools.asn", ("edge", "asn"), "edge", text, "give the edge its own AS number")
        for switch in switches.values():
            if not switch.managed:
                continue
            holder = f"the spines of {switch.fabric}" if switch.kind == "spine" else switch.name
            other = holders.setdefault(switch.asn, holder)
            if other != holder:
                text = f"AS {switch.asn} is used by {other} and {holder}"
                path = ("fabrics", switch.fabric, switch.kind)
                self._bad("pools.asn", path, switch.name, text, "leave `asn` to the pool, or choose another")

    def _check_names(self) -> None:
        """Every device of the site has a name of its own: files, cables and addresses go by it."""
        seen: dict[str, tuple[str, Path_]] = {}
        named: list[tuple[str, str, Path_]] = []
        for fabric, draft in self.fabrics.items():
            named += [(d.name, f"a {d.kind} of {fabric}", ("fabrics", fabric, d.kind)) for d in draft.switches]
        named += [
            (s, "a server", ("servers", c)) for c, spec in self.site.servers.items() for s in server_names(c, spec)
        ]
        for c, gateway in self.site.gateways.items():
            named += [(name, "a gateway", ("gateways", c)) for name in gateway_names(c, gateway)]
        if self.site.edge:
            named += [(f"edge-{n + 1:02d}", "an edge router", ("edge",)) for n in range(self.site.edge.count)]
        told: set[Path_] = set()
        for name, what, path in named:
            other, _ = seen.setdefault(name, (what, path))
            if seen[name][1] != path and path not in told:
                told.add(path)
                text = f"'{name}' would be both {other} and {what}"
                self._bad("inventory.name-twice", path, name, text, "give one of the classes another name or prefix")

    def _check_group_members(self) -> None:
        for name, members in self.groups.items():
            if len(set(members)) != len(members):
                text = f"group '{name}' names a gateway twice"
                self._bad("gateway.group", ("groups", name), f"group {name}", text, "name each gateway once")

    def _exposures(self, gateways: dict[str, Gateway]) -> dict[str, tuple[Exposure, ...]]:
        if not any(tenant.expose for tenant in self.site.tenants.values()):
            return {}
        from fabric.gateway.exposures import resolve_exposures

        fabrics = {gateway.fabric for gateway in gateways.values()}
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
            infrastructure=tuple(self.infrastructure()),
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
        everyone = tuple(
            f"{name}-{n:02d}" for name, spec in self.site.gateways.items() for n in range(1, spec.count + 1)
        )
        return {"default": everyone} if everyone else {}

    def _plan(
        self,
        fabrics: dict[str, Fabric],
        switches: dict[str, Switch],
        servers: dict[str, Server],
        gateways: dict[str, Gateway],
        links: dict[str, Link],
        devices: DeviceBuilder,
    ) -> Plan | None:
        exposures = self._exposures(gateways)
        if self._failed():
            return None
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
            gateways={name: devices.with_tenants(gateway, served[name]) for name, gateway in gateways.items()},
            groups={name: GatewayGroup(name, members) for name, members in self.groups.items()},
            edges=devices.edges,
            links=links,
            tenants=tenants,
            pools=self._pool_uses(),
            rt_asn=self.site.pools.rt_asn,
            settings={
                "ntp": [str(a) for a in self.site.services.ntp],
                "syslog": [str(a) for a in self.site.services.syslog],
                "dns": [str(a) for a in self.site.services.dns],
                "racks": {name: {"row": r.row, "position": r.position} for name, r in self.site.racks.items()},
            },
        )

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
                imports=tuple(rts[peer] for peer in self.peers[name]),
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


def pool_range(network: IPv4Network) -> tuple[str, int]:
    """A pool's text and how many addresses it can give."""
    return str(network), usable(network)


if TYPE_CHECKING:
    from fabric.devices import DeviceBuilder
