"""BGP of the underlay: both ends of each session, AS numbers, ECMP width, what is announced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.policy import permits
from fabric.analysis.rendered import FRR_CONF
from fabric.analysis.rule import Rule
from fabric.analysis.sessions import asn_of, sessions
from fabric.plan import EDGE, LEAF_KINDS
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.frr_conf import Bgp, FrrConf
    from fabric.problem import Problem

_DEFAULT_MAX_PATHS = 64


class SessionsAgree(Rule):
    """Each cable between routers has one BGP session, and both files agree on it: address, AS and families.

    Why: `vtysh -C` accepts a session to the wrong AS, to an address that nobody has, or with a family on one side only.
    Fix: render both ends from the same plan; if one is edited by hand, edit its peer too.
    Source: RFC 4271 section 6.2, RFC 4760.
    """

    id = "bgp.sessions"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for session in sessions(self.facts):
            link, here, there = session.link, session.here, session.there
            subject = f"{here} to {there} ({link.end(here).interface})"
            bgp, neighbor = session.bgp, session.neighbor
            if bgp is None or neighbor is None:
                where = link.far(here).address.partition("/")[0] or f"interface {link.end(here).interface}"
                yield self.finding(subject, f"has no neighbor for {where}", device=here, line=bgp.line if bgp else 0)
                continue
            remote, actual = bgp.remote_as(neighbor), session.far_asn
            if not (remote == str(actual) or (remote == "external" and bgp.asn != actual)):
                text = f"expects AS {remote or 'none'}, {there} has AS {actual}"
                yield self.finding(subject, text, device=here, line=neighbor.line)
            yield from self._families(subject, here, there, session.active, session.far_active, neighbor.line)

    def _families(
        self, subject: str, here: str, there: str, mine: frozenset[str], theirs: frozenset[str] | None, line: int
    ) -> Iterator[Problem]:
        if "ipv4 unicast" not in mine:
            yield self.finding(subject, "does not activate ipv4 unicast", device=here, line=line)
        if theirs is not None and mine - theirs:
            text = f"activates {', '.join(sorted(mine - theirs))}, {there} does not"
            yield self.finding(subject, text, device=here, line=line)


class EvpnOnFabricLinks(Rule):
    """L2VPN EVPN is active on every session inside a fabric.

    Why: one session without it takes a whole spine out of every tenant's paths, or cuts a leaf off after a failure.
    Fix: activate the peer group in the l2vpn evpn family.
    """

    id = "bgp.evpn-active"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for session in sessions(self.facts):
            if self.plan.kind_of.get(session.there) == EDGE or session.neighbor is None:
                continue
            if "l2vpn evpn" not in session.active:
                text = f"session to {session.there} does not carry l2vpn evpn"
                yield self.finding(session.here, text, device=session.here, line=session.neighbor.line)


class BfdBothEnds(Rule):
    """BFD is on at both ends of each session inside the site, with a profile that exists.

    Why: without it a silent link costs the BGP hold time (180 s) instead of a second; a missing profile is not reported
        by any FRR check.
    Fix: set `neighbor ... bfd profile` on the peer group and define the profile.
    Source: RFC 5882.
    """

    id = "bgp.bfd"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for session in sessions(self.facts):
            if session.bgp is None or session.neighbor is None or self.plan.kind_of.get(session.there) == EDGE:
                continue
            conf = self.facts.routers[session.here]
            on, profile = session.bfd
            subject = f"{session.here} to {session.there}"
            if not on:
                yield self.finding(subject, "has no BFD", device=session.here, line=session.neighbor.line)
            elif profile and profile not in conf.bfd_profiles:
                text = f"uses BFD profile {profile}, which is not defined"
                yield self.finding(subject, text, device=session.here, line=session.neighbor.line)


class EcmpWidth(Rule):
    """`maximum-paths` is at least the number of uplinks, in the underlay and in each tenant VRF.

    Why: a width of 4 with 32 uplinks is valid, renders silently and wastes most of the spines.
    Fix: raise the fabric's `max_paths` in the inventory.
    """

    id = "bgp.ecmp-width"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        uplinks: dict[str, int] = {}
        for link in self.plan.links.values():
            if link.kind in {"fabric", "gateway"}:
                uplinks[link.a.device] = uplinks.get(link.a.device, 0) + 1
        for device, conf in self.facts.routers.items():
            want = uplinks.get(device, 0)
            default = conf.default
            family = default.ipv4 if default else None
            if family is None or want < 2:
                continue
            width = family.max_paths or _DEFAULT_MAX_PATHS
            if width < want:
                line = next((n for n, w in family.other if w[0] == "maximum-paths"), family.line)
                yield self.finding(device, f"maximum-paths {width} with {want} uplinks", device=device, line=line)
            elif self._narrow_vrfs(conf.bgp):
                names = ", ".join(self._narrow_vrfs(conf.bgp))
                text = f"maximum-paths 1 in {names}: one leaf of a dual-homed server is never used"
                yield self.finding(device, text, device=device)

    def _narrow_vrfs(self, instances: dict[str, Bgp]) -> list[str]:
        return [
            b.vrf
            for b in instances.values()
            if b.vrf in self.facts.vrf_names and b.ipv4 is not None and b.ipv4.max_paths == 1
        ]


class AsNumbers(Rule):
    """Leaves have an AS each, spines of a fabric share one, gateways share one, and each file has one.

    Why: two leaves with one AS drop each other's routes as loops; two AS in a file make bgpd refuse the second.
    Fix: let the ledger give AS numbers; widen the pool instead of sharing.
    Source: RFC 7938 section 5.2.
    """

    id = "bgp.as-numbers"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        leaf_of: dict[tuple[str, int], str] = {}
        shared: dict[tuple[str, str], tuple[int, str]] = {}
        for device, conf in self.facts.routers.items():
            yield from self._one_as(device, conf.bgp, [b for b in conf.extra_bgp if b.vrf == ""])
            asn, kind = asn_of(self.facts, device), self.plan.kind_of[device]
            fabric = self.plan.switches[device].fabric if device in self.plan.switches else ""
            line = conf.default.line if conf.default else 0
            if kind in LEAF_KINDS:
                other = leaf_of.setdefault((fabric, asn), device)
                if other != device:
                    yield self.finding(device, f"has AS {asn}, as {other} has", device=device, line=line)
            else:
                first, other = shared.setdefault((fabric, kind), (asn, device))
                if first != asn:
                    yield self.finding(
                        device, f"has AS {asn}, {other} has {first}: all of a kind share one", device=device, line=line
                    )

    def _one_as(self, device: str, instances: dict[str, Bgp], extra: list[Bgp]) -> Iterator[Problem]:
        default = instances.get("")
        if default is None:
            yield self.finding(device, "has no router bgp", device=device)
            return
        for bgp in extra:
            yield self.finding(
                device, f"has a second AS, {bgp.asn}, beside {default.asn}", device=device, line=bgp.line
            )


class RouterIds(Rule):
    """Router ids are unique, not zero, and the plan's Loopback0.

    Why: two routers with one id do not form a session with each other, and their EVPN routes collide.
    Fix: take router ids from the loopback pool.
    Source: RFC 6286.
    """

    id = "bgp.router-id"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        for device, conf in self.facts.routers.items():
            bgp = conf.default
            if bgp is None:
                continue
            switch = self.plan.switches.get(device)
            want = (
                switch.router_id
                if switch
                else self.plan.gateways[device].router_id
                if device in self.plan.gateways
                else ""
            )
            other = seen.setdefault(bgp.router_id, device)
            if bgp.router_id in {"", "0.0.0.0"}:  # noqa: S104 - an id, not a socket
                yield self.finding(device, f"router id is '{bgp.router_id}'", device=device, line=bgp.line)
            elif other != device:
                yield self.finding(
                    device, f"router id {bgp.router_id} is also that of {other}", device=device, line=bgp.line
                )
            elif want and bgp.router_id != want:
                yield self.finding(
                    device, f"router id {bgp.router_id}, the plan says {want}", device=device, line=bgp.line
                )


class LoopbacksAnnounced(Rule):
    """Routers announce their loopback and VTEP in the underlay, and no link addresses.

    Why: a VTEP that is not announced cannot be a next hop: every type-5 route of that leaf stays unused.
    Fix: redistribute connected through a route-map that permits the loopback and VTEP pools.
    """

    id = "bgp.loopbacks"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, conf in self.facts.routers.items():
            owner = self.plan.switches.get(device) or self.plan.gateways.get(device)
            family = conf.default.ipv4 if conf.default else None
            if owner is None or family is None:
                continue
            for address in filter(None, (owner.router_id, owner.vtep)):
                prefix = f"{address}/32"
                redistributed = family.redistribute.get("connected")
                said = prefix in family.networks or (
                    redistributed is not None and permits(conf, redistributed[0], prefix)
                )
                if not said:
                    yield self.finding(device, f"does not announce {prefix}", device=device, line=family.line)


class References(Rule):
    """Peer groups, route-maps and prefix lists that are used exist.

    Why: FRR accepts a reference to nothing: a missing route-map denies everything, a missing prefix list permits
        everything.
    Fix: define the name, or remove the reference.
    """

    id = "frr.references"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, conf in self.facts.routers.items():
            for name, line, text in _dangling(conf):
                yield self.finding(f"{device} {name}", text, device=device, line=line)


def _dangling(conf: FrrConf) -> Iterator[tuple[str, int, str]]:
    for bgp in conf.bgp.values():
        for neighbor in bgp.neighbors.values():
            group = bgp.neighbors.get(neighbor.group)
            if neighbor.group and (group is None or not group.is_group):
                yield neighbor.name, neighbor.line, f"peer-group {neighbor.group} is not defined"
        for family in bgp.families.values():
            maps = (*family.route_maps.values(), *family.redistribute.values(), (family.import_map, family.line))
            for name, line in maps:
                if name and name not in conf.route_maps:
                    yield bgp.vrf or "default", line, f"route-map {name} is not defined"
            for name, line in family.filters.values():
                if name not in conf.prefix_lists:
                    yield bgp.vrf or "default", line, f"prefix-list {name} is not defined"
    yield from _dangling_matches(conf)


def _dangling_matches(conf: FrrConf) -> Iterator[tuple[str, int, str]]:
    for name, entries in conf.route_maps.items():
        for entry in entries:
            for match in entry.matches:
                if match[-2:-1] == ["prefix-list"] and match[-1] not in conf.prefix_lists:
                    yield name, entry.line, f"prefix-list {match[-1]} is not defined"
                if match[:1] == ["community"] and match[-1] not in conf.community_lists:
                    yield name, entry.line, f"community-list {match[-1]} is not defined"


class PolicyNeeded(Rule):
    """eBGP sessions exchange routes: either no policy is required, or each direction has one.

    Why: RFC 8212 behaviour is FRR's default. A session without policy comes up and carries nothing.
    Fix: write `no bgp ebgp-requires-policy` inside the fabric; on sessions to the edge, route-maps both ways.
    Source: RFC 8212.
    """

    id = "bgp.policy"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, bgp in self.facts.bgp():
            if "no bgp ebgp-requires-policy" in bgp.statements or bgp.ipv4 is None:
                continue
            for neighbor in bgp.neighbors.values():
                names = bgp.names(neighbor)
                if not neighbor.is_group and not all(bgp.ipv4.route_map(names, way) for way in ("in", "out")):
                    text = "has no policy in both directions, and eBGP requires one"
                    yield self.finding(f"{device} {neighbor.name}", text, device=device, line=neighbor.line)


class MultipathRelax(Rule):
    """Instances that balance over several AS say so.

    Why: paths through different leaves have different AS paths; without `as-path multipath-relax` only one is used,
        so a server on two leaves receives on one.
    Fix: write `bgp bestpath as-path multipath-relax` in the instance.
    Source: RFC 7938 section 5.2.2.
    """

    id = "bgp.multipath-relax"
    severity = Severity.WARNING
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, bgp in self.facts.bgp():
            if (
                bgp.ipv4 is not None
                and bgp.ipv4.max_paths > 1
                and "bgp bestpath as-path multipath-relax" not in bgp.statements
            ):
                yield self.finding(
                    f"{device} {bgp.vrf or 'default'}", "balances without multipath-relax", device=device, line=bgp.line
                )
