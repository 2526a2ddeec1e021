"""Checks of what the control plane stands on: each port's VRF, address and MTU as the kernel has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import FABRIC_LINK, SERVER_LINK
from fabric.strict_json import loads
from validators.cabling.checks import whole
from validators.cabling.port_state import PortState, parse_links
from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.devices.answers import UnreadableError
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fabric.plan import Link, Plan


def _port(check: str, device: str, link: Link, state: State, text: str) -> Result:
    end = link.end(device)
    place = "" if state is State.PASS else f"{device} {end.port} ({end.interface})"
    labels = {"device": device, "port": end.port, "link": link.id} | ({"tenant": link.tenant} if link.tenant else {})
    return Result(check, f"{device} {end.port}", state, text, place, labels=labels)


def _judge_ports(
    check: Check, device: str, links: Iterable[Link], seen: dict[str, PortState], wanted: dict[str, tuple[str, object]]
) -> list[Result]:
    """Compare one attribute of each port: `wanted` maps a link to the attribute's name and its planned value."""
    parts = []
    for link in links:
        interface = link.end(device).interface
        state = seen.get(interface)
        attribute, value = wanted[link.id]
        found = getattr(state, attribute) if state else None
        if state is None:
            parts.append(_port(check.name, device, link, State.FAIL, f"{interface} is not on the device"))
        elif found != value:
            text = f"{attribute} is {found or 'the default one'}, the plan says {value or 'the default one'}"
            parts.append(_port(check.name, device, link, State.FAIL, text.replace("vrf", "VRF").replace("mtu", "MTU")))
        else:
            parts.append(_port(check.name, device, link, State.PASS, str(value or "the default one")))
    return parts


class PortVrf(Check):
    """Every server port of a leaf is in its tenant's VRF, and every uplink in none.

    Pass: each planned port has the planned VRF.
    Fail: a port is in another tenant's VRF, in none, or not there.
    Error: the device gives no list of interfaces.
    Skipped: never.
    Example:
        port-vrf:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("links",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch with links."""
        yield from (
            DeviceInputs(device=s.name) for s in plan.switches.values() if s.managed and s.name in plan.links_of
        )

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare port by port."""
        seen = parse_links(answer_of(observations, inputs.device, "links"))
        links = [link for link in plan.links_of[inputs.device] if link.kind in {FABRIC_LINK, SERVER_LINK}]
        wanted = {link.id: ("vrf", plan.tenants[link.tenant].vrf if link.tenant else "") for link in links}
        unassigned = [link for link in links if link.kind == SERVER_LINK and not link.tenant]
        links = [link for link in links if link not in unassigned]
        parts = _judge_ports(self, inputs.device, links, seen, {**wanted})
        return whole(self.name, inputs.device, parts, "ports are in their VRF")


class PortMtu(Check):
    """Every cabled port has the plan's MTU, so that no frame of a tenant is too large for a link on its way.

    Pass: each port has the planned MTU (bytes of IP packet).
    Fail: a port has another MTU, or is not there.
    Error: the device gives no list of interfaces.
    Skipped: never.
    Example:
        port-mtu:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("links",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch and per server with links in managed fabrics."""
        devices = [s.name for s in plan.switches.values() if s.managed] + list(plan.servers)
        for device in devices:
            if any(_mtu(plan, link) for link in plan.links_of.get(device, ())):
                yield DeviceInputs(device=device)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare port by port."""
        seen = parse_links(answer_of(observations, inputs.device, "links"))
        links = [link for link in plan.links_of[inputs.device] if _mtu(plan, link)]
        wanted: dict[str, tuple[str, object]] = {link.id: ("mtu", _mtu(plan, link)) for link in links}
        return whole(
            self.name, inputs.device, _judge_ports(self, inputs.device, links, seen, wanted), "ports have their MTU"
        )


def _mtu(plan: Plan, link: Link) -> int:
    """The planned MTU of a link that has one of its own on both ends, else 0 (gateways differ by what they carry)."""
    fabric = plan.fabrics[link.fabric]
    if not fabric.managed or (link.kind == SERVER_LINK and not link.tenant):
        return 0
    return {FABRIC_LINK: fabric.mtu, SERVER_LINK: fabric.server_mtu}.get(link.kind, 0)


class PortAddress(Check):
    """Every addressed port has its planned address, and no other IPv4 address.

    Pass: each port has exactly the planned address and length.
    Fail: an address is missing, wrong or too many.
    Error: the device gives no list of addresses.
    Skipped: when no port of the device has an address in the plan.
    Example:
        port-address:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("addresses",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch with addressed server ports, and per server."""
        devices = [s.name for s in plan.switches.values() if s.managed] + list(plan.servers)
        for device in devices:
            if any(_addressed(link, device) for link in plan.links_of.get(device, ())):
                yield DeviceInputs(device=device)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare port by port."""
        seen = parse_addresses(answer_of(observations, inputs.device, "addresses"))
        parts = []
        for link in plan.links_of[inputs.device]:
            if not _addressed(link, inputs.device):
                continue
            end = link.end(inputs.device)
            found = seen.get(end.interface, [])
            good = found == [end.address]
            text = end.address if good else f"has {', '.join(found) or 'no address'}, the plan says {end.address}"
            parts.append(_port(self.name, inputs.device, link, State.PASS if good else State.FAIL, text))
        return whole(self.name, inputs.device, parts, "ports have their address")


def _addressed(link: Link, device: str) -> bool:
    """Whether the plan's address of this end sits on the port itself, on every target."""
    return link.kind == SERVER_LINK and bool(link.tenant) and bool(link.end(device).address)


def parse_addresses(text: str) -> dict[str, list[str]]:
    """Return interface -> IPv4 addresses with length, from `ip -j address`. Raises UnreadableError."""
    try:
        items = loads(text)
    except ValueError as error:
        message = f"`ip -j address` did not print JSON ({error})"
        raise UnreadableError(message) from None
    if not isinstance(items, list):
        message = "`ip -j address` did not print a list"
        raise UnreadableError(message)
    return {
        str(item["ifname"]): [
            f"{one['local']}/{one['prefixlen']}" for one in item.get("addr_info", ()) if one.get("family") == "inet"
        ]
        for item in items
        if isinstance(item, dict) and item.get("ifname")
    }
