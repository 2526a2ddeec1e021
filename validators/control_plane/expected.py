"""What the control plane should show on a device, from the plan alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import TYPE_CHECKING

from fabric.plan import EXTERNAL_LINK, FABRIC_LINK, GATEWAY_LINK, SERVER_LINK

if TYPE_CHECKING:
    from fabric.plan import Link, Plan, Switch, Tenant

EVPN, IPV4 = "l2VpnEvpn", "ipv4Unicast"


@dataclass(frozen=True, slots=True)
class Session:
    """A BGP session that a device should have. `neighbour` is an interface (unnumbered) or an address."""

    neighbour: str
    far: str
    asn: int
    port: str
    interface: str
    families: tuple[str, ...]
    link: str


def routers(plan: Plan) -> tuple[str, ...]:
    """The devices that speak BGP and are ours: managed switches and gateways."""
    return (*(s.name for s in plan.switches.values() if s.managed), *plan.gateways)


def sessions(plan: Plan, device: str) -> list[Session]:
    """Return the sessions of a device, in the order of its links."""
    return [s for link in plan.links_of.get(device, ()) if (s := _session(plan, device, link)) is not None]


def _session(plan: Plan, device: str, link: Link) -> Session | None:
    if link.kind not in {FABRIC_LINK, GATEWAY_LINK, EXTERNAL_LINK}:
        return None
    near, far = link.end(device), link.far(device)
    neighbour = str(ip_interface(far.address).ip) if far.address else near.interface
    families = (IPV4,) if link.kind == EXTERNAL_LINK else (IPV4, EVPN)
    return Session(neighbour, far.device, _asn(plan, far.device), near.port, near.interface, families, link.id)


def _asn(plan: Plan, device: str) -> int:
    for part in (plan.switches, plan.gateways, plan.edges):
        if device in part:
            return part[device].asn
    return 0


def homes(plan: Plan, tenant: Tenant, fabric: str) -> dict[str, Switch]:
    """The switches of a fabric where a tenant has ports of its own, by VTEP address."""
    own = {
        link.b.device
        for link in plan.links.values()
        if link.kind == SERVER_LINK and link.tenant == tenant.name and link.fabric == fabric
    }
    return {s.vtep: s for s in plan.switches_of(fabric) if s.name in own}


def width_to(plan: Plan, switch: Switch, other: Switch) -> int:
    """Return how many equal paths a switch has to another of its fabric, 0 when there is none of two hops or less."""
    near = Counter(link.far(switch.name).device for link in plan.links_of[switch.name] if link.kind == FABRIC_LINK)
    if other.name in near:
        return near[other.name]
    far = {link.far(other.name).device for link in plan.links_of[other.name] if link.kind == FABRIC_LINK}
    return sum(count for spine, count in near.items() if spine in far)


def own_prefixes(plan: Plan, switch: Switch) -> dict[str, list[str]]:
    """Return tenant -> the /31s of its ports on a switch, which the switch must announce."""
    found: dict[str, list[str]] = {}
    for link in plan.links_of[switch.name]:
        if link.kind == SERVER_LINK and link.tenant and link.b.device == switch.name and link.b.address:
            found.setdefault(link.tenant, []).append(str(ip_interface(link.b.address).network))
    return found
