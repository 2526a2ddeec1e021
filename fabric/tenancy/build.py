"""What tenants have of a site: ports of servers, subnets, and an address book a fabric."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.allocation.ledger import PoolExhaustedError
from fabric.tenancy.members import AddressBook, assign, peer_overlaps, subnet_of
from fabric.topology.fabrics import nic_ports, server_names
from fabric.wellformed import infrastructure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.allocation.ledger import Ledger
    from fabric.allocation.numbers import Numbers
    from fabric.inventory.load import Inventory
    from fabric.inventory.models import Site
    from fabric.plan import Subnet
    from fabric.problem import Problem
    from fabric.tenancy.members import Member
    from fabric.topology.fabrics import NicPort


def vrf_of(tenant: str) -> str:
    """Return the name of a tenant's VRF; SONiC wants the prefix."""
    return f"Vrf-{tenant}"


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Who has what. Blocks, subnets and books are those of tenants in fabrics where they have ports."""

    peers: dict[str, tuple[str, ...]]  # tenant -> tenants
    ports_of: dict[str, dict[str, tuple[NicPort, ...]]]  # server -> fabric -> ports, also those of nobody
    owner: dict[tuple[str, str], str]  # (server, port name) -> tenant
    blocks: dict[tuple[str, str], list[Member]]  # (tenant, fabric) -> its servers there
    subnets: dict[str, dict[str, Subnet]]  # tenant -> fabric -> subnet
    books: dict[tuple[str, str], AddressBook]  # (tenant, fabric) -> addresses

    def services(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield (tenant, fabric, server, address) of every address on which a server answers for itself."""
        for (tenant, fabric), book in self.books.items():
            for member in self.blocks[tenant, fabric] if book.service else ():
                yield tenant, fabric, member.server, book.service_address(member.server)


class TenancyBuilder:
    """Gives each tenant its ports and addresses; what is wrong is added to `problems`, and left out."""

    def __init__(self, inventory: Inventory, ledger: Ledger, numbers: Numbers, problems: list[Problem]) -> None:
        self.inventory, self.site, self.ledger = inventory, inventory.site, ledger
        self.numbers, self.problems = numbers, problems

    def build(self, peers: dict[str, tuple[str, ...]]) -> Tenancy:
        """Return who has what; `peers` are the tenants that each tenant exchanges routes with."""
        site, inventory = self.site, self.inventory
        ports_of = _ports_of(site)
        # ports in unmanaged fabrics are cabled only: they are nobody's
        managed = {
            server: {f: p for f, p in by_fabric.items() if site.fabrics[f].managed}
            for server, by_fabric in ports_of.items()
        }
        members = assign(inventory, managed, self.problems)
        blocks: dict[tuple[str, str], list[Member]] = {}
        for member in members.blocks:
            blocks.setdefault((member.tenant, member.fabric), []).append(member)
        subnets: dict[str, dict[str, Subnet]] = {}
        books: dict[tuple[str, str], AddressBook] = {}
        for tenant in site.tenants:
            fabrics = [fabric for fabric in site.fabrics if (tenant, fabric) in blocks]
            subnets[tenant] = subnet_of(inventory, tenant, fabrics, self.problems)
            for subnet in subnets[tenant].values():
                self._check_subnet(tenant, subnet)
            for fabric, subnet in subnets[tenant].items():
                if book := self._book(tenant, fabric, subnet, blocks[tenant, fabric]):
                    books[tenant, fabric] = book
                    self.numbers.means(book.pool, book.block_prefix)
        flat = {tenant: tuple(by_fabric.values()) for tenant, by_fabric in subnets.items()}
        peer_overlaps(inventory, peers, flat, self.problems)
        return Tenancy(peers, ports_of, members.owner, blocks, subnets, books)

    def _bad(self, rule: str, tenant: str, subnet: Subnet, text: str, fix: str) -> None:
        path = ("tenants", tenant, "subnets", subnet.name)
        self.problems.append(self.inventory.problem(rule, path, f"tenant {tenant}", text, fix))

    def _check_subnet(self, tenant: str, subnet: Subnet) -> None:
        network = IPv4Network(subnet.prefix)
        for name, pool in infrastructure(self.site):
            if network.overlaps(pool):
                text = f"{subnet.prefix} overlaps the site's own {name} {pool}"
                self._bad("tenant.overlap", tenant, subnet, text, "move one of them")

    def _book(self, tenant: str, fabric: str, subnet: Subnet, members: list[Member]) -> AddressBook | None:
        """Return the filled book of a tenant in a fabric, None when its subnet cannot hold its servers."""
        has_service = bool({"frontend", "storage"} & set(self.site.fabrics[fabric].carries))
        book = AddressBook(subnet.prefix, tenant, fabric, self.ledger, has_service)
        if was := self.site.tenants[tenant].was:
            self._keep(f"tenant/{was}/{fabric}", book.pool)
        try:
            book.allocate(members)
        except PoolExhaustedError as error:
            text = f"{subnet.prefix} is too small: {error.text} (blocks of {book.block} addresses)"
            self._bad("pools.exhausted", tenant, subnet, text, "use a larger subnet")
            return None
        except ValueError as error:
            self._bad("pools.block", tenant, subnet, str(error), f"give fabric {fabric} a new subnet")
            return None
        return book

    def _keep(self, was: str, pool: str) -> None:
        """Let a tenant that was renamed keep its blocks and their size."""
        pools = self.ledger.pools
        if was in pools:
            pools.setdefault(pool, pools.pop(was))
            if block := pools.get("constant/block", {}).pop(was, None):
                pools["constant/block"].setdefault(pool, block)


def _ports_of(site: Site) -> dict[str, dict[str, tuple[NicPort, ...]]]:
    found: dict[str, dict[str, tuple[NicPort, ...]]] = {}
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
            found[server] = by_fabric
    return found
