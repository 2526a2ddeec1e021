"""Reads an frr.conf into a small typed model, quickly and with line numbers.

It knows the statements that this project's rules ask about and keeps the rest as words. It is not a syntax checker
(`vtysh -C` is): what it does not know it leaves alone. Sections are told by indentation, as FRR itself writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

Words = list[str]


@dataclass(slots=True)
class Neighbor:
    """A BGP neighbor or peer group of one instance. `remote_as` is digits, `external` or `internal`."""

    name: str
    line: int
    group: str = ""
    remote_as: str = ""
    is_group: bool = False
    is_interface: bool = False
    bfd: bool = False
    bfd_profile: str = ""
    shutdown: bool = False


@dataclass(slots=True)
class AddressFamily:
    """One address family of a BGP instance: what is active, redistributed, announced, imported and exported."""

    name: str
    line: int
    active: dict[str, int] = field(default_factory=dict)
    route_maps: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    filters: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    max_prefix: dict[str, tuple[int, int]] = field(default_factory=dict)
    redistribute: dict[str, tuple[str, int]] = field(default_factory=dict)
    networks: dict[str, int] = field(default_factory=dict)
    advertise: dict[str, int] = field(default_factory=dict)
    rt_import: dict[str, int] = field(default_factory=dict)
    rt_export: dict[str, int] = field(default_factory=dict)
    import_vrf: dict[str, int] = field(default_factory=dict)
    import_map: str = ""
    other: list[tuple[int, Words]] = field(default_factory=list)
    rd: str = ""
    rd_line: int = 0
    max_paths: int = 0
    all_vni: int = 0
    default_originate: int = 0

    def route_map(self, names: tuple[str, ...], direction: str) -> str:
        """Return the first route-map set for one of `names` (neighbor, then its group) in a direction, or nothing."""
        return next((self.route_maps[n, direction][0] for n in names if (n, direction) in self.route_maps), "")

    def prefix_list(self, names: tuple[str, ...], direction: str) -> str:
        """Return the first prefix list set for one of `names` in a direction, or nothing."""
        return next((self.filters[n, direction][0] for n in names if (n, direction) in self.filters), "")


@dataclass(slots=True)
class Bgp:
    """One `router bgp` block; `vrf` is empty for the default instance."""

    asn: int
    vrf: str
    line: int
    router_id: str = ""
    neighbors: dict[str, Neighbor] = field(default_factory=dict)
    families: dict[str, AddressFamily] = field(default_factory=dict)
    statements: dict[str, int] = field(default_factory=dict)

    @property
    def ipv4(self) -> AddressFamily | None:
        """The IPv4 unicast family, if there is one."""
        return self.families.get("ipv4 unicast")

    @property
    def evpn(self) -> AddressFamily | None:
        """The L2VPN EVPN family, if there is one."""
        return self.families.get("l2vpn evpn")

    def remote_as(self, neighbor: Neighbor) -> str:
        """Return a neighbor's remote AS, its own or its group's."""
        group = self.neighbors.get(neighbor.group)
        return neighbor.remote_as or (group.remote_as if group else "")

    def names(self, neighbor: Neighbor) -> tuple[str, ...]:
        """Return the names whose settings a neighbor follows: its own, then its group's."""
        return (neighbor.name, neighbor.group) if neighbor.group else (neighbor.name,)


@dataclass(slots=True)
class Vrf:
    """A `vrf` block: its L3VNI (0 when none) and static routes as words."""

    name: str
    line: int
    vni: int = 0
    vni_line: int = 0
    routes: list[tuple[int, Words]] = field(default_factory=list)


@dataclass(slots=True)
class RouteMapEntry:
    """One numbered entry of a route-map."""

    action: str
    sequence: int
    line: int
    matches: list[Words] = field(default_factory=list)
    sets: list[Words] = field(default_factory=list)


@dataclass(slots=True)
class PrefixEntry:
    """One line of a prefix list; `ge` and `le` are 0 when not said."""

    action: str
    prefix: str
    ge: int
    le: int
    line: int


@dataclass(slots=True)
class FrrConf:
    """What one frr.conf says."""

    hostname: str = ""
    hostname_line: int = 0
    vrfs: dict[str, Vrf] = field(default_factory=dict)
    bgp: dict[str, Bgp] = field(default_factory=dict)
    extra_bgp: list[Bgp] = field(default_factory=list)
    interfaces: dict[str, list[tuple[int, Words]]] = field(default_factory=dict)
    bfd_profiles: dict[str, dict[str, str]] = field(default_factory=dict)
    prefix_lists: dict[str, list[PrefixEntry]] = field(default_factory=dict)
    route_maps: dict[str, list[RouteMapEntry]] = field(default_factory=dict)
    community_lists: dict[str, list[Words]] = field(default_factory=dict)
    routes: list[tuple[int, Words]] = field(default_factory=list)
    lines: int = 0

    @property
    def default(self) -> Bgp | None:
        """The BGP instance of the default VRF."""
        return self.bgp.get("")


