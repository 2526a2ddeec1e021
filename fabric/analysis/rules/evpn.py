"""EVPN in frr.conf: route distinguishers, route targets, what is advertised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.isolation import tenants_of_leaf
from fabric.analysis.rendered import FRR_CONF
from fabric.analysis.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem

_TWO_BYTES, _FOUR_BYTES = 0xFFFF, 0xFFFFFFFF


def _community_error(text: str) -> str:
    """Say why `A:B` is no extended community of 6 bytes, or nothing."""
    head, colon, tail = text.partition(":")
    if not colon or not tail.isdigit():
        return f"'{text}' is not of the form number:number"
    if "." in head:
        octets = head.split(".")
        if len(octets) != 4 or not all(o.isdigit() and int(o) <= 255 for o in octets):
            return f"'{head}' is no IPv4 address"
        return f"{tail} needs more than 16 bits after an IPv4 address" if int(tail) > _TWO_BYTES else ""
    if not head.isdigit() or int(head) > _FOUR_BYTES:
        return f"'{head}' is no AS number"
    room = _FOUR_BYTES if int(head) <= _TWO_BYTES else _TWO_BYTES
    return f"{tail} does not fit after AS {head} (at most {room})" if int(tail) > room else ""


class RouteTargetsExplicit(Rule):
    """Each tenant VRF says its import and export route targets.

    Why: automatic targets are AS:VNI, and every leaf has an AS of its own, so no leaf imports another's routes. When
        the list is lost while the configuration loads, isolation is lost with it.
    Fix: write `route-target both <2-byte AS>:<VNI>` in the L2VPN EVPN family of the VRF.
    Source: RFC 4364 section 4.3, frr issue 17342.
    """

    id = "evpn.route-targets"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, bgp in self.facts.bgp():
            if not bgp.vrf or bgp.vrf not in self.facts.vrf_names:
                continue
            family = bgp.evpn
            for way, targets in (
                (("import", family.rt_import), ("export", family.rt_export))
                if family
                else (("import", {}), ("export", {}))
            ):
                if not targets:
                    yield self.finding(
                        f"{device} {bgp.vrf}",
                        f"has no {way} route target",
                        device=device,
                        line=family.line if family else bgp.line,
                    )


class RouteTargetFits(Rule):
    """Route targets fit into their six bytes.

    Why: a 4-byte AS leaves 16 bits for the number; FRR refuses `4200000001:100000` only when it loads the file.
    Fix: use the site's 2-byte route-target AS.
    Source: RFC 4360 section 3, RFC 5668.
    """

    id = "evpn.route-target-fits"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        judged: dict[str, str] = {}
        for device, bgp in self.facts.bgp():
            family = bgp.evpn
            if family is None:
                continue
            for target, line in (*family.rt_import.items(), *family.rt_export.items()):
                text = judged.get(target)
                if text is None:
                    text = judged[target] = _community_error(target)
                if text:
                    yield self.finding(
                        f"{device} {bgp.vrf or 'default'}", f"route target {target}: {text}", device=device, line=line
                    )


class RouteDistinguisher(Rule):
    """Each VRF on each router has a route distinguisher of its own that fits.

    Why: two routers with one RD hide each other's equal prefixes: ECMP over two leaves becomes one path, silently.
    Fix: write `rd <router-id>:<number up to 65535>`.
    Source: RFC 4364 section 4.2, RFC 7432 section 7.9.
    """

    id = "evpn.rd"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        for device, bgp in self.facts.bgp():
            family = bgp.evpn
            if not bgp.vrf or family is None or bgp.vrf not in self.facts.vrf_names:
                continue
            subject = f"{device} {bgp.vrf}"
            if not family.rd:
                yield self.finding(subject, "has no rd", device=device, line=family.line)
                continue
            text = _community_error(family.rd)
            other = seen.setdefault(family.rd, subject)
            if text or other != subject:
                yield self.finding(
                    subject, f"rd {family.rd}: {text or f'is also that of {other}'}", device=device, line=family.rd_line
                )


class AdvertisesTenants(Rule):
    """Tenant VRFs advertise their IPv4 routes into EVPN, and the default instance advertises all VNIs, once.

    Why: without `advertise ipv4 unicast` a leaf keeps its servers to itself; without `advertise-all-vni` zebra's VNIs
        are not used; FRR refuses a second instance with it.
    Fix: both lines belong to every leaf and gateway with tenants: the first in each VRF, the second in the default.
    """

    id = "evpn.advertise"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        home = tenants_of_leaf(self.plan)
        for device, conf in self.facts.routers.items():
            vrfs = [b for b in conf.bgp.values() if b.vrf in self.facts.vrf_names]
            for bgp in vrfs:
                own = device in self.plan.gateways or self.plan.tenant_of_vrf[bgp.vrf].name in home.get(device, ())
                if own and (bgp.evpn is None or not any(a.startswith("ipv4 unicast") for a in bgp.evpn.advertise)):
                    yield self.finding(
                        f"{device} {bgp.vrf}", "does not advertise ipv4 unicast", device=device, line=bgp.line
                    )
                if bgp.evpn is not None and bgp.evpn.all_vni:
                    yield self.finding(
                        f"{device} {bgp.vrf}",
                        "has advertise-all-vni in a tenant VRF",
                        device=device,
                        line=bgp.evpn.all_vni,
                    )
            default = conf.default
            if vrfs and (default is None or default.evpn is None or not default.evpn.all_vni):
                yield self.finding(
                    device,
                    "has tenant VRFs but no advertise-all-vni",
                    device=device,
                    line=default.line if default else 0,
                )
