"""Which statements may stand where in an frr.conf: first words only, as FRR's own configuration nodes know them.

A line that is none is a slip (half a paste, a note without `!`), which FRR refuses or leaves out at its next start.
What follows the first word is for `vtysh -C` to judge. Source: FRR 8 to 10, the manual's chapters and `list` of vtysh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_EVERYWHERE = frozenset({"no", "exit", "end", "quit"})
_TOP = _words(
    "access-list affinity-map agentx allow-external-route-update allow-reserved-ranges babel banner bfd bgp debug "
    "domainname dump enable fabricd flexible-algorithm fpm frr hostname interface ip ipv6 isis key l2vpn line log "
    "mac mpls mpls-te netns nexthop-group nhrp ospf ospf6 password pbr pbr-map pseudowire rip ripng route-map router "
    "router-id rpki segment-routing service snmp table username vni vrf vrrp watchfrr zebra"
)
_VRF = _words("description evpn ip ipv6 mpls netns router-id rpki vni")
_INTERFACE = _words(
    "affinity bandwidth bfd description evpn ip ipv6 isis link-detect link-params mpls multicast neighbor nhrp "
    "openfabric ospf pbr-policy ptm-enable shutdown tunnel vrrp"
)
_ROUTE_MAP = _words("call continue description match on-match set")
_BFD = _words(
    "detect-multiplier echo echo-interval echo-mode label log-session-changes minimum-ttl passive-mode peer "
    "profile receive-interval shutdown transmit-interval"
)
_BGP = _words(
    "address-family aggregate-address bgp bmp coalesce-time distance exit-address-family import label "
    "maximum-paths neighbor network rd read-quanta redistribute rt rpki segment-routing sid table-map timers "
    "update-delay vnc vrf-policy write-quanta"
)
_FAMILY = _words(
    "advertise advertise-all-vni advertise-default-gw advertise-pip advertise-svi-ip aggregate-address autort bgp "
    "default-originate disable-ead-evi-rx disable-ead-evi-tx distance dup-addr-detection ead-es-frag "
    "ead-es-route-target enable-resolve-overlay-index exit-address-family exit-vni export flooding import label "
    "mac-vrf maximum-paths neighbor network nexthop rd redistribute route-target rt sid table-map use-es-l3nhg vni"
)
# sections whose lines are known; others (an IGP's, a key chain's) are left alone
_SECTIONS = {"vrf": _VRF, "interface": _INTERFACE, "route-map": _ROUTE_MAP, "bfd": _BFD, "router bgp": _BGP}
_NAMES = {"router bgp": "router bgp", "family": "an address family", "route-map": "a route-map", "bfd": "bfd"}


def strays(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, what is wrong with it) for each line that FRR would not take where it stands."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(None, 2)
        if not words or words[0][0] in "!#":
            continue
        first = words[0]
        if line[0] not in " \t":
            if first.startswith("exit") or first == "end":
                section = ""
                continue
            section = _section(words)
            if first not in _TOP and first not in _EVERYWHERE:
                yield number, f"`{_short(line)}` is no statement of FRR at the top of a file"
            continue
        if not section:
            yield number, f"`{_short(line)}` is indented, and no section is open above it"
        elif not _fits(first, section):
            yield number, f"`{_short(line)}` is no statement of FRR in {_NAMES.get(section, f'a {section}')}"
        if section in {"router bgp", "family"}:
            section = {"address-family": "family", "exit-address-family": "router bgp"}.get(first, section)


def _section(words: list[str]) -> str:
    if words[0] == "router":
        return "router bgp" if words[1:2] == ["bgp"] else "other"
    # `bfd` and `vrf NAME` open a section; `ip route`, `hostname` and the like do not
    if words[0] in _SECTIONS:
        return words[0]
    alone = {"key", "line", "l2vpn", "mpls", "nexthop-group", "pbr-map", "rpki", "segment-routing", "pseudowire"}
    return "other" if words[0] in alone else ""


def _fits(first: str, section: str) -> bool:
    known = _FAMILY if section == "family" else _SECTIONS.get(section)
    return known is None or first in known or first in _EVERYWHERE or first in {"exit-address-family", "exit-vni"}


def _short(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= 60 else f"{text[:57]}..."
