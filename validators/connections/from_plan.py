"""What the plan declares of an exposure, as the inputs of the gateway probes; pure."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from fabric.gateway.timeouts import DNS_PORT, truth_table
from fabric.problem import InputError, Problem
from validators.connections.nat import Ends
from validators.connections.nat_judge import Exposed
from validators.connections.tuples import TupleSpace
from validators.failover.judge import Declared

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Exposure, Plan

# what nftables does with an ICMP error through a stateless pair: the quoted packet stays as it is
_ERRORS = ("port-unreachable", "too-big", "ttl-exceeded")
_STATELESS = {f"ICMP {name}": "inner packet not translated" for name in _ERRORS}
# what docs/gateway.md says of each mode: a tenant may call its own forwards and pairs, but nobody may call a port that
# masquerade has given to a flow, except the end that the flow is with
_PROMISED = {
    "static": {**_STATELESS, "flow after ICMP errors": "flow lives on", "hairpin": "yes"},
    "portForward": {"hairpin": "yes"},
    "masquerade": {
        **{f"mapping {name}": "endpoint-independent" for name in ("udp", "tcp")},
        **{f"ICMP {name}": "translated" for name in _ERRORS},
        "filtering": "address-and-port-dependent",
        "hairpin": "no",
        "RST outside window": "flow lives on",
        "flow after ICMP errors": "flow lives on",
        "port range": "kept",
        "address pooling": "paired",
    },
}
_EPHEMERAL = (1024, 65000)


@dataclass(frozen=True)
class Target:
    """One exposure and the words that join its results to the plan; `public` are all prefixes of its tenant."""

    exposure: Exposure
    vrf: str
    public: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """Name it as the plan does."""
        return f"tenant {self.exposure.tenant} {self.exposure.name}"

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of its results."""
        return {"tenant": self.exposure.tenant, "vrf": self.vrf, "mode": self.exposure.mode}

    def pool(self, gateway: str = "") -> frozenset[str]:
        """Return the public addresses it may appear with: those of one gateway, or all."""
        shares = [share for share in self.exposure.shares if gateway in ("", share.gateway)]
        if shares:
            return frozenset(address for share in shares for address in _between(share.first, share.last))
        return frozenset(str(address) for prefix in self.exposure.public for address in IPv4Network(prefix))

    def exposed(self, gateway: str = "") -> Exposed:
        """Return what the NAT judge needs."""
        shares = {share.gateway: self.pool(share.gateway) for share in self.exposure.shares}
        worn = frozenset(str(address) for prefix in self.public for address in IPv4Network(prefix))
        return Exposed(self.exposure.mode, self.pool(gateway), _PROMISED[self.exposure.mode], shares, worn)

    def idle(self) -> dict[str, float]:
        """Return the declared idle truth table in seconds; empty for static, which keeps no state."""
        if self.exposure.mode == "static":
            return {}
        return {kind: float(seconds) for kind, seconds in truth_table(self.exposure.idle_timeout_s).items()}

    def idle_ports(self) -> dict[str, int]:
        """Return the destination port of each kind of flow that has one of its own."""
        return {"dns": DNS_PORT}

    def ends(self, hosts: tuple[str, str], far: tuple[str, str]) -> Ends:
        """Return the addresses of the NAT checks, given two private and two outside addresses the tester speaks for.

        Of a port forward only the ports that lead to the first private address are taken. Raises InputError when a
        private address is not part of the exposure.
        """
        # the other host of a forward or a pair is only a neighbour that tries the hairpin
        self._check(hosts if self.exposure.mode == "masquerade" else hosts[:1])
        forwards = tuple(
            (port.protocol, port.public_port, port.private_address, port.private_port)
            for port in self.exposure.ports
            if port.private_address == hosts[0]
        )
        return Ends(*hosts, *far, self._public_of(hosts[0]), forwards=forwards)

    def space(self, hosts: tuple[str, int], far: tuple[str, int]) -> TupleSpace:
        """Return the connections of a ladder from `hosts` (first address, how many) to `far`."""
        self._check((hosts[0], str(IPv4Address(hosts[0]) + hosts[1] - 1)))
        return TupleSpace(
            (int(IPv4Address(hosts[0])), hosts[1]), _EPHEMERAL, (int(IPv4Address(far[0])), far[1]), (1, 60000)
        )

    def failover(self, within_ms: float, failing: str) -> Declared:
        """Return what a failover of gateway `failing` must look like for flows of TCP (for static: of any protocol)."""
        if self.exposure.mode != "masquerade":
            return Declared(self.exposure.mode, within_ms, told=self.exposure.mode == "portForward")
        before = self.pool(failing)
        return Declared("masquerade", within_ms, before, self.pool() - before, told=True)

    def _check(self, addresses: Iterable[str]) -> None:
        private = [IPv4Network(prefix) for prefix in self.exposure.private]
        outside = [text for text in addresses if not any(IPv4Address(text) in prefix for prefix in private)]
        if outside:
            text = f"{', '.join(outside)} is not part of {', '.join(self.exposure.private)}"
            raise InputError([Problem("probe.address", self.subject, text, "choose a private address of the exposure")])

    def _public_of(self, host: str) -> str:
        """Return the public address of a static pair's host, else the first one of the exposure."""
        public = [address for prefix in self.exposure.public for address in IPv4Network(prefix)]
        if self.exposure.mode == "static":
            private = [address for prefix in self.exposure.private for address in IPv4Network(prefix)]
            return str(public[private.index(IPv4Address(host))])
        return str(public[0])


def targets(plan: Plan, *, tenant: str = "", exposure: str = "") -> list[Target]:
    """Return every exposure of the site (or of one tenant, or of one name); raises InputError when there is none."""
    known = [item for item in plan.tenants.values() if tenant in ("", item.name)]
    found = [
        Target(shown, item.vrf, tuple(prefix for one in item.exposures for prefix in one.public))
        for item in known
        for shown in item.exposures
        if exposure in ("", shown.name)
    ]
    if not found:
        whose = f"tenant {tenant}" if tenant else "no tenant"
        text = f"{whose} exposes {'nothing' if tenant else 'anything'}{f' called {exposure}' if exposure else ''}"
        there = [f"{item.name} {shown.name}" for item in plan.tenants.values() for shown in item.exposures]
        fix = f"tenants and exposures are: {', '.join(there)}" if there else "add `expose` to a tenant"
        raise InputError([Problem("probe.no-exposure", tenant or "site", text, fix)])
    return found


def capacity_problems(target: Target, connections: int) -> list[Problem]:
    """Find before anything runs that a ladder asks for more connections than the pool has ports for."""
    if target.exposure.mode != "masquerade":
        return []
    room = 64_512 * len(target.pool())
    if connections <= room:
        return []
    text = f"{connections} connections need more than the {room} ports of {len(target.pool())} public addresses"
    return [Problem("probe.pool", target.subject, text, "ask for fewer connections or widen the pool")]


def _between(first: str, last: str) -> list[str]:
    low, high = int(IPv4Address(first)), int(IPv4Address(last))
    return [str(IPv4Address(number)) for number in range(low, high + 1)]
