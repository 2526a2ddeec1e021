"""Has the lab become what the plan says? Asked of FRR itself (its JSON) and of haproxy, never slept for.

`observe` runs inside the lab's machine; `missing` is pure: expectation and observation in, differences in words out.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labs import balancer, vty

if TYPE_CHECKING:
    from collections.abc import Iterable

    from labs.model import Expectation, Lab, Route, Service, Session, Vtep

# by subject: the daemon that knows, and what it is asked
_COMMANDS = {
    "bgp": ("bgpd", "show bgp vrf all summary json"),
    "bfd": ("bfdd", "show bfd peers json"),
    "vni": ("zebra", "show vrf vni json"),
    "rmac": ("zebra", "show evpn rmac vni all json"),
    "route": ("zebra", "show ip route vrf all json"),
}
_PAUSE_S = 0.25


@dataclass
class Observation:
    """What FRR on one node says, by subject (keys of the commands above), and haproxy where there is one.

    A subject that is not there was not answered: its daemon does not run. `trouble` says why nothing could be asked.
    """

    node: str
    said: dict[str, Any] = field(default_factory=dict)
    listeners: dict[str, balancer.Listener] | None = None
    trouble: str = ""

    def bgp_state(self, vrf: str, neighbor: str, family: str) -> str:
        """Return the state of a session in an address family (`ipv4Unicast`, `l2VpnEvpn`)."""
        peers = self.said.get("bgp", {}).get(vrf or "default", {}).get(family, {}).get("peers", {})
        return str(peers.get(neighbor, {}).get("state", "absent"))

    def bfd_state(self, neighbor: str) -> str:
        """Return the state of the BFD session of a neighbor given by interface or address."""
        for peer in bfd_peers(self.said.get("bfd", [])):
            if neighbor in {peer.get("interface"), peer.get("peer")}:
                status, why = str(peer.get("status", "unknown")), peer.get("diagnostic", "ok")
                return status if status == "up" or why == "ok" else f"{status} ({why})"
        return "absent"

    def evpn_prefixes(self) -> int:
        """Return how many EVPN routes its neighbors have sent it, those of the one that sent most."""
        peers = self.said.get("bgp", {}).get("default", {}).get("l2VpnEvpn", {}).get("peers", {})
        return max((int(peer.get("pfxRcd") or 0) for peer in peers.values()), default=0)

    def vni_state(self, vni: str) -> str:
        """Return Up, Down or absent for a layer 3 VNI."""
        for entry in self.said.get("vni", {}).get("vrfs", []):
            if str(entry.get("vni")) == vni:
                return str(entry.get("state", "unknown"))
        return "absent"

    def rmac_vteps(self, vni: str) -> set[str]:
        """Return the remote VTEPs whose router MAC is known in a VNI."""
        table = self.said.get("rmac", {}).get(vni, {})
        return {str(entry["vtepIp"]) for entry in table.values() if isinstance(entry, dict) and "vtepIp" in entry}

    def routes(self, vrf: str) -> dict[str, int]:
        """Return the installed BGP routes of a VRF: prefix and number of next hops in the kernel."""
        found = {}
        for prefix, entries in self.said.get("route", {}).get(vrf or "default", {}).items():
            for entry in entries:
                if entry.get("protocol") == "bgp" and entry.get("installed"):
                    found[prefix] = sum(1 for hop in entry.get("nexthops", []) if hop.get("fib"))
        return found


def bfd_peers(said: Any) -> Iterable[dict[str, Any]]:
    """Yield the peers of `show bfd peers json`: FRR gives a list of them, or one of VRFs with lists of peers."""
    for entry in said if isinstance(said, list) else [said]:
        if isinstance(entry, dict):
            yield from entry.get("peers", [entry] if "peer" in entry else [])


def observe(node: str) -> Observation:
    """Ask a node's FRR, and its haproxy when it has one; what does not answer stays empty."""
    from labs.native.nodes import root_of

    try:
        root = root_of(node)
        return Observation(node, vty.ask(root, _COMMANDS), balancer.read(root))
    except (KeyError, OSError) as error:
        return Observation(node, trouble=f"the node is gone ({error})")


