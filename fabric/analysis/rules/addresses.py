"""Addresses, MACs and MTUs: unique where they must be, equal at both ends of a cable, wide enough for the tunnel."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.analysis.rendered import CONFIG_DB
from fabric.analysis.rule import Rule
from fabric.plan import EXTERNAL_LINK, FABRIC_LINK, SERVER_LINK
from fabric.tenancy.overlaps import overlaps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem

VXLAN_OVERHEAD = 50  # outer IPv4 (20), UDP (8), VXLAN (8) and inner Ethernet (14) bytes; RFC 7348 section 5
_MAC = re.compile(r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$", re.IGNORECASE)


class AddressesUnique(Rule):
    """An address is on one interface: once in the underlay, once in each tenant.

    Why: YANG does not compare interfaces. Two loopbacks with one address swallow each other's tunnels.
    Fix: let the ledger give addresses; look for a row edited by hand.
    """

    id = "addresses.unique"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        seen: dict[tuple[str, str], str] = {}
        for device, node in self.facts.nodes.items():
            if device in self.plan.servers:
                continue
            gateway = device in self.plan.gateways
            for name, interface in node.interfaces.items():
                if gateway and interface.vrf in self.facts.vrf_names:
                    continue  # a gateway's address inside tenants is for its own ICMP errors, the same everywhere
                for address in interface.addresses:
                    host = address.partition("/")[0]
                    owner = f"{device} {name}"
                    other = seen.setdefault((interface.vrf, host), owner)
                    if other != owner:
                        scope = interface.vrf or "the underlay"
                        text = f"{host} is also on {other}, both in {scope}"
                        yield self.finding(owner, text, device=device, file=node.file)


class LinkAddresses(Rule):
    """Both ends of a numbered cable are in one /31, as the plan says.

    Why: a typing error in one end leaves a session in Active for ever.
    Fix: render both devices from one plan.
    Source: RFC 3021.
    """

    id = "addresses.links"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        nodes = self.facts.nodes
        for link in self.plan.links.values():
            if not link.a.address:
                continue
            for end in (link.a, link.b):
                node = nodes.get(end.device)
                if node is None:
                    continue
                name = f"Vlan{link.vlan}" if link.vlan and node.file == CONFIG_DB else end.interface
                interface = node.interfaces.get(name)
                if interface is None or end.address not in interface.addresses:
                    have = ", ".join(interface.addresses) if interface and interface.addresses else "no address"
                    text = f"has {have} towards {link.far(end.device).device}, the plan says {end.address}"
                    yield self.finding(f"{end.device} {name}", text, device=end.device, file=node.file)


class UnnumberedPorts(Rule):
    """Ports of an unnumbered fabric have IPv6 link-local on and no address.

    Why: BGP on the interface name needs a link-local address to find its peer (RFC 8950, RFC 5549).
    Fix: write INTERFACE|port with ipv6_use_link_local_only enable.
    """

    id = "addresses.unnumbered"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            node = self.facts.node(device)
            for name, link in self.facts.linked.get(device, {}).items():
                if link.kind != FABRIC_LINK or link.a.address:
                    continue
                interface = node.interfaces.get(name)
                if interface is None or not interface.link_local_only or interface.addresses:
                    text = f"to {link.far(device).device} is not an unnumbered port"
                    yield self.finding(f"{device} {name}", text, device=device, keys=("INTERFACE", name))


class PeersDisjoint(Rule):
    """A tenant and all its peers have subnets that do not overlap, in one fabric or between two.

    Why: a VRF that holds two tenants' equal prefixes sends to whichever came last, and a server with ports in two
        fabrics sends by the wrong one. Other tools compare one direction only, or not at all.
    Fix: renumber one tenant, or do not peer both with the same third one.
    """

    id = "addresses.peers-disjoint"

    def check(self) -> Iterator[Problem]:
        tenants = self.plan.tenants
        subnets = {name: tenant.subnets for name, tenant in tenants.items()}
        for found in overlaps(subnets, {name: tenant.peers for name, tenant in tenants.items()}):
            yield self.finding(f"tenant {found.right}", found.sentence())


class TenantsOutsideUnderlay(Rule):
    """Tenant subnets do not overlap the underlay's loopbacks, VTEPs, links and management addresses.

    Why: a server would send to a switch's address what is meant for another server, and people cannot tell them apart.
    Fix: choose other subnets, or move the pools.
    """

    id = "addresses.underlay-apart"

    def check(self) -> Iterator[Problem]:
        used: dict[IPv4Network, str] = {}
        for pool in self.plan.pools:
            if "/" in pool.range and not pool.name.startswith("tenant "):
                used[IPv4Network(pool.range)] = pool.name
        for tenant in self.plan.tenants.values():
            for subnet in tenant.subnets:
                for net, name in used.items():
                    if net.overlaps(IPv4Network(subnet.prefix)):
                        yield self.finding(f"tenant {tenant.name}", f"{subnet.prefix} overlaps the {name} pool {net}")


class Macs(Rule):
    """System MACs are well formed, unicast and unique.

    Why: the MAC is the router MAC of the VTEP: two equal ones on the fabric send tunnelled packets to the wrong leaf.
    Fix: remove the hand-written MAC; the plan derives a stable one from the site and device name.
    """

    id = "addresses.macs"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        rows = [
            (d, str(self.facts.db(d).get("DEVICE_METADATA", {}).get("localhost", {}).get("mac", "")))
            for d in self.facts.sonic
        ]
        rows += [(gateway.name, gateway.router_mac) for gateway in self.plan.gateways.values()]
        for device, mac in rows:
            keys = ("DEVICE_METADATA", "localhost", "mac") if device in self.plan.switches else ()
            where = device if keys else ""
            if not _MAC.match(mac) or int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
                yield self.finding(device, f"MAC '{mac}' is no unicast MAC", device=where, keys=keys)
            elif seen.setdefault(mac.lower(), device) != device:
                yield self.finding(device, f"MAC {mac} is also that of {seen[mac.lower()]}", device=where, keys=keys)


class MtuAcrossTunnel(Rule):
    """What a server or gateway may send fits into the fabric's MTU with the 50 bytes of VXLAN around it.

    Why: oversized tunnelled packets are dropped without an ICMP error: small pings work and KV transfers hang.
    Fix: lower `server_mtu` or raise `mtu` of the fabric (at most 9216).
    Source: RFC 7348 section 4.3.
    """

    id = "mtu.tunnel"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        narrowest: dict[str, tuple[int, str]] = {}
        widest: list[tuple[int, str, str, str]] = []
        for name, links in self.facts.linked.items():
            node = self.facts.nodes.get(name)
            fabric = self.plan.switches[name].fabric
            for port, link in links.items() if node else ():
                interface = node.interfaces.get(port) if node else None
                mtu = interface.mtu if interface else 0
                if link.kind == FABRIC_LINK:
                    narrowest[fabric] = min(narrowest.get(fabric, (1 << 16, "")), (mtu, f"{name} {port}"))
                elif link.kind == SERVER_LINK and link.tenant:
                    widest.append((mtu, fabric, name, port))
        for mtu, fabric, name, port in widest:
            room, where = narrowest.get(fabric, (1 << 16, ""))
            if mtu + VXLAN_OVERHEAD > room:
                text = f"MTU {mtu} and {VXLAN_OVERHEAD} bytes of VXLAN do not fit into {room} of {where}"
                yield self.finding(
                    f"{name} {port}",
                    text,
                    device=name,
                    file=self.facts.node(name).file,
                    keys=("PORT", port, "mtu") if self.facts.node(name).file == CONFIG_DB else (),
                )


class MtuBothEnds(Rule):
    """Both ends of a cable have one MTU.

    Why: the side with the smaller MTU drops what the other sends, counted as errors on the receiver only.
    Fix: render both devices from one plan.
    """

    id = "mtu.both-ends"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        nodes = self.facts.nodes
        for link in self.plan.links.values():
            if link.kind == EXTERNAL_LINK:
                continue
            near, far = nodes.get(link.a.device), nodes.get(link.b.device)
            one = near.interfaces.get(link.a.interface) if near else None
            two = far.interfaces.get(link.b.interface) if far else None
            if near and one and two and one.mtu and two.mtu and one.mtu != two.mtu:
                text = f"MTU {one.mtu}, the other end ({link.b.device} {link.b.interface}) has {two.mtu}"
                yield self.finding(f"{link.a.device} {link.a.interface}", text, device=link.a.device, file=near.file)
