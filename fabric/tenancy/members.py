"""Who belongs to which tenant, which addresses its ports get, and who may talk to whom."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.allocation.addresses import dotted
from fabric.allocation.ledger import Ledger, PoolExhaustedError
from fabric.hardware.ranges import expand_hosts, host_patterns
from fabric.hints import names_hint
from fabric.plan import Subnet
from fabric.tenancy.overlaps import overlaps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Network

    from fabric.inventory.load import Inventory, Path_
    from fabric.inventory.models import SubnetSpec, Tenant
    from fabric.problem import Problem
    from fabric.topology.fabrics import NicPort


@dataclass(frozen=True, slots=True)
class Member:
    """A server's ports of one fabric in one tenant, in port order. `services` are those that carry the /32."""

    server: str
    tenant: str
    fabric: str
    ports: tuple[NicPort, ...]


@dataclass
class Members:
    """Tenant membership of the site."""

    owner: dict[tuple[str, str], str] = field(default_factory=dict)  # (server, port name) -> tenant
    blocks: list[Member] = field(default_factory=list)


def assign(
    inventory: Inventory, ports_of: dict[str, dict[str, tuple[NicPort, ...]]], problems: list[Problem]
) -> Members:
    """Resolve every tenant's `servers`. `ports_of` maps server -> fabric -> its ports there."""
    members = Members()
    claims: dict[tuple[str, str], tuple[str, int]] = {}
    for tenant_name, tenant in inventory.site.tenants.items():
        for i, pattern in enumerate(tenant.servers):
            _claim(inventory, tenant_name, i, pattern, ports_of, claims, members, problems)
    for server, by_fabric in ports_of.items():
        for fabric, ports in by_fabric.items():
            grouped: dict[str, list[NicPort]] = {}
            for port in ports:
                owner = members.owner.get((server, port.name))
                if owner:
                    grouped.setdefault(owner, []).append(port)
            members.blocks += [Member(server, tenant, fabric, tuple(found)) for tenant, found in grouped.items()]
    return members


def _claim(
    inventory: Inventory,
    tenant: str,
    position: int,
    pattern: str,
    ports_of: dict[str, dict[str, tuple[NicPort, ...]]],
    claims: dict[tuple[str, str], tuple[str, int]],
    members: Members,
    problems: list[Problem],
) -> None:
    path = ("tenants", tenant, "servers", position)
    hosts, _, group = pattern.partition(":")
    servers = expand_hosts(hosts)
    unknown = [server for server in servers if server not in ports_of]
    if unknown:
        close = difflib.get_close_matches(unknown[0], ports_of, 1)
        fix = f"did you mean {close[0]}?" if close else f"the site has {len(ports_of)} servers: see `kvfabric plan`"
        text = f"no server {', '.join(host_patterns(unknown))}"
        problems.append(inventory.problem("tenant.server", path, f"tenant {tenant}", text, fix))
    for server in servers:
        if server not in ports_of:
            continue
        found = [
            port
            for ports in ports_of[server].values()
            for port in ports
            if not group or group in (port.name, port.nic) or port.nic.rstrip("0123456789") == group
        ]
        if not found:
            text = f"{server} has no NIC or NIC group '{group}'"
            problems.append(inventory.problem("tenant.nic", path, f"tenant {tenant}", text, "name a NIC group of it"))
            return
        for port in found:
            other, line = claims.setdefault((server, port.name), (tenant, inventory.where(path)[1]))
            if other != tenant:
                text = f"{server} {port.name} already belongs to tenant {other} (line {line})"
                fix = "give each NIC port to one tenant"
                problems.append(inventory.problem("tenant.claimed", path, f"tenant {tenant}", text, fix))
                return
            members.owner[server, port.name] = tenant


def subnet_of(inventory: Inventory, tenant: str, fabrics: Iterable[str], problems: list[Problem]) -> dict[str, Subnet]:
    """The subnet of a tenant in each fabric where it has ports. One prefix cannot serve two physical networks."""
    spec = inventory.site.tenants[tenant]
    found: dict[str, Subnet] = {}
    wanted = sorted(fabrics)
    named: dict[str, Subnet] = {}
    path: Path_
    for name, given in spec.subnets.items():
        prefix, fabric = _prefix(given, name)
        if name == "default":
            continue
        if fabric not in inventory.site.fabrics:
            path = ("tenants", tenant, "subnets", name)
            text = f"subnet '{name}' belongs to no fabric: there is no fabric '{fabric}'"
            fix = f"name it after a fabric ({', '.join(inventory.site.fabrics)}), or write {{prefix, fabric}}"
            problems.append(inventory.problem("tenant.subnet", path, f"tenant {tenant}", text, fix))
            continue
        named[fabric] = Subnet(name, str(prefix), fabric)
    default = spec.subnets.get("default")
    uncovered = [fabric for fabric in wanted if fabric not in named]
    if default is not None and len(uncovered) > 1:
        path = ("tenants", tenant, "subnets", "default")
        text = f"'default' would have to serve {' and '.join(uncovered)}, which are separate networks"
        fix = f"give each its own: {', '.join(f'{fabric}: a.b.c.d/n' for fabric in uncovered)}"
        problems.append(inventory.problem("tenant.subnet", path, f"tenant {tenant}", text, fix))
        return {}
    for fabric in wanted:
        if fabric in named:
            found[fabric] = named[fabric]
        elif default is not None:
            found[fabric] = Subnet("default", str(_prefix(default, "default")[0]), fabric)
        else:
            path = ("tenants", tenant, "subnets") if spec.subnets else ("tenants", tenant)
            text = f"it has ports in fabric '{fabric}' and no subnet there"
            fix = f"add `subnets: {{{fabric}: 10.x.0.0/16}}`"
            problems.append(inventory.problem("tenant.subnet", path, f"tenant {tenant}", text, fix))
    return found


