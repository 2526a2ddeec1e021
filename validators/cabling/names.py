"""From the names that devices use to the plan's: interface, alias or port name, with or without a domain."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fabric.plan import Plan


class Socket(NamedTuple):
    """Where one end of a cable goes: a device and the plan's name of its port."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device} {self.port}"


class PortNames:
    """Every name that a port of the plan goes by, and the order of the ports on each device."""

    def __init__(self, plan: Plan) -> None:
        self._names: dict[str, dict[str, Socket]] = {}
        self._order: dict[Socket, int] = {}
        self._cage: dict[Socket, int] = {}
        self.racks = {
            name: device.rack for part in (plan.switches, plan.servers, plan.gateways) for name, device in part.items()
        }
        for switch in plan.switches.values():
            for number, port in enumerate(sorted(switch.ports, key=lambda p: (p.cage, p.subport))):
                socket = self._add(switch.name, port.name, port.interface, port.alias)
                self._order[socket] = number
                self._cage[socket] = port.cage
        for link in plan.links.values():
            for end in (link.a, link.b):
                self._add(end.device, end.port, end.interface)
        for device in plan.kind_of:
            ports = set(self._names.get(device, {}).values()) - self._order.keys()
            for number, socket in enumerate(sorted(ports, key=lambda s: natural(s.port))):
                self._order[socket] = number

    def _add(self, device: str, port: str, *others: str) -> Socket:
        known = self._names.setdefault(device, {})
        socket = known.setdefault(port.lower(), Socket(device, port))
        for name in others:
            known.setdefault(name.lower(), socket)
        return socket

    def device(self, name: str) -> str:
        """Return the plan's name of a device that LLDP calls `name`, empty when it is not ours."""
        for candidate in (name, name.split(".", 1)[0]):
            if candidate in self._names:
                return candidate
        return ""

    def socket(self, device: str, *ports: str) -> Socket | None:
        """Return the port that the first known of these names means."""
        known = self._names.get(self.device(device), {})
        return next((known[port.lower()] for port in ports if port.lower() in known), None)

    def position(self, socket: Socket) -> int:
        """The place of a port on its device, counted from 0 in the order a person sees; -1 when unknown."""
        return self._order.get(socket, -1)

    def cage(self, socket: Socket) -> tuple[str, int]:
        """The device and front-panel cage of a port; every port of a server is a cage of its own."""
        return (socket.device, self._cage.get(socket, -1 - self.position(socket)))

    def rack(self, device: str) -> str:
        """The rack of a device, empty when the plan does not say."""
        return self.racks.get(device, "")


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts `E1/10` after `E1/9`."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text))
