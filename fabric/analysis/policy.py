"""Asks FRR's route-maps and prefix lists whether they let a prefix through, as bgpd would."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.analysis.prefixes import network

if TYPE_CHECKING:
    from fabric.analysis.frr_conf import FrrConf, PrefixEntry


def in_list(entries: list[PrefixEntry], prefix: IPv4Network) -> bool:
    """Say whether a prefix list permits a prefix: first match decides, no match denies."""
    for entry in entries:
        if entry.prefix == "any":
            return entry.action == "permit"
        net = network(entry.prefix)
        if net is None:
            continue
        low = entry.ge or net.prefixlen
        high = entry.le or (32 if entry.ge else net.prefixlen)
        if low <= prefix.prefixlen <= high and prefix.network_address in net:
            return entry.action == "permit"
    return False


def permits(conf: FrrConf, route_map: str, prefix: str) -> bool:
    """Say whether a route-map lets a prefix through, looking at prefix lists only; no route-map permits.

    Entries with matches of other kinds (interface, community, vni) are taken as matching.
    """
    if not route_map:
        return True
    net = IPv4Network(prefix)
    for entry in sorted(conf.route_maps.get(route_map, []), key=lambda e: e.sequence):
        lists = [m[-1] for m in entry.matches if m[-2:-1] == ["prefix-list"]]
        if all(in_list(conf.prefix_lists.get(name, []), net) for name in lists):
            return entry.action == "permit"
    return False
