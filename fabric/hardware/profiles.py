"""Switch and NIC profiles: YAML data beside this module, one file a switch model, found by being there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from fabric.hardware.ranges import parse_ports
from fabric.plan import Breakout, Headroom, Port

_DATA = Path(__file__).parent
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class BreakoutMode:
    """One way to split a cage: `speed` in Gb/s of each logical port and the interface offset of each."""

    mode: str
    speed: int
    offsets: tuple[int, ...]
    odd_only: bool


@dataclass(frozen=True, slots=True)
class Cage:
    """One front cage: `base` is the number in the NOS's `Ethernet<base>`; `lanes` are its SerDes lanes in order."""

    number: int
    connector: str
    speed: int
    base: int
    lanes: tuple[int, ...]
    fec: str
    modes: dict[str, BreakoutMode]


@dataclass(frozen=True)
class SwitchProfile:
    """What a switch model can do. `pipelines` are groups of cages that share `pipeline_logical_ports`."""

    model: str
    vendor: str
    silicon: str
    platform: str
    hwsku: str
    nos: str
    max_logical_ports: int
    pipeline_logical_ports: int
    features: dict[str, bool]
    gateway_link_on_vlan: bool
    cages: dict[int, Cage]
    pipelines: tuple[tuple[int, ...], ...]
    headroom: tuple[Headroom, ...]
    pool_size: int
    pool_xoff: int

    @cached_property
    def _expanded(self) -> dict[tuple[int, str], tuple[Breakout, tuple[Port, ...]]]:
        return {}

    def expand(self, cage: int, mode: str) -> tuple[Breakout, tuple[Port, ...]]:
        """Return the breakout row and logical ports of a cage in a mode; KeyError if the cage or mode is not there.

        Zone and link of the ports are empty: the same objects are shared by every switch of the model.
        """
        key = (cage, mode)
        if key not in self._expanded:
            self._expanded[key] = _expand(self.cages[cage], mode)
        return self._expanded[key]


def _expand(cage: Cage, mode: str) -> tuple[Breakout, tuple[Port, ...]]:
    how = cage.modes[mode]
    broken = len(how.offsets) > 1
    width = len(cage.lanes) // len(how.offsets) if cage.lanes else 0
    ports = tuple(
        Port(
            name=f"E1/{cage.number}/{k}" if broken else f"E1/{cage.number}",
            interface=f"Ethernet{cage.base + offset}",
            cage=cage.number,
            subport=k if broken else 0,
            speed=how.speed,
            lanes=",".join(map(str, cage.lanes[offset : offset + width])),
            alias=f"Eth{cage.number}/{offset + 1}",
            index=cage.number,
            fec=cage.fec,
            zone="",
        )
        for k, offset in enumerate(how.offsets, 1)
    )
    return Breakout(cage.number, f"E1/{cage.number}", f"Ethernet{cage.base}", mode), ports


def _cages(row: dict[str, Any]) -> list[Cage]:
    numbers = parse_ports(str(row["cages"]))
    step, per_cage = row["interface_step"], row["lanes_per_cage"]
    start = row.get("first_interface", 0)
    first_lanes = row.get("first_lane", [])
    modes = {
        mode: BreakoutMode(mode, mode_speed(mode), tuple(spec["offsets"]), bool(spec.get("odd_only")))
        for mode, spec in row["breakouts"].items()
    }
    return [
        Cage(
            number=number,
            connector=row["connector"],
            speed=row["speed"],
            base=start + step * i,
            lanes=tuple(range(first_lanes[i], first_lanes[i] + per_cage)) if first_lanes else (),
            fec=row["fec"],
            modes={m: b for m, b in modes.items() if number % 2 or not b.odd_only},
        )
        for i, number in enumerate(numbers)
    ]


def mode_speed(mode: str) -> int:
    """Return the speed in Gb/s of one logical port of a breakout mode such as `2x400G`."""
    return int(mode.partition("x")[2].rstrip("G"))


@cache
def switch_models() -> tuple[str, ...]:
    """The known switch models."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.yaml") if path.stem != "nics"))


@cache
def switch_profile(model: str) -> SwitchProfile:
    """Load a profile; KeyError for an unknown model."""
    path = _DATA / f"{model}.yaml"
    if model not in switch_models():
        raise KeyError(model)
    data = yaml.load(path.read_text(), Loader=_LOADER)  # noqa: S506 - a safe loader, in C where it was built
    flat = data.pop("pipelines")
    buffer = data.pop("buffer", {})
    source = buffer.get("source", "")
    rows = [cage for row in data.pop("cages") for cage in _cages(row)]
    return SwitchProfile(
        **data,
        cages={cage.number: cage for cage in rows},
        pipelines=tuple(tuple(pair) for pair in flat),
        headroom=tuple(_headroom(row, source) for row in buffer.get("headroom", [])),
        pool_size=buffer.get("pool_size", 0),
        pool_xoff=buffer.get("pool_xoff", 0),
    )


def _headroom(row: list[int], source: str) -> Headroom:
    speed, cable_m, size, xon, xoff, xon_offset = row
    return Headroom(speed, cable_m, size, xon, xoff, xon_offset, source)


@dataclass(frozen=True, slots=True)
class NicModel:
    """A NIC model: its port names, line rate of each port in Gb/s, and whether it offers verbs.

    Behind a `bmc` answers the board's management controller, not the server's system.
    """

    model: str
    vendor: str
    description: str
    ports: tuple[str, ...]
    speed: int
    connector: str
    rdma: bool
    driver: str
    bmc: bool = False


@cache
def nic_models() -> dict[str, NicModel]:
    """Every known NIC model by name."""
    data = yaml.load((_DATA / "nics.yaml").read_text(), Loader=_LOADER)  # noqa: S506 - a safe loader
    return {name: NicModel(name, **(row | {"ports": tuple(row["ports"])})) for name, row in data.items()}
