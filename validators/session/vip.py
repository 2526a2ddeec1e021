"""Where clients of a session case knock: the VIP of the load balancers outside, else the port forward itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs import balancer, outside

if TYPE_CHECKING:
    from fabric.plan import Plan
    from labs.client import Running
    from validators.connections.in_lab import Site

_UP_S = 30.0


@dataclass(frozen=True)
class Seat:
    """An address and port on which workers of the service must listen, and the lab node that has it."""

    node: str
    address: str
    port: int


@dataclass(frozen=True)
class Front:
    """What clients call, from which node, and where calls end; `service` is the load balancers' name of it, if any."""

    address: str
    port: int
    client: str
    source: str
    seats: tuple[Seat, ...]
    service: str = ""

    @property
    def text(self) -> str:
        """Say what clients call."""
        return f"{'VIP ' if self.service else ''}{self.address}:{self.port}"


def front_of(plan: Plan, lab: Running, site: Site) -> Front:
    """Return the VIP that shows the site's first forwarded TCP port; the forward itself in a lab without balancers."""
    exposure = site.target.exposure
    port = next(port for port in exposure.ports if port.protocol == "tcp")
    if all(lab.lab.has(node) for node in outside.BALANCERS):
        for service in outside.services(plan, lab.lab):
            names = {backend.name for backend in service.backends}
            if service.name == f"{exposure.tenant}-{port.public_port}" and exposure.name in names:
                seats = tuple(_seat(backend.private) for backend in service.backends)
                client = outside.INTERNET_HOST
                return Front(service.vip, service.port, client, outside.STATIONS[client], seats, service.name)
    public = exposure.public[0].partition("/")[0]
    seat = Seat(site.inside, port.private_address, port.private_port)
    return Front(public, port.public_port, site.outside, outside.INTERNET_ADDRESS, (seat,))


def _seat(private: str) -> Seat:
    node, _, end = private.partition(" ")
    address, _, port = end.rpartition(":")
    return Seat(node, address, int(port))


def wait_until_served(lab: Running, front: Front) -> None:
    """Wait until every load balancer has every worker's seat up; raises CouldNotRunError with those that are down."""
    deadline = time.monotonic() + _UP_S
    while front.service and (down := _down(lab, front.service)):
        if time.monotonic() > deadline:
            raise CouldNotRunError(f"{front.text} is not served after {_UP_S:g} s: {', '.join(down)}")
        time.sleep(0.3)


def _down(lab: Running, service: str) -> list[str]:
    down = []
    for node in outside.BALANCERS:
        found = balancer.ask(lab, node)[service].backends
        down += [f"{node}: {backend.name} {backend.check}" for backend in found if not backend.up]
    return down
