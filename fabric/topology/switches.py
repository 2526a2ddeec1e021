"""Switches before they are decided: which cages serve which purpose, and which ports are still free."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from fabric.hardware.profiles import SwitchProfile, mode_speed, switch_models, switch_profile
from fabric.hardware.ranges import parse_ports

if TYPE_CHECKING:
    from fabric.inventory.load import Inventory, Path_
    from fabric.inventory.models import SwitchClass, Zone
    from fabric.plan import Breakout, Port
    from fabric.problem import Problem

DOWN, UP = "down", "up"


@dataclass(frozen=True)
class ClassPorts:
    """The ports every switch of a class has: all logical ports in cage order, and the ports of each (zone, speed)."""

    profile: SwitchProfile
    ports: tuple[Port, ...]
    breakouts: tuple[Breakout, ...]
    zones: dict[tuple[str, int], tuple[Port, ...]]

    @cached_property
    def by_name(self) -> dict[tuple[str, int, str], Port]:
        """Ports by (zone, speed, port name)."""
        return {(zone, speed, port.name): port for (zone, speed), ports in self.zones.items() for port in ports}

    def capacity(self, zone: str, speed: int) -> int:
        """How many ports of that speed the zone has on one switch."""
        return len(self.zones.get((zone, speed), ()))

    def speeds(self, zone: str) -> tuple[int, ...]:
        """The port speeds of a zone, in Gb/s."""
        return tuple(speed for name, speed in self.zones if name == zone)


@dataclass
class Draft:
    """One switch while it is being filled. `used` maps a port name to a link id."""

    name: str
    kind: str
    index: int
    ports: ClassPorts
    used: dict[str, str] = field(default_factory=dict)
    pod: str = ""
    _next: dict[tuple[str, int], int] = field(default_factory=dict)

    def free(self, zone: str, speed: int) -> int:
        """How many ports of the zone and speed are unused."""
        return sum(1 for port in self.ports.zones.get((zone, speed), ()) if port.name not in self.used)

    def peek(self, zone: str, speed: int) -> Port | None:
        """The first unused port of the zone and speed."""
        ports = self.ports.zones.get((zone, speed), ())
        at = self._next.get((zone, speed), 0)
        while at < len(ports) and ports[at].name in self.used:
            at += 1
        self._next[zone, speed] = at
        return ports[at] if at < len(ports) else None

    def has(self, zone: str, speed: int, name: str) -> Port | None:
        """The unused port of that name, if the zone and speed have it."""
        if name in self.used:
            return None
        return self.ports.by_name.get((zone, speed, name))


def class_ports(inventory: Inventory, path: Path_, spec: SwitchClass, problems: list[Problem]) -> ClassPorts | None:
    """Work out the ports of a switch class; adds problems and returns None when it cannot be built."""
    if spec.model not in switch_models():
        fix = f"known models: {', '.join(switch_models())}"
        problems.append(inventory.problem("hardware.model", (*path, "model"), spec.model, "no such switch model", fix))
        return None
    profile = switch_profile(spec.model)
    modes: dict[int, tuple[str, str]] = {}
    before = len(problems)
    for where, zone_name, zone in _zones(spec):
        _claim(inventory, (*path, *where), profile, zone_name, zone, modes, problems)
    if len(problems) == before:
        _budget(inventory, path, profile, modes, problems)
    if len(problems) > before:
        return None
    ports: list[Port] = []
    breakouts: list[Breakout] = []
    zones: dict[tuple[str, int], list[Port]] = {}
    for cage in profile.cages.values():
        zone_name, mode = modes.get(cage.number, ("", next(iter(cage.modes))))
        breakout, expanded = profile.expand(cage.number, mode)
        breakouts.append(breakout)
        ports.extend(expanded)
        if zone_name:
            zones.setdefault((zone_name, mode_speed(mode)), []).extend(expanded)
    return ClassPorts(profile, tuple(ports), tuple(breakouts), {key: tuple(found) for key, found in zones.items()})


def _zones(spec: SwitchClass) -> list[tuple[tuple[str | int, ...], str, Zone]]:
    found: list[tuple[tuple[str | int, ...], str, Zone]] = []
    if spec.down:
        found += [(("down",) if len(spec.down) == 1 else ("down", i), DOWN, zone) for i, zone in enumerate(spec.down)]
    if spec.up:
        found.append((("up",), UP, spec.up))
    return found


def _claim(
    inventory: Inventory,
    path: Path_,
    profile: SwitchProfile,
    name: str,
    zone: Zone,
    modes: dict[int, tuple[str, str]],
    problems: list[Problem],
) -> None:
    """Take a zone's cages; one problem for each kind of mistake, however many cages share it."""
    missing, taken, unfit = [], [], []
    for number in parse_ports(zone.ports):
        cage = profile.cages.get(number)
        if cage is None:
            missing.append(number)
        elif number in modes:
            taken.append(number)
        elif zone.breakout not in cage.modes:
            unfit.append(number)
        else:
            modes[number] = (name, zone.breakout)

    def bad(rule: str, field: str, cages: list[int], text: str, fix: str) -> None:
        subject = f"{profile.model} {'cage' if len(cages) == 1 else 'cages'} {_some(cages)}"
        problems.append(inventory.problem(rule, (*path, field), subject, text, fix))

    if missing:
        text = f"the {profile.model} has no such cage: it has 1-{max(profile.cages)}"
        bad("ports.cage", "ports", missing, text, "correct the port list")
    if taken:
        bad(
            "ports.zone",
            "ports",
            taken,
            f"already used by the '{modes[taken[0]][0]}' zone",
            "give each cage to one zone",
        )
    if unfit:
        odd = " (4x and 8x modes exist on odd cages only)" if all(number % 2 == 0 for number in unfit) else ""
        fix = f"it can be {', '.join(profile.cages[unfit[0]].modes)}"
        bad("ports.breakout", "breakout", unfit, f"cannot be {zone.breakout}{odd}", fix)


def _some(cages: list[int], most: int = 5) -> str:
    shown = ", ".join(map(str, cages[:most]))
    return f"{shown} ... {cages[-1]} ({len(cages)} of them)" if len(cages) > most else shown


def _budget(
    inventory: Inventory,
    path: Path_,
    profile: SwitchProfile,
    modes: dict[int, tuple[str, str]],
    problems: list[Problem],
) -> None:
    """The ASIC's limits: logical ports in all, and in each pipeline's pair of cages."""
    count = {
        number: len(cage.modes[modes[number][1]].offsets) if number in modes else 1
        for number, cage in profile.cages.items()
    }
    total = sum(count.values())
    if total > profile.max_logical_ports:
        text = f"{total} logical ports, the {profile.model} has {profile.max_logical_ports}"
        problems.append(inventory.problem("ports.budget", path, profile.model, text, "break out fewer cages"))
    for pair in profile.pipelines:
        in_pair = sum(count[number] for number in pair)
        if in_pair > profile.pipeline_logical_ports:
            names = " and ".join(f"E1/{number}" for number in pair)
            text = (
                f"{names} share a pipeline and ask for {in_pair} logical ports; it has {profile.pipeline_logical_ports}"
            )
            fix = "use a breakout with fewer ports on one of them"
            problems.append(inventory.problem("ports.pipeline", path, f"{profile.model} {names}", text, fix))
