"""FRR's JSON outputs as plain Python, tolerant of the shapes of different versions.

Sources: FRR's user guide and its `show ... json` commands, versions 8.4 to 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.control_plane.sonic_cli import cli_peers, is_cli
from validators.devices.answers import document

if TYPE_CHECKING:
    from collections.abc import Iterator


def _table(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def bgp_peers(text: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return neighbour -> address family -> peer, over all VRFs, from `show bgp [vrf all] summary json`.

    What sonic-cli prints instead is read too.
    """
    if is_cli(text):
        return cli_peers(text)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    data = _table(document(text, "`show bgp summary json`"))
    tables = (
        [data] if "ipv4Unicast" in data or "l2VpnEvpn" in data else [v for v in data.values() if isinstance(v, dict)]
    )
    for table in tables:
        for family, body in table.items():
            for neighbour, peer in _table(_table(body).get("peers")).items():
                found.setdefault(neighbour, {})[family] = peer
    return found


def bfd_peers(text: str) -> list[dict[str, Any]]:
    """Return all BFD peers from `show bfd peers json` or `show bfd peers counters json`."""
    data = document(text, "`show bfd peers json`")
    found: list[dict[str, Any]] = []
    for entry in data if isinstance(data, list) else [data]:
        if isinstance(entry, dict):
            found += entry["peers"] if isinstance(entry.get("peers"), list) else [entry] if "peer" in entry else []
    return found


def bfd_of(peers: list[dict[str, Any]], neighbour: str) -> dict[str, Any] | None:
    """Return the BFD peer of a BGP neighbour: its address, or for an unnumbered session its interface."""
    return next((peer for peer in peers if neighbour in (peer.get("peer"), peer.get("interface"))), None)


def l3_vnis(text: str) -> dict[int, dict[str, Any]]:
    """Return layer 3 VNIs from `show vrf vni json` (`vrf`, `state`) or `show evpn vni json` (`tenantVrf`)."""
    data = _table(document(text, "`show vrf vni json`"))
    entries = data["vrfs"] if isinstance(data.get("vrfs"), list) else list(data.values())
    return {int(e["vni"]): e for e in entries if isinstance(e, dict) and "vni" in e and e.get("type", "L3") == "L3"}


def rmacs(text: str) -> dict[int, dict[str, str]]:
    """Return VNI -> remote VTEP -> router MAC from `show evpn rmac vni all json`."""
    data = _table(document(text, "`show evpn rmac vni all json`"))
    return {
        int(vni): {
            e["vtepIp"]: str(e.get("routerMac", "")) for e in table.values() if isinstance(e, dict) and "vtepIp" in e
        }
        for vni, table in data.items()
        if vni.isdigit() and isinstance(table, dict)
    }


@dataclass(frozen=True, slots=True)
class PrefixRoute:
    """An EVPN type 5 path: route distinguisher, prefix, next hop (VTEP) and route targets."""

    rd: str
    prefix: str
    vtep: str
    targets: tuple[str, ...]


def prefix_routes(text: str) -> list[PrefixRoute]:
    """Return the type 5 paths from `show bgp l2vpn evpn route type prefix json`."""
    data = _table(document(text, "`show bgp l2vpn evpn route type prefix json`"))
    return [
        route
        for rd, table in data.items()
        if isinstance(table, dict)
        for body in table.values()
        if isinstance(body, dict)
        for path in _paths(body.get("paths"))
        if (route := _prefix_route(rd, path)) is not None
    ]


def _paths(paths: Any) -> Iterator[dict[str, Any]]:
    for path in paths if isinstance(paths, list) else ():
        if isinstance(path, list):
            yield from (inner for inner in path if isinstance(inner, dict))
        elif isinstance(path, dict):
            yield path


def _prefix_route(rd: str, path: dict[str, Any]) -> PrefixRoute | None:
    if "ip" not in path:
        return None
    words = str(_table(path.get("extendedCommunity")).get("string", "")).split()
    targets = tuple(sorted(word.removeprefix("RT:") for word in words if word.startswith("RT:")))
    hops = path.get("nexthops")
    vtep = str(hops[0].get("ip", "")) if isinstance(hops, list) and hops and isinstance(hops[0], dict) else ""
    return PrefixRoute(rd, f"{path['ip']}/{path.get('ipLen', 32)}", vtep, targets)


def routes(text: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return VRF -> prefix -> entries, from `show ip route [vrf all] json`."""
    data = _table(document(text, "`show ip route json`"))
    if data and all("/" in key for key in data):
        return {"default": data}
    return {vrf: table for vrf, table in data.items() if isinstance(table, dict)}


def width(entries: list[dict[str, Any]]) -> int:
    """Return how many next hops of the selected entry are in the kernel; 0 when none is installed."""
    for entry in entries:
        if entry.get("selected") or entry.get("installed"):
            return sum(1 for hop in entry.get("nexthops", ()) if hop.get("fib") or hop.get("active"))
    return 0