def _prefix(given: IPv4Network | SubnetSpec, name: str) -> tuple[IPv4Network, str]:
    from fabric.inventory.models import SubnetSpec

    return (given.prefix, given.fabric) if isinstance(given, SubnetSpec) else (given, name)


class AddressBook:
    """Addresses of one tenant in one fabric: a block a server, so that a server's addresses stay together.

    A block starts with the service address (second address of the block) and continues with a /31 a port. The block
    size is a power of two fixed when the tenant is first seen there, and kept in the ledger.
    """

    def __init__(self, prefix: str, tenant: str, fabric: str, ledger: Ledger, service: bool) -> None:
        from ipaddress import IPv4Network

        self.network = IPv4Network(prefix)
        self.pool = f"tenant/{tenant}/{fabric}"
        self.ledger, self.service = ledger, service
        self.start = 2 if service else 0
        self.numbers: dict[str, int] = {}
        self.block = 0

    def allocate(self, members: list[Member]) -> None:
        """Give every member a block. Raises PoolExhaustedError (too many servers) or ValueError (too many ports)."""
        most = max(len(member.ports) for member in members)
        need = self.start + 2 * most
        self.block = self.ledger.constant("constant/block", self.pool, 1 << (need - 1).bit_length())
        if need > self.block:
            message = f"a server now has {most} ports; blocks of {self.block} addresses were given before"
            raise ValueError(message)
        size = self.network.num_addresses // self.block
        if not size:
            raise PoolExhaustedError(self.pool, 0, len(members), (), ())
        self.numbers = self.ledger.allocate(self.pool, (m.server for m in members), size)

    def block_prefix(self, number: int) -> str:
        """The addresses of a block, as a prefix."""
        first = dotted(int(self.network.network_address) + number * self.block)
        return f"{first}/{33 - self.block.bit_length()}"

    def service_address(self, server: str) -> str:
        """The server's /32, without length."""
        return dotted(int(self.network.network_address) + self.numbers[server] * self.block + 1)

    def port_pair(self, server: str, index: int) -> tuple[str, str]:
        """The /31 of the server's `index`-th port: (leaf's, server's), with length."""
        base = int(self.network.network_address) + self.numbers[server] * self.block + self.start + 2 * index
        return f"{dotted(base)}/31", f"{dotted(base + 1)}/31"


def peerings(inventory: Inventory, problems: list[Problem]) -> dict[str, tuple[str, ...]]:
    """Who exchanges routes with whom. Both sides must want it, or one of them be a service tenant."""
    tenants = inventory.site.tenants
    found: dict[str, set[str]] = {name: set() for name in tenants}
    for name, tenant in tenants.items():
        for i, peer in enumerate(tenant.peers):
            path = ("tenants", name, "peers", i)
            if peer == name or peer not in tenants:
                text = "a tenant cannot peer with itself" if peer == name else f"no tenant '{peer}'"
                others = [other for other in tenants if other != name]
                fix = "remove it" if peer == name else names_hint(peer, others, "tenants here")
                problems.append(inventory.problem("tenant.peer", path, f"tenant {name}", text, fix))
            elif not _agreed(name, peer, tenants):
                text = f"{name} lists {peer} as a peer, and {peer} does not list {name}"
                fix = f"add {name} to the peers of {peer}, or make {peer} a `service: true` tenant"
                problems.append(inventory.problem("tenant.peer", path, f"tenant {name}", text, fix))
            else:
                found[name].add(peer)
                found[peer].add(name)
    return {name: tuple(sorted(peers)) for name, peers in found.items()}


def _agreed(name: str, peer: str, tenants: dict[str, Tenant]) -> bool:
    return tenants[peer].service or tenants[name].service or name in tenants[peer].peers


def peer_overlaps(
    inventory: Inventory,
    peers: dict[str, tuple[str, ...]],
    subnets: dict[str, tuple[Subnet, ...]],
    problems: list[Problem],
) -> None:
    """Subnets of a tenant and its peers must not overlap, in one fabric or between two of one server."""
    for found in overlaps(subnets, peers):
        paths = [
            ("tenants", tenant, "subnets", subnet.name)
            for tenant, subnet in ((found.left, found.left_subnet), (found.right, found.right_subnet))
        ]
        left_at, right_at = (f"{file}:{line}" for file, line in map(inventory.where, paths))
        text = found.sentence(left_at, right_at)
        fix = "give them disjoint prefixes" + ("" if found.left == found.right else ", or remove the peering")
        problems.append(inventory.problem("tenant.overlap", paths[1], f"tenant {found.right}", text, fix))