def missing(expect: Expectation, seen: dict[str, Observation]) -> list[str]:
    """Return what the expectation has and the observation has not, in words, each beginning with its node.

    A node or daemon that does not answer is one line, not one for each thing that nobody could say.
    """
    found = [text for one in seen.values() for text in _silence(one)]
    asked = {name: one for name, one in seen.items() if not one.trouble}
    found += [text for item in expect.sessions if item.node in asked for text in _session(item, asked[item.node])]
    found += [text for item in expect.vteps if item.node in asked for text in _vtep(item, asked[item.node])]
    found += [text for item in expect.routes if item.node in asked for text in _route(item, asked[item.node])]
    found += [text for item in expect.services if item.node in asked for text in _service(item, asked[item.node])]
    return found


def _silence(seen: Observation) -> list[str]:
    if seen.trouble:
        return [f"{seen.node}: {seen.trouble}"]
    mute = sorted({daemon for subject, (daemon, _) in _COMMANDS.items() if subject not in seen.said})
    return [f"{seen.node}: {', '.join(mute)} of FRR does not answer"] if mute else []


def _session(session: Session, seen: Observation) -> list[str]:
    families = ["ipv4Unicast", *(["l2VpnEvpn"] if session.evpn else [])]
    found = []
    for family in families if "bgp" in seen.said else ():
        state = seen.bgp_state(session.vrf, session.neighbor, family)
        if state != "Established":
            found.append(f"{session.node}: BGP {family} to {session.neighbor} is {state}")
    if session.bfd and "bfd" in seen.said and (state := seen.bfd_state(session.neighbor)) != "up":
        found.append(f"{session.node}: BFD to {session.neighbor} is {state}")
    return found


def _vtep(vtep: Vtep, seen: Observation) -> list[str]:
    found = []
    for vni, vrf in vtep.vnis.items() if "vni" in seen.said else ():
        if (state := seen.vni_state(vni)) != "Up":
            found.append(f"{vtep.node}: VNI {vni} ({vrf}) is {state}")
        known = seen.rmac_vteps(vni)
        found += [
            f"{vtep.node}: VNI {vni} has no router MAC of VTEP {far}"
            for far in vtep.remotes.get(vni, ())
            if far not in known
        ]
    return found


def _route(route: Route, seen: Observation) -> list[str]:
    if "route" not in seen.said or route.prefix in seen.routes(route.vrf):
        return []
    return [f"{route.node}: {route.vrf or 'default'} lacks {route.prefix}"]


def _service(service: Service, seen: Observation) -> list[str]:
    if seen.listeners is None:
        return [f"{service.node}: haproxy does not answer: VIP {service.address} is not served"]
    listener = seen.listeners.get(service.name)
    if not listener or not listener.open:
        return [f"{service.node}: VIP {service.address} ({service.name}) does not listen"]
    checks = {backend.name: backend for backend in listener.backends}
    found = []
    for name, address in service.backends.items():
        if name not in checks:
            found.append(f"{service.node}: VIP {service.address} lacks backend {address}")
        elif not checks[name].reached:
            said = f"{checks[name].check} {checks[name].text}".strip()
            found.append(f"{service.node}: VIP {service.address} does not reach {address}: {said}")
    return found


def routers(lab: Lab) -> list[str]:
    """Return the nodes that the expectation speaks of, in lab order."""
    groups = (lab.expect.sessions, lab.expect.vteps, lab.expect.routes, lab.expect.services)
    named = {item.node for group in groups for item in group}
    return [node.name for node in lab.nodes if node.name in named]


def wait(lab: Lab, timeout_s: float) -> tuple[float, list[str]]:
    """Ask until nothing is missing; returns seconds and what was missing at the end.

    A node that has everything is not asked again until all have; then all are asked once more, because a route that
    came can go.
    """
    started = time.monotonic()
    names = routers(lab)
    waiting = list(names)
    lacks: list[str] = []
    while True:
        seen = {name: observe(name) for name in waiting}
        lacks = missing(lab.expect, seen)
        late = [name for name in waiting if any(text.startswith(f"{name}: ") for text in lacks)]
        if not late and waiting == names:
            return time.monotonic() - started, []
        waiting = late or names
        if time.monotonic() - started > timeout_s:
            return time.monotonic() - started, lacks
        if late:
            time.sleep(_PAUSE_S)
