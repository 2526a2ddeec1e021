"""Gateways: pools and NAT, what is announced outside, default routes and their order, tunnels on Linux."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from typing import TYPE_CHECKING

from fabric.analysis.policy import permits
from fabric.analysis.prefixes import network
from fabric.analysis.rendered import FRR_CONF, NETWORK_SH, NFTABLES
from fabric.analysis.rule import Rule
from fabric.plan import LEAF_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.frr_conf import Bgp, FrrConf
    from fabric.plan import Exposure, Gateway
    from fabric.problem import Problem

_SPECIAL = [IPv4Network(p) for p in ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4")]
_PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")
_PAIR = {"masquerade", "portForward"}


def _nets(prefixes: tuple[str, ...]) -> list[IPv4Network]:
    return [IPv4Network(p) for p in prefixes]


def announced_by(gateway: Gateway, exposure: Exposure) -> list[IPv4Network]:
    """Return the public prefixes that one gateway must announce: its share of a masquerade pool, or all."""
    if exposure.shares:
        own = [s for s in exposure.shares if s.gateway == gateway.name]
        return [n for s in own for n in summarize_address_range(IPv4Address(s.first), IPv4Address(s.last))]
    return _nets(exposure.public)


class PoolArithmetic(Rule):
    """Static exposures have as many public as private addresses, and the shares of a pool fill it without overlap.

    Why: a /24 behind a /30 maps most hosts to nothing; two gateways with one public address send each other's replies
        to the wrong conntrack table.
    Fix: make the prefixes of a static exposure equal in size; give the pool at least one address a gateway.
    Source: RFC 4787 (a mapping belongs to one translator).
    """

    id = "gateway.pool-arithmetic"

    def check(self) -> Iterator[Problem]:
        for tenant in self.plan.tenants.values():
            for exposure in tenant.exposures:
                subject = f"tenant {tenant.name} exposure {exposure.name}"
                private, public = (sum(n.num_addresses for n in _nets(p)) for p in (exposure.private, exposure.public))
                if exposure.mode == "static" and private != public:
                    yield self.finding(subject, f"{private} private addresses for {public} public ones")
                if not exposure.shares:
                    continue
                shared = [
                    a for s in exposure.shares for a in range(int(IPv4Address(s.first)), int(IPv4Address(s.last)) + 1)
                ]
                pool = {int(a) for n in _nets(exposure.public) for a in n}
                if len(shared) != len(set(shared)) or set(shared) != pool:
                    yield self.finding(subject, f"shares hold {len(shared)} addresses, the pool has {len(pool)}")
                missing = set(self.plan.groups[exposure.group].gateways) - {s.gateway for s in exposure.shares}
                if missing:
                    yield self.finding(subject, f"{', '.join(sorted(missing))} of the group has no share of the pool")


class PublicDisjoint(Rule):
    """Public prefixes of different exposures do not overlap, except a masquerade and a portForward of one tenant.

    Why: two owners of one address claim the same port, and the reply goes to whichever came first.
    Fix: give each exposure its own addresses.
    """

    id = "gateway.public-disjoint"

    def check(self) -> Iterator[Problem]:
        seen: list[tuple[IPv4Network, str, str, str]] = []
        for tenant in self.plan.tenants.values():
            for exposure in tenant.exposures:
                subject = f"tenant {tenant.name} exposure {exposure.name}"
                for net in _nets(exposure.public):
                    for other, owner, mode, where in seen:
                        shared = owner == tenant.name and {mode, exposure.mode} == _PAIR
                        if net.overlaps(other) and not shared:
                            yield self.finding(subject, f"{net} overlaps {other} of {where}")
                    seen.append((net, tenant.name, exposure.mode, subject))


class SpecialUse(Rule):
    """No exposure uses loopback, link-local, multicast or reserved space, and private ranges are inside the tenant.

    Why: other validators take static NAT into 127.0.0.0/8, and exposing a range outside the tenant leaks another's.
    Fix: expose addresses of the tenant's own subnets under public addresses that are yours.
    Source: RFC 6890.
    """

    id = "gateway.special-use"

    def check(self) -> Iterator[Problem]:
        for tenant in self.plan.tenants.values():
            own = _nets(tuple(s.prefix for s in tenant.subnets))
            for exposure in tenant.exposures:
                subject = f"tenant {tenant.name} exposure {exposure.name}"
                for net in _nets((*exposure.public, *exposure.private)):
                    if any(net.overlaps(special) for special in _SPECIAL):
                        yield self.finding(subject, f"{net} is special-use space")
                for net in _nets(exposure.private):
                    if not any(net.subnet_of(mine) for mine in own):
                        yield self.finding(subject, f"{net} is not inside the tenant's subnets")


class PublicAnnounced(Rule):
    """A gateway announces the public prefixes that it serves to the edge, and nothing private.

    Why: a pool that is not announced has no way back: connections start and never get an answer. An announced private
        prefix gives the outside a way in.
    Fix: write `network` for each prefix in the edge VRF, and let the route-map out permit exactly those.
    """

    id = "gateway.announced"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for name, gateway in self.plan.gateways.items():
            conf = self.facts.routers.get(name)
            edge = _edge_instance(conf, self.facts.vrf_names) if conf else None
            if conf is None or edge is None or edge.ipv4 is None:
                if gateway.externals and name in self.rendered.files:
                    yield self.finding(name, "has no BGP session to the edge", device=name)
                continue
            for text, line in self._edge(gateway, conf, edge):
                yield self.finding(name, text, device=name, line=line)

    def _edge(self, gateway: Gateway, conf: FrrConf, edge: Bgp) -> Iterator[tuple[str, int]]:
        family = edge.ipv4
        assert family is not None
        out = next((m for (_, way), (m, _) in family.route_maps.items() if way == "out"), "")
        said = [net for net in map(network, family.networks) if net is not None]
        for tenant in self.plan.tenants.values():
            for exposure in tenant.exposures:
                if exposure.group not in gateway.ranks:
                    continue
                for net in announced_by(gateway, exposure):
                    if not any(net.subnet_of(other) for other in said):
                        yield f"does not announce {net} of {tenant.name}", family.line
                    elif not any(permits(conf, out, str(other)) for other in said if net.subnet_of(other)):
                        yield f"its route-map {out} keeps {net} of {tenant.name} back", family.line
        for prefix in (*_PRIVATE, "0.0.0.0/0"):
            if permits(conf, out, prefix):
                yield f"would announce {prefix} to the edge", family.line


def _edge_instance(conf: FrrConf, tenant_vrfs: frozenset[str]) -> Bgp | None:
    return next((b for b in conf.bgp.values() if b.vrf and b.vrf not in tenant_vrfs and b.neighbors), None)


class DefaultRoutes(Rule):
    """A gateway originates a default route in the VRF of each tenant that it serves, and leaves prefer it by rank.

    Why: without it a tenant has no way out; when two gateways have one preference, flows are split between two NAT
        tables.
    Fix: gateways set community 50001:<rank>; leaves turn it into local preference 210 - rank.
    """

    id = "gateway.default-routes"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        used: set[int] = set()
        for name, gateway in self.plan.gateways.items():
            used.update(gateway.ranks.values())
            conf = self.facts.routers.get(name)
            for tenant in gateway.tenants if conf else ():
                vrf = self.plan.tenants[tenant].vrf
                bgp = conf.bgp.get(vrf) if conf else None
                family = bgp.ipv4 if bgp else None
                has = family is not None and (
                    family.default_originate
                    or "0.0.0.0/0" in family.networks
                    or family.import_vrf
                    or family.redistribute
                )
                if not has:
                    yield self.finding(
                        f"{name} {vrf}", "originates no default route", device=name, line=bgp.line if bgp else 0
                    )
        for device, conf in self.facts.routers.items():
            switch = self.plan.switches.get(device)
            if switch and switch.kind in LEAF_KINDS and self._fabric_has_gateway(switch.fabric) and switch.vrfs:
                yield from self._preferences(device, conf, used)

    def _fabric_has_gateway(self, fabric: str) -> bool:
        return any(g.fabric == fabric for g in self.plan.gateways.values())

    def _preferences(self, device: str, conf: FrrConf, used: set[int]) -> Iterator[Problem]:
        ranks: dict[str, int] = {}
        for entries in conf.route_maps.values():
            for entry in entries:
                preference = next((s[1] for s in entry.sets if s[0] == "local-preference" and len(s) > 1), "")
                lists = [m[1] for m in entry.matches if m[0] == "community" and len(m) > 1 and preference.isdigit()]
                for words in (words for name in lists for words in conf.community_lists.get(name, ())):
                    ranks[words[-1] if words else ""] = int(preference)
        for rank in sorted(used):
            have = ranks.get(f"50001:{rank}")
            if have != 210 - rank:
                text = f"community 50001:{rank} gives local preference {have}, it should be {210 - rank}"
                yield self.finding(device, text, device=device)


class NatRules(Rule):
    """nftables.conf has each exposure: the gateway's share as source pool, each forwarded port, each static pair.

    Why: `nft -c` checks words, not addresses: a pool of another gateway or a port that is left out passes it.
    Fix: render the gateway again.
    """

    id = "gateway.nat-rules"
    file = NFTABLES

    def check(self) -> Iterator[Problem]:
        for name, gateway in self.plan.gateways.items():
            text = self.rendered.text(name, NFTABLES)
            for tenant in self.plan.tenants.values() if text else ():
                for exposure in tenant.exposures:
                    if exposure.group in gateway.ranks:
                        for missing in _missing(text, gateway, exposure):
                            yield self.finding(f"{name} {tenant.name} {exposure.name}", missing, device=name)


def _missing(text: str, gateway: Gateway, exposure: Exposure) -> Iterator[str]:
    for share in exposure.shares:
        pool = share.first if share.first == share.last else f"{share.first}-{share.last}"
        if share.gateway == gateway.name and not re.search(rf"snat ip to {re.escape(pool)}\b", text):
            yield f"has no source translation to {pool}"
        if share.gateway != gateway.name and re.search(rf"snat ip to {re.escape(pool)}\b", text):
            yield f"translates to {pool}, the share of {share.gateway}"
    for entry in exposure.ports:
        for public in exposure.public:
            key = f"{public.partition('/')[0]} . {entry.protocol} . {entry.public_port} : "
            value = f"{entry.private_address} . {entry.private_port}"
            if f"{key}{value}" not in text:
                yield f"does not forward {entry.protocol} {entry.public_port} to {value.replace(' . ', ':')}"
    if exposure.mode == "static":
        for prefix in (*exposure.private, *exposure.public):
            if prefix.partition("/")[0] not in text:
                yield f"has no rule for {prefix}"


class IdleTimeouts(Rule):
    """The `ct timeout` of each stateful exposure is its idle timeout.

    Why: the kernel's default keeps an idle TCP flow for five days, which fills the table and the port pool.
    Fix: set `idle_timeout` of the exposure and render again.
    Source: RFC 5382 section 5, RFC 4787 section 4.3.
    """

    id = "gateway.idle-timeout"
    file = NFTABLES
    _TIMEOUT = re.compile(r"ct timeout tcp\.(\S+)\.(\S+) \{.*?established : (\d+)", re.DOTALL)

    def check(self) -> Iterator[Problem]:
        for name, gateway in self.plan.gateways.items():
            text = self.rendered.text(name, NFTABLES)
            if not text:
                continue
            have: dict[str, set[int]] = {}
            for tenant_name, _, seconds in self._TIMEOUT.findall(text):
                have.setdefault(tenant_name, set()).add(int(seconds))
            for tenant in self.plan.tenants.values():
                for exposure in tenant.exposures:
                    stateful = exposure.mode != "static" and exposure.group in gateway.ranks
                    if stateful and exposure.idle_timeout_s not in have.get(tenant.name, ()):
                        subject = f"{name} {tenant.name} {exposure.name}"
                        text_ = (
                            f"no TCP timeout of {exposure.idle_timeout_s} s, only {sorted(have.get(tenant.name, ()))}"
                        )
                        yield self.finding(subject, text_, device=name)


class LinuxTunnels(Rule):
    """VXLANs on Linux start at the VTEP, use the fabric's port, do not learn, and copy the inner DSCP and ECN outside.

    Why: without `tos inherit` tunnelled RDMA travels in the lossy class and loses its ECN marks at the tunnel's end.
    Fix: write `local <vtep> dstport 4789 nolearning tos inherit`.
    Source: RFC 6040, RFC 7348.
    """

    id = "gateway.tunnels"
    file = NETWORK_SH

    def check(self) -> Iterator[Problem]:
        for device, node in self.facts.nodes.items():
            owner = self.plan.gateways.get(device) or self.plan.switches.get(device)
            if owner is None or node.file != NETWORK_SH:
                continue
            port = self.plan.fabrics[owner.fabric].vxlan_port
            for tunnel in node.tunnels:
                wrong = [
                    text
                    for text, bad in (
                        (f"local {tunnel.local or 'missing'}, the VTEP is {owner.vtep}", tunnel.local != owner.vtep),
                        (f"UDP port {tunnel.port}, the fabric's is {port}", tunnel.port != port),
                        ("no 'tos inherit'", tunnel.tos != "inherit"),
                        ("is in no VRF", not tunnel.vrf),
                    )
                    if bad
                ]
                if wrong:
                    yield self.finding(f"{device} {tunnel.interface}", "; ".join(wrong), device=device)
