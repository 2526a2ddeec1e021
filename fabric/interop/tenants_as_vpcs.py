"""Tenants of one fabric as Hedgehog VPCs: names, namespaces, VLANs, and what cannot be said there.

A Tomahawk 5 switch has no L2VNI, so that every VPC is of mode `l3vni`. Two tenants with overlapping subnets cannot
share an IPv4 namespace, and two namespaces cannot peer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Network, collapse_addresses, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from fabric.interop.hedgehog import IPV4_NAMESPACE_SUBNETS, RESERVED, VLANS, VPC, VPC_NAME_MAX, dns_name, resource

if TYPE_CHECKING:
    from fabric.plan import Plan, ServerPort, Subnet, Tenant


@dataclass
class Vpcs:
    """What the tenants of one fabric become. `notes` are sentences on what could not be expressed."""

    namespaces: dict[str, list[IPv4Network]] = field(default_factory=dict)
    objects: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    peerings: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def vpcs_of(plan: Plan, fabric: str, connections: dict[str, str]) -> Vpcs:
    """Turn the tenants of `fabric` into VPCs; `connections` maps a link id to its connection's name."""
    made = Vpcs()
    home: dict[str, str] = {}
    vlans = iter(VLANS[1:])
    for tenant in sorted(plan.tenants.values(), key=lambda t: t.vni):
        subnets = _usable(tenant, fabric, made)
        if not subnets:
            continue
        name = dns_name(tenant.name, VPC_NAME_MAX)
        home[tenant.name] = _namespace(made, [ip_network(s.prefix) for s in subnets])
        spec = {
            "mode": "l3vni",
            "ipv4Namespace": home[tenant.name],
            "vlanNamespace": "default",
            "subnets": {dns_name(s.name): _subnet(s, next(vlans)) for s in subnets},
        }
        made.objects.append(resource(VPC, "VPC", name, spec))
        made.attachments += _attachments(plan, tenant, name, subnets, connections)
    _peer(plan, home, made)
    return made


def _usable(tenant: Tenant, fabric: str, made: Vpcs) -> list[Subnet]:
    usable = []
    for subnet in tenant.subnets:
        if subnet.fabric != fabric:
            continue
        prefix = ip_network(subnet.prefix)
        if prefix.prefixlen > 30:
            made.notes.append(
                f"tenant {tenant.name}: subnet {subnet.prefix} is left out, a VPC subnet is /30 or larger"
            )
        elif any(prefix.overlaps(ip_network(reserved)) for reserved in RESERVED):
            made.notes.append(f"tenant {tenant.name}: subnet {subnet.prefix} is left out, Hedgehog reserves that range")
        else:
            usable.append(subnet)
    return usable


def _namespace(made: Vpcs, prefixes: list[IPv4Network | Any]) -> str:
    """Put the prefixes into the first namespace where they overlap nothing; a new one if there is none."""
    for name, taken in made.namespaces.items():
        if not any(prefix.overlaps(other) for prefix in prefixes for other in taken):
            taken.extend(prefixes)
            return name
    name = f"ns-{len(made.namespaces) + 1}" if made.namespaces else "default"
    made.namespaces[name] = list(prefixes)
    return name


def namespace_subnets(prefixes: list[IPv4Network]) -> list[str]:
    """The subnets of an IPv4 namespace that hold all the prefixes: as small as the limit of ten allows."""
    nets = list(collapse_addresses(prefixes))
    while len(nets) > IPV4_NAMESPACE_SUBNETS:
        longest = max(net.prefixlen for net in nets)
        nets = list(collapse_addresses(n.supernet() if n.prefixlen == longest else n for n in nets))
    return [str(net) for net in nets]


def _subnet(subnet: Subnet, vlan: int) -> dict[str, Any]:
    prefix = ip_network(subnet.prefix)
    return {"subnet": str(prefix), "gateway": str(prefix[1]), "vlan": vlan, "isolated": False, "restricted": False}


def _attachments(
    plan: Plan, tenant: Tenant, vpc: str, subnets: list[Subnet], connections: dict[str, str]
) -> list[dict[str, Any]]:
    made = []
    for server in plan.servers.values():
        for port in server.ports:
            if port.tenant != tenant.name or port.link not in connections:
                continue
            connection = connections[port.link]
            spec = {
                "subnet": f"{vpc}/{dns_name(_subnet_of(port, subnets).name)}",
                "connection": connection,
                "nativeVLAN": True,
            }
            made.append(resource(VPC, "VPCAttachment", f"{vpc}--{connection}", spec))
    return made


def _subnet_of(port: ServerPort, subnets: list[Subnet]) -> Subnet:
    address = ip_address(port.address.partition("/")[0])
    return next((s for s in subnets if address in ip_network(s.prefix)), subnets[0])


def _peer(plan: Plan, home: dict[str, str], made: Vpcs) -> None:
    pairs = {tuple(sorted((t.name, peer))) for t in plan.tenants.values() for peer in t.peers}
    for left, right in sorted(pairs):
        if left not in home or right not in home:
            continue
        if home[left] != home[right]:
            made.notes.append(f"tenants {left} and {right}: not peered, their subnets overlap others' and Hedgehog's")
            made.notes.append("  IPv4 namespaces cannot peer")
            continue
        vpcs = [dns_name(name, VPC_NAME_MAX) for name in (left, right)]
        permit: dict[str, dict[str, Any]] = {vpc: {} for vpc in vpcs}
        spec = {"permit": [permit]}
        made.peerings.append(resource(VPC, "VPCPeering", "--".join(vpcs), spec))
