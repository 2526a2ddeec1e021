"""The one node and link model of a lab; engines, status and exports all read this and nothing else.

Frozen and JSON-ready, free of the plan and of third-party packages, because the same code reads it inside the lab's
machine. Interface names are the plan's own (`Ethernet0`, `be0-port0`), MTUs are bytes of IP packet.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any

from fabric.problem import CouldNotRunError
from fabric.strict_json import loads

LEAF, BORDER_LEAF, SPINE, GATEWAY, SERVER = "leaf", "border-leaf", "spine", "gateway", "server"
EDGE, INTERNET, LOADBALANCER = "edge", "internet", "loadbalancer"
KINDS = (LEAF, BORDER_LEAF, SPINE, GATEWAY, SERVER, EDGE, INTERNET, LOADBALANCER)
OUTSIDE = frozenset({EDGE, INTERNET, LOADBALANCER})  # nobody renders these, the lab makes their files

# Linux refuses longer interface names (IFNAMSIZ less the final zero byte)
LONGEST_INTERFACE = 15

# of folders, sockets and containers alike, whichever engine runs it
LAB_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
LAB_NAME_WORDS = "a lab's name is 1 to 31 lower case letters, digits and dashes"


@dataclass(frozen=True, slots=True)
class Node:
    """One device of the lab.

    `files` is the folder of its rendered files, relative to the lab's `nodes` folder. `dark` are interfaces that the
    device has but whose far end is not in this lab: they exist without carrier, and `absent` are the addresses of BGP
    neighbours out there. `rdma` are the interfaces that get a
    Soft-RoCE device. `tenants` are those it belongs to (servers) or serves.
    """

    name: str
    kind: str
    files: str = ""
    dark: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link."""

    node: str
    interface: str


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two nodes of the lab."""

    id: str
    a: End
    b: End
    mtu: int = 9100

    def ends(self) -> tuple[End, End]:
        """Both ends, the lower tier first."""
        return (self.a, self.b)


@dataclass(frozen=True, slots=True)
class Session:
    """A BGP session that should be established: on `node`, with `neighbor` (an interface or an address).

    `bfd` says whether BFD must watch it; `evpn` whether it carries EVPN routes; `vrf` is empty for the default one.
    """

    node: str
    neighbor: str
    vrf: str = ""
    bfd: bool = True
    evpn: bool = True


@dataclass(frozen=True, slots=True)
class Vtep:
    """What EVPN should show on one VTEP: its address, and per VNI the VRF it routes and the remote VTEPs."""

    node: str
    address: str
    vnis: dict[str, str]
    remotes: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Route:
    """A prefix that must be in a VRF of a node's kernel, put there by BGP."""

    node: str
    vrf: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Service:
    """A VIP and port (`192.0.2.1:443`) that a load balancer serves under a name; backends are name -> address:port.

    Its checks must come back from every backend; whether anybody listens there is the servers' business.
    """

    node: str
    name: str
    address: str
    backends: dict[str, str]


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a converged lab looks like, from the plan."""

    sessions: tuple[Session, ...] = ()
    vteps: tuple[Vtep, ...] = ()
    routes: tuple[Route, ...] = ()
    services: tuple[Service, ...] = ()


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab: its nodes, its links, and what it should look like once converged."""

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    expect: Expectation = field(default_factory=Expectation)
    site: str = ""
    plan_digest: str = ""

    def node(self, name: str) -> Node:
        """Return a node by name; KeyError if there is none."""
        return next(node for node in self.nodes if node.name == name) if self.has(name) else _missing(name)

    def has(self, name: str) -> bool:
        """Whether a node of this name is in the lab."""
        return any(node.name == name for node in self.nodes)

    def links_of(self, name: str) -> tuple[Link, ...]:
        """The links of a node, in order."""
        return tuple(link for link in self.links if name in {link.a.node, link.b.node})

    def to_json(self) -> str:
        """Return the lab as JSON text."""
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Lab:
        """Read what `to_json` wrote. Raises CouldNotRunError for anything else."""
        try:
            data = loads(text)
            links = [Link(link["id"], End(**link["a"]), End(**link["b"]), link["mtu"]) for link in data["links"]]
            return Lab(
                name=data["name"],
                nodes=tuple(Node(**_tuples(node)) for node in data["nodes"]),
                links=tuple(links),
                expect=_expectation(data["expect"]),
                site=data["site"],
                plan_digest=data["plan_digest"],
            )
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"a lab's own lab.json is damaged ({error}): `kvfabric lab down` and `lab up` make it anew"
            raise CouldNotRunError(message) from None


def _missing(name: str) -> Node:
    raise KeyError(name)


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


def _expectation(data: dict[str, Any]) -> Expectation:
    return Expectation(
        sessions=tuple(Session(**session) for session in data["sessions"]),
        vteps=tuple(
            Vtep(v["node"], v["address"], v["vnis"], {vni: tuple(far) for vni, far in v["remotes"].items()})
            for v in data["vteps"]
        ),
        routes=tuple(Route(**route) for route in data["routes"]),
        services=tuple(Service(**service) for service in data["services"]),
    )


def faults(lab: Lab) -> list[str]:
    """Return what makes a lab impossible to build, in words; an empty list when nothing does."""
    found: list[str] = []
    names = [node.name for node in lab.nodes]
    found += [f"node {name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})]
    found += [f"node {node.name} has an unknown kind: {node.kind}" for node in lab.nodes if node.kind not in KINDS]
    used: set[tuple[str, str]] = set()
    ends = [(link.id, end) for link in lab.links for end in link.ends()]
    ends += [(f"port {name}", End(node.name, name)) for node in lab.nodes for name in node.dark]
    for owner, end in ends:
        if end.node not in names:
            found.append(f"{owner} ends on {end.node}, which is not in the lab")
        if len(end.interface) > LONGEST_INTERFACE:
            found.append(f"{owner}: interface name {end.interface} is longer than {LONGEST_INTERFACE} characters")
        if (end.node, end.interface) in used:
            found.append(f"{owner}: {end.node} {end.interface} is used twice")
        used.add((end.node, end.interface))
    return found