@lru_cache(maxsize=65536)
def _split(line: str) -> tuple[str, ...]:
    return tuple(line.split())


class _Reader:
    """Line by line; `self._inside` handles indented lines of the open section."""

    def __init__(self) -> None:
        self.conf = FrrConf()
        self._inside: Callable[[int, Words], None] = self._ignore
        self._vrf = Vrf("", 0)
        self._bgp = Bgp(0, "", 0)
        self._family: AddressFamily | None = None
        self._entry = RouteMapEntry("", 0, 0)
        self._interface: list[tuple[int, Words]] = []
        self._profile: dict[str, str] = {}
        self._top: dict[str, Callable[[int, Words], None]] = {
            "hostname": self._hostname,
            "vrf": self._open_vrf,
            "router": self._open_router,
            "interface": self._open_interface,
            "route-map": self._open_route_map,
            "bfd": self._open_bfd,
            "ip": self._top_ip,
            "bgp": self._top_bgp,
        }
        self._family_words: dict[str, Callable[[AddressFamily, int, Words], None]] = {
            "neighbor": _family_neighbor,
            "redistribute": _family_redistribute,
            "network": lambda family, n, w: family.networks.__setitem__(w[1], n),
            "maximum-paths": lambda family, _, w: setattr(family, "max_paths", _number(w[1])),
            "advertise-all-vni": lambda family, n, _: setattr(family, "all_vni", n),
            "advertise": lambda family, n, w: family.advertise.__setitem__(" ".join(w[1:]), n),
            "default-originate": lambda family, n, _: setattr(family, "default_originate", n),
            "rd": _family_rd,
            "route-target": _family_route_target,
            "import": _family_import,
        }

    def read(self, text: str) -> FrrConf:
        number = 0
        for number, line in enumerate(text.splitlines(), 1):
            words = list(_split(line))
            if not words or words[0][0] in "!#":
                continue
            if line[0] == " ":
                self._inside(number, words)
            elif not words[0].startswith(("exit", "end")):
                self._inside = self._ignore
                self._top.get(words[0], self._ignore)(number, words)
        self.conf.lines = number
        return self.conf

    def _ignore(self, number: int, words: Words) -> None:
        pass

    def _hostname(self, number: int, words: Words) -> None:
        self.conf.hostname, self.conf.hostname_line = " ".join(words[1:]), number

    def _open_vrf(self, number: int, words: Words) -> None:
        self._vrf = self.conf.vrfs.setdefault(words[-1], Vrf(words[-1], number))
        self._inside = self._in_vrf

    def _in_vrf(self, number: int, words: Words) -> None:
        if words[0] == "vni" and len(words) > 1:
            self._vrf.vni, self._vrf.vni_line = _number(words[1]), number
        elif words[:2] == ["ip", "route"]:
            self._vrf.routes.append((number, words))

    def _open_router(self, number: int, words: Words) -> None:
        if words[1:2] != ["bgp"] or len(words) < 3:
            return
        vrf = words[4] if words[3:4] == ["vrf"] and len(words) > 4 else ""
        self._bgp = Bgp(_number(words[2]), vrf, number)
        known = self.conf.bgp.setdefault(vrf, self._bgp)
        if known is not self._bgp:
            if known.asn == self._bgp.asn:
                self._bgp = known
            else:
                self.conf.extra_bgp.append(self._bgp)
        self._family = None
        self._inside = self._in_bgp

    def _in_bgp(self, number: int, words: Words) -> None:
        first = words[0]
        if first == "address-family":
            name = " ".join(words[1:3])
            self._family = self._bgp.families.setdefault(name, AddressFamily(name, number))
        elif first == "exit-address-family":
            self._family = None
        elif self._family is not None:
            self._in_family(self._family, number, words)
        elif first == "neighbor":
            self._neighbor(number, words)
        elif first == "bgp" and words[1:2] == ["router-id"] and len(words) > 2:
            self._bgp.router_id = words[2]
        else:
            self._bgp.statements[" ".join(words)] = number

    def _in_family(self, family: AddressFamily, number: int, words: Words) -> None:
        handler = self._family_words.get(words[0])
        if handler and (len(words) > 1 or words[0] in {"advertise-all-vni", "default-originate"}):
            handler(family, number, words)
        else:
            family.other.append((number, words))

    def _neighbor(self, number: int, words: Words) -> None:
        if len(words) < 3:
            return
        neighbor = self._bgp.neighbors.get(words[1])
        if neighbor is None:
            neighbor = self._bgp.neighbors[words[1]] = Neighbor(words[1], number)
        rest = words[2:]
        if rest[0] == "interface":
            neighbor.is_interface = True
            rest = rest[1:] or ["-"]
        word = rest[0]
        if word == "peer-group":
            neighbor.group, neighbor.is_group = (rest[1], False) if len(rest) > 1 else ("", True)
        elif word == "remote-as" and len(rest) > 1:
            neighbor.remote_as = rest[1]
        elif word == "bfd":
            neighbor.bfd = True
            neighbor.bfd_profile = rest[2] if rest[1:2] == ["profile"] and len(rest) > 2 else neighbor.bfd_profile
        elif word == "shutdown":
            neighbor.shutdown = True

    def _open_interface(self, number: int, words: Words) -> None:
        del number
        self._interface = self.conf.interfaces.setdefault(words[-1] if len(words) == 2 else words[1], [])
        self._inside = self._in_interface

    def _in_interface(self, number: int, words: Words) -> None:
        self._interface.append((number, words))

    def _open_route_map(self, number: int, words: Words) -> None:
        if len(words) < 4:
            return
        self._entry = RouteMapEntry(words[2], _number(words[3]), number)
        self.conf.route_maps.setdefault(words[1], []).append(self._entry)
        self._inside = self._in_route_map

    def _in_route_map(self, number: int, words: Words) -> None:
        del number
        if words[0] == "match":
            self._entry.matches.append(words[1:])
        elif words[0] == "set":
            self._entry.sets.append(words[1:])

    def _open_bfd(self, number: int, words: Words) -> None:
        del number, words
        self._profile = {}
        self._inside = self._in_bfd

    def _in_bfd(self, number: int, words: Words) -> None:
        del number
        if words[0] == "profile" and len(words) > 1:
            self._profile = self.conf.bfd_profiles.setdefault(words[1], {})
        elif len(words) > 1:
            self._profile[words[0]] = words[1]

    def _top_ip(self, number: int, words: Words) -> None:
        if words[1:2] == ["route"]:
            self.conf.routes.append((number, words))
        elif words[1:2] == ["prefix-list"]:
            self._prefix_list(number, words)

    def _prefix_list(self, number: int, words: Words) -> None:
        rest = words[3:]
        if rest[:1] == ["seq"]:
            rest = rest[2:]
        if len(rest) < 2:
            return
        bounds = dict(zip(rest[2::2], rest[3::2], strict=False))
        entry = PrefixEntry(rest[0], rest[1], _number(bounds.get("ge", "0")), _number(bounds.get("le", "0")), number)
        self.conf.prefix_lists.setdefault(words[2], []).append(entry)

    def _top_bgp(self, number: int, words: Words) -> None:
        del number
        if "community-list" in words[1:2] or "large-community-list" in words[1:2]:
            rest = words[2:]
            if rest[:1] in (["standard"], ["expanded"]):
                rest = rest[1:]
            if rest:
                self.conf.community_lists.setdefault(rest[0], []).append(rest[1:])


