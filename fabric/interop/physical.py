"""From links to things one buys and holds: cages, transceivers, and cables, of which some have several legs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import End, Link, Plan

# cable assemblies with the plugs moulded on: they need no transceiver in the cage
_ASSEMBLIES = frozenset({"dac", "acc", "aec", "aoc", "cat6", "cat6a", "copper", "rj45"})


@dataclass(frozen=True, slots=True)
class Cage:
    """A cage with a cable in it: `mode` is how it is split (`2x400G`), `connector` its form (`OSFP`).

    `connector` is empty where the inventory does not say the model: an edge router, a gateway's external port.
    """

    device: str
    cage: str
    mode: str
    connector: str


@dataclass(frozen=True, slots=True)
class PhysicalCable:
    """One cable as bought: `legs` are the links it carries, of `ways` that it could; `length_m` is its longest leg."""

    legs: tuple[Link, ...]
    ways: int
    speed: int
    medium: str
    length_m: int
    ends: tuple[Cage, ...]


def is_assembly(medium: str) -> bool:
    """Whether a cable of this medium brings its own plugs, so that no transceiver is bought for it."""
    return medium.lower() in _ASSEMBLIES


class Cages:
    """Looks up the cage behind any link end of a plan."""

    def __init__(self, plan: Plan) -> None:
        from fabric.hardware.profiles import nic_models, switch_models, switch_profile

        self._modes: dict[tuple[str, str], Cage] = {}
        profiles = {model: switch_profile(model) for model in switch_models()}
        for switch in plan.switches.values():
            modes = {breakout.cage: breakout.mode for breakout in switch.breakouts}
            known = profiles[switch.model].cages if switch.model in profiles else {}
            for port in switch.ports:
                connector = known[port.cage].connector if port.cage in known else ""
                mode = modes.get(port.cage, f"1x{port.speed}G")
                self._modes[switch.name, port.name] = Cage(switch.name, f"E1/{port.cage}", mode, connector)
        nics = nic_models()
        for server in plan.servers.values():
            for nic_port in server.ports:
                connector = nics[nic_port.model].connector if nic_port.model in nics else ""
                mode = f"1x{nic_port.speed}G"
                self._modes[server.name, nic_port.name] = Cage(server.name, nic_port.name, mode, connector)
        self._inside = {
            (gateway.name, plan.links[uplink].a.port): nics[gateway.nic].connector
            for gateway in plan.gateways.values()
            for uplink in gateway.uplinks
            if gateway.nic in nics
        }

    def of(self, end: End, speed: int) -> Cage:
        """Return the cage of a link end; a device without a port list (gateway, edge) gets one cage a port."""
        known = self._modes.get((end.device, end.port))
        return known or Cage(end.device, end.port, f"1x{speed}G", self._inside.get((end.device, end.port), ""))


def ways(mode: str) -> int:
    """How many logical ports a breakout mode makes: 2 for `2x400G`."""
    head, _, _ = mode.partition("x")
    return int(head) if head.isdecimal() else 1


def physical_cables(plan: Plan, links: Iterable[Link]) -> list[PhysicalCable]:
    """Group links into cables: links that share a broken-out cage are legs of one breakout cable. Keeps plan order."""
    cages = Cages(plan)
    groups: dict[tuple[object, ...], list[Link]] = {}
    ends: dict[tuple[object, ...], dict[Cage, None]] = {}
    for link in links:
        pair = (cages.of(link.a, link.speed), cages.of(link.b, link.speed))
        split = tuple((cage.device, cage.cage) for cage in pair if ways(cage.mode) > 1)
        key: tuple[object, ...] = split or (link.id,)
        groups.setdefault(key, []).append(link)
        ends.setdefault(key, {}).update(dict.fromkeys(pair))
    return [_cable(tuple(legs), tuple(ends[key])) for key, legs in groups.items()]


def _cable(legs: tuple[Link, ...], ends: tuple[Cage, ...]) -> PhysicalCable:
    first = legs[0]
    most = max(ways(cage.mode) for cage in ends)
    return PhysicalCable(legs, most, first.speed, first.medium, max(leg.length_m for leg in legs), ends)
