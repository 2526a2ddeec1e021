"""Devices and ports that are only called something else.

A family of devices (same stem, numbers after it) that only the map has is matched with a family that only the plan has
when they use the same ports. Server ports are matched by evidence: they sit on the same switch ports.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fabric.hardware.ranges import natural_key
from fabric.interop.comparing.finding import RENAMED, Finding, names
from fabric.interop.names import split_index
from fabric.plan import BORDER_LEAF, EDGE, GATEWAY, LEAF, SERVER, SPINE, SUPER_SPINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.interop.cable_map import Cable, CableEnd
    from fabric.plan import Plan

_ALIKE = 0.5
_SURE = 0.9
_ROLES = {
    SERVER: SERVER,
    GATEWAY: GATEWAY,
    LEAF: LEAF,
    BORDER_LEAF: LEAF,
    SPINE: SPINE,
    SUPER_SPINE: SUPER_SPINE,
    EDGE: EDGE,
}
Families = dict[str, dict[str, str]]


@dataclass
class Renames:
    """Map's word to plan's word: devices, ports of a server family, and other spellings of switch ports."""

    devices: dict[str, str] = field(default_factory=dict)
    ports: dict[tuple[str, str], str] = field(default_factory=dict)
    spellings: dict[tuple[str, str], str] = field(default_factory=dict)

    def apply(self, cable: Cable) -> Cable:
        """Return the cable in the plan's words."""
        return replace(cable, a=self.end(cable.a), b=self.end(cable.b))

    def end(self, end: CableEnd) -> CableEnd:
        """Return an end in the plan's words."""
        device = self.devices.get(end.device, end.device)
        port = self.ports.get((split_index(device)[0], end.port), end.port)
        port = self.spellings.get((device, port), port)
        return end if (device, port) == end.place else replace(end, device=device, port=port)

    def findings(self) -> list[Finding]:
        """Say each family once."""
        families: dict[tuple[str, str], list[str]] = {}
        for theirs, ours in self.devices.items():
            key = (split_index(theirs)[0], split_index(ours)[0])
            families.setdefault(key, []).append(f"{theirs} is {ours}")
        found = [
            Finding(RENAMED, f"{theirs}* is called {ours}* in the plan ({len(rows)} devices)", 0, tuple(rows), False)
            for (theirs, ours), rows in families.items()
        ]
        ports: dict[str, list[str]] = {}
        for (stem, theirs), ours in self.ports.items():
            ports.setdefault(stem, []).append(f"{theirs} is {ours}")
        for stem, rows in ports.items():
            found.append(Finding(RENAMED, f"ports of {stem}* have other names: {names(rows)}", 0, (), False))
        return found


def find_renames(plan: Plan, cables: Iterable[Cable]) -> Renames:
    """Find what is only named differently. Nothing is guessed for a name that both sides know."""
    cables = list(cables)
    renames = Renames(spellings=_spellings(plan))
    used: dict[str, set[str]] = {}
    roles: dict[str, str] = {}
    for cable in cables:
        for end in (cable.a, cable.b):
            used.setdefault(end.device, set()).add(renames.spellings.get(end.place, end.port))
            roles.setdefault(end.device, _ROLES.get(end.role, ""))
    renames.devices = _device_renames(plan, used, roles)
    renames.ports = _port_renames(plan, [renames.apply(cable) for cable in cables])
    return renames


def _spellings(plan: Plan) -> dict[tuple[str, str], str]:
    """Other ways to write a port: the device's own interface name, and `E1/33/1` for an unbroken `E1/33`."""
    found = {}
    for switch in plan.switches.values():
        for port in switch.ports:
            found[switch.name, port.interface] = port.name
            if not port.subport:
                found[switch.name, f"{port.name}/1"] = port.name
    for link in plan.links.values():
        for end in (link.a, link.b):
            if end.interface != end.port:
                found[end.device, end.interface] = end.port
    return found


def _device_renames(plan: Plan, used: dict[str, set[str]], roles: dict[str, str]) -> dict[str, str]:
    planned = {name: {link.end(name).port for link in plan.links_of.get(name, ())} for name in plan.kind_of}
    theirs = _families(name for name in used if name not in plan.kind_of)
    ours = _families(name for name in planned if name not in used)
    scores = []
    for their_stem, their_devices in theirs.items():
        for our_stem, our_devices in ours.items():
            pairs = _pairs(their_devices, our_devices)
            if not pairs or not _same_role(plan, pairs, roles):
                continue
            alike = sum(_overlap(used[a], planned[b]) for a, b in pairs) / len(pairs)
            spelt = difflib.SequenceMatcher(None, their_stem.replace("_", "-"), our_stem).ratio()
            if alike >= _ALIKE or (spelt == 1.0 and len(pairs) == len(their_devices)):
                scores.append((-alike, len(our_devices) != len(their_devices), -spelt, their_stem, our_stem, pairs))
    renamed: dict[str, str] = {}
    taken: set[str] = set()
    for *_, their_stem, our_stem, pairs in sorted(scores):
        if their_stem not in taken and our_stem not in taken:
            taken |= {their_stem, our_stem}
            renamed.update(pairs)
    return renamed


def _families(devices: Iterable[str]) -> Families:
    families: Families = {}
    for device in sorted(devices, key=natural_key):
        stem, number = split_index(device)
        families.setdefault(stem, {})[number.lstrip("0") or number[-1:]] = device
    return families


def _pairs(theirs: dict[str, str], ours: dict[str, str]) -> list[tuple[str, str]]:
    """Pair by number; by order when the numbering starts elsewhere but there are as many."""
    if set(theirs) <= set(ours):
        return [(device, ours[number]) for number, device in theirs.items()]
    return list(zip(theirs.values(), ours.values(), strict=True)) if len(theirs) == len(ours) else []


def _same_role(plan: Plan, pairs: list[tuple[str, str]], roles: dict[str, str]) -> bool:
    return all(roles[theirs] in {"", _ROLES[plan.kind_of[ours]]} for theirs, ours in pairs)


def _overlap(left: set[str], right: set[str]) -> float:
    return len(left & right) / len(left | right) if left or right else 0.0


def _port_renames(plan: Plan, cables: list[Cable]) -> dict[tuple[str, str], str]:
    votes: dict[tuple[str, str], Counter[str]] = {}
    given: dict[str, set[str]] = {}
    known: dict[str, set[str]] = {}
    for server in plan.servers.values():
        known.setdefault(split_index(server.name)[0], set()).update(port.name for port in server.ports)
    for cable in cables:
        for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
            if here.device not in plan.servers:
                continue
            stem = split_index(here.device)[0]
            given.setdefault(stem, set()).add(here.port)
            link = plan.link_at.get(there.place)
            if link and link.far(there.device).device == here.device:
                votes.setdefault((stem, here.port), Counter())[link.far(there.device).port] += 1
    renamed = {}
    for (stem, port), counted in sorted(votes.items(), key=lambda item: natural_key(item[0][1])):
        best, count = counted.most_common(1)[0]
        if port not in known[stem] and best not in given[stem] and count >= _SURE * sum(counted.values()):
            renamed[stem, port] = best
    return renamed