def _number(word: str) -> int:
    return int(word) if word.isdigit() else 0


def _family_neighbor(family: AddressFamily, number: int, words: Words) -> None:
    if len(words) < 3:
        return
    if words[2] == "activate":
        family.active[words[1]] = number
    elif words[2] == "route-map" and len(words) > 4:
        family.route_maps[words[1], words[4]] = (words[3], number)
    elif words[2] == "prefix-list" and len(words) > 4:
        family.filters[words[1], words[4]] = (words[3], number)
    elif words[2] == "maximum-prefix" and len(words) > 3:
        family.max_prefix[words[1]] = (_number(words[3]), number)
    else:
        family.other.append((number, words))


def _family_redistribute(family: AddressFamily, number: int, words: Words) -> None:
    family.redistribute[words[1]] = (words[3] if words[2:3] == ["route-map"] and len(words) > 3 else "", number)


def _family_rd(family: AddressFamily, number: int, words: Words) -> None:
    family.rd, family.rd_line = words[1], number


def _family_route_target(family: AddressFamily, number: int, words: Words) -> None:
    for target in words[2:]:
        if words[1] in {"import", "both"}:
            family.rt_import[target] = number
        if words[1] in {"export", "both"}:
            family.rt_export[target] = number


def _family_import(family: AddressFamily, number: int, words: Words) -> None:
    if words[1:3] == ["vrf", "route-map"] and len(words) > 3:
        family.import_map = words[3]
    else:
        family.import_vrf[words[-1]] = number


def parse(text: str) -> FrrConf:
    """Read the text of an frr.conf."""
    return _Reader().read(text)
