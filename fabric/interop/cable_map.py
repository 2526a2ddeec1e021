"""A cable map: which port is plugged into which, wherever it comes from.

The plan, both CSV forms of the OCP repositories, NetBox exports and Hedgehog wiring all become a `CableMap`, so that
writing and comparing need to know only one thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.hardware.ranges import natural_key
from fabric.plan import BORDER_LEAF, EDGE, GATEWAY, LEAF, SERVER, SPINE, SUPER_SPINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Link, Plan

_TIER = {SERVER: 0, GATEWAY: 1, LEAF: 2, BORDER_LEAF: 2, SPINE: 3, SUPER_SPINE: 4, EDGE: 5}


@dataclass(frozen=True, slots=True)
class CableEnd:
    """A port of a device, by NOS-neutral name (`E1/7/2`), and what the device is (`leaf`, `server`, or empty)."""

    device: str
    port: str
    role: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """Device and port: what identifies the end."""
        return self.device, self.port

    def __str__(self) -> str:
        return f"{self.device} {self.port}"


@dataclass(frozen=True, slots=True)
class Cable:
    """One row of a cable map.

    `speed` is Gb/s (0: not said), `length_m` metres (0: not said); `network` is the fabric's name or the network type
    of the source; `line` is where in the source file it stands (0: not from a file).
    """

    a: CableEnd
    b: CableEnd
    id: str = ""
    status: str = ""
    network: str = ""
    speed: int = 0
    medium: str = ""
    length_m: int = 0
    lag: str = ""
    link: str = ""
    line: int = 0

    @property
    def places(self) -> frozenset[tuple[str, str]]:
        """Both ends, whichever is called a."""
        return frozenset((self.a.place, self.b.place))

    def __str__(self) -> str:
        return f"{self.a} -- {self.b}"


@dataclass(frozen=True, slots=True)
class CableMap:
    """Cables of one source: `form` says what kind of file it was, `source` which."""

    source: str
    form: str
    cables: tuple[Cable, ...]


def of_plan(plan: Plan, fabrics: Iterable[str] = ()) -> CableMap:
    """Return the plan's cables in the order of the published maps, of all fabrics unless some are named.

    Servers first, by name and port, so that a server's back-end ports come before its front-end ones; then gateways,
    then leaves towards spines.
    """
    wanted = set(fabrics) or set(plan.fabrics)
    links = sorted((link for link in plan.links.values() if link.fabric in wanted), key=lambda link: _order(plan, link))
    return CableMap(plan.site, "plan", tuple(_cable(plan, link) for link in links))


def _order(plan: Plan, link: Link) -> tuple[object, ...]:
    return (
        _TIER[plan.kind_of[link.a.device]],
        natural_key(link.a.device),
        _TIER[plan.kind_of[link.b.device]] == _TIER[EDGE],
        natural_key(link.a.port),
    )


def _cable(plan: Plan, link: Link) -> Cable:
    return Cable(
        a=CableEnd(link.a.device, link.a.port, plan.kind_of[link.a.device]),
        b=CableEnd(link.b.device, link.b.port, plan.kind_of[link.b.device]),
        id=str(link.cable),
        network=link.fabric,
        speed=link.speed,
        medium=link.medium,
        length_m=link.length_m,
        link=link.id,
    )
