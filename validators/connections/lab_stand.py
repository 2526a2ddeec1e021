"""A tester's stand in a lab: agents on nodes, each behind a veth of its own, speaking for addresses of the plan.

The addresses are those of servers (for port forwards and static pairs), a free block of a tenant's subnet (for
masquerade), and a block outside. While the stand is up, packets for a block go to the agent; of those for a server's
own address only what comes from the testers outside, or from the tenant's own public addresses, so that the server goes
on working. A block is told to the fabric as a service address is: by a static route of the server's leaves. `close`
takes all of it back, and a stand begins with what one that was killed left behind: flows in the gateways' tables too,
since one there makes a new flow with the same ports outlive what it must not, and a drain wait for nobody.
"""

from __future__ import annotations

import ipaddress
import itertools
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.connections.controller import AgentProcess
from validators.connections.programs import LabHost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fabric.plan import Plan, Server, Tenant
    from labs.client import Running

INTERFACE, NEXT_HOP = "kvprobe0", "169.254.77.1"
OUTSIDE = ipaddress.IPv4Network("198.18.0.0/24")  # RFC 2544: testers; the edge's default route leads to it
_TABLE = 777
_BLOCK_LENGTH = 28
_PATIENCE_S = 120.0  # a lab on a busy machine

# rules: what is for the stand's addresses goes to the agent even when they are the kernel's own
_UP = """
set -e
cat /proc/sys/net/ipv4/ip_forward > /run/kvprobe-forward
ip link add kvprobe0 mtu 1500 type veth peer name kvprobe1
ip addr add {hop}/32 dev kvprobe1
ip link set kvprobe0 up; ip link set kvprobe1 mtu 1500 up
echo 0 > /proc/sys/net/ipv4/conf/kvprobe1/rp_filter
for prefix in {prefixes}; do ip route add $prefix dev kvprobe1 table {table}; done
for pair in {pairs}; do ip rule add pref 1 from ${{pair%,*}} to ${{pair#*,}} lookup {table}; done
ip rule add pref 2 lookup local
ip rule del pref 0
echo 1 > /proc/sys/net/ipv4/ip_forward
# the agent alone takes what comes out at its end: the kernel would send it round again until its TTL is used up
echo 0 > /proc/sys/net/ipv4/conf/kvprobe0/forwarding
"""
_DOWN = """
if [ -e /run/kvprobe-forward ]; then
  cat /run/kvprobe-forward > /proc/sys/net/ipv4/ip_forward
  rm /run/kvprobe-forward
fi
[ -n "$(ip rule show pref 2)" ] && [ -z "$(ip rule show pref 0)" ] && ip rule add pref 0 lookup local
while ip rule del pref 1 2>/dev/null; do :; done
ip rule del pref 2 2>/dev/null
ip link del kvprobe1 2>/dev/null
ip route flush table {table} 2>/dev/null
true
"""


@dataclass(frozen=True)
class Block:
    """A free block of a tenant's subnet, brought to a server: `hops` are (leaf, VRF, next hop) of its static routes."""

    tenant: str
    server: str
    prefix: str
    hops: tuple[tuple[str, str, str], ...]

    def host(self, number: int) -> str:
        """Return one of its addresses: none is used, so the first and the last are as good as the others."""
        return str(ipaddress.IPv4Network(self.prefix)[number])


def servers_of(plan: Plan, lab: Running, tenant: str) -> list[Server]:
    """Return the servers of a tenant that are nodes of the lab and have an address there that survives a port."""
    nodes = lab.lab
    found = [server for server in plan.servers.values() if nodes.has(server.name)]
    return [server for server in found if any(item.tenant == tenant for item in server.services)]


def addresses(server: Server, tenant: str) -> list[str]:
    """Return a server's addresses in a tenant: its service address, then those of its ports."""
    found = [item.address for item in server.services if item.tenant == tenant]
    return found + [port.address.partition("/")[0] for port in server.ports if port.tenant == tenant and port.address]


def free_block(plan: Plan, lab: Running, tenant: Tenant, server: Server | None = None) -> Block:
    """Return a free block of the tenant's subnet, at a server (else its first in the lab): the highest ones.

    Each server has one of its own as far as they go, so that stands at two servers can be up at the same time.
    Raises CouldNotRunError when there is no such server or block.
    """
    servers = servers_of(plan, lab, tenant.name)
    server = server or next(iter(servers), None)
    if server is None:
        raise CouldNotRunError(f"tenant {tenant.name}: none of its servers is in lab {lab.name}")
    service = next(item for item in server.services if item.tenant == tenant.name)
    free = list(itertools.islice(_free(plan, tenant, service.fabric), len(servers)))
    if not free:
        raise CouldNotRunError(f"tenant {tenant.name}: no free /{_BLOCK_LENGTH} in its subnets for a tester")
    block = free[min([one.name for one in servers].index(server.name), len(free) - 1)]
    return Block(tenant.name, server.name, str(block), _hops(plan, lab, server, tenant, service.fabric))


def _free(plan: Plan, tenant: Tenant, fabric: str) -> Iterator[ipaddress.IPv4Network]:
    taken = [ipaddress.ip_interface(text).network for text in _used(plan, tenant.name)]
    for subnet in tenant.subnets:
        network = ipaddress.IPv4Network(subnet.prefix)
        if subnet.fabric not in ("", fabric) or network.prefixlen > _BLOCK_LENGTH:
            continue
        size = 1 << (32 - _BLOCK_LENGTH)
        for start in range(int(network.broadcast_address) + 1 - size, int(network.network_address), -size):
            block = ipaddress.IPv4Network((start, _BLOCK_LENGTH))
            if not any(block.overlaps(other) for other in taken):
                yield block


def _used(plan: Plan, tenant: str) -> Iterable[str]:
    for server in plan.servers.values():
        yield from (port.address for port in server.ports if port.tenant == tenant and port.address)
        yield from (f"{item.address}/32" for item in server.services if item.tenant == tenant)


def _hops(plan: Plan, lab: Running, server: Server, tenant: Tenant, fabric: str) -> tuple[tuple[str, str, str], ...]:
    found, nodes = [], lab.lab
    for port in server.ports:
        leaf = plan.links[port.link].far(server.name).device if port.link else ""
        if port.tenant == tenant.name and port.fabric == fabric and leaf and nodes.has(leaf):
            found.append((leaf, tenant.vrf, port.address.partition("/")[0]))
    return tuple(found)


def take_backs(places: dict[str, list[str]], blocks: Iterable[Block]) -> list[tuple[str, str]]:
    """Return (node, shell command) that remove a stand; they may run when there is none, and for whoever built it."""
    found = [(node, _DOWN.format(table=_TABLE)) for node in places]
    for block in blocks:
        for leaf, vrf, hop in block.hops:
            words = f"-c 'configure terminal' -c 'vrf {vrf}' -c 'no ip route {block.prefix} {hop}'"
            found.append((leaf, f"vtysh {words} >/dev/null 2>&1; true"))
    return found


class Stand:
    """Agents on lab nodes with the addresses they speak for; use as a context."""

    def __init__(self, plan: Plan, lab: Running, places: dict[str, list[str]], blocks: Iterable[Block] = ()) -> None:
        """Set it up: `places` are the prefixes of each node. Raises CouldNotRunError, and undoes what it had done."""
        self.plan, self.lab = plan, lab
        self._nodes: list[str] = []
        self._blocks: list[Block] = []
        self._agents: dict[str, AgentProcess] = {}
        try:
            for node, prefixes in places.items():
                self._set_up(node, list(dict.fromkeys(prefixes)))
            self._blocks = list(dict.fromkeys(blocks))
            for leaf in self._leaves():
                self._route(leaf, add=True)
            for block in self._blocks:
                self._wait_for(block)
            self._forget()
        except BaseException:
            self.close()
            raise

    def agent(self, node: str) -> AgentProcess:
        """Return the agent of a node, started when it is first asked for; a gateway may have one too."""
        if node not in self._agents:
            self._agents[node] = AgentProcess(node, host=LabHost(self.lab, node))
        return self._agents[node]

    def open(self, node: str, port: str, prefix: str, **more: Any) -> AgentProcess:
        """Open a port of a node's agent for a prefix; returns the agent."""
        agent = self.agent(node)
        agent.call("open", name=port, interface=INTERFACE, addresses=prefix, next_hop=NEXT_HOP, **more)
        return agent

    def close(self) -> None:
        """Take everything back; what fails does not keep the rest from being undone."""
        problems = []
        for agent in self._agents.values():
            agent.close()
        self._agents.clear()
        steps = [("flows of the gateways", self._forget)]
        steps += [(f"routes of {leaf}", partial(self._route, leaf)) for leaf in self._leaves()]
        steps += [(node, partial(self._run, node, _DOWN.format(table=_TABLE))) for node in self._nodes]
        for what, step in steps:
            try:
                step()
            except CouldNotRunError as error:
                problems.append(f"{what}: {error}")
        self._nodes, self._blocks = [], []
        if problems:
            raise CouldNotRunError(f"the tester's stand could not be taken back: {'; '.join(problems)}")

    def __enter__(self) -> Stand:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self.close()
        except CouldNotRunError as problem:
            if error is None:
                raise
            error.add_note(str(problem))  # what went wrong first is what a person must hear of

    def _set_up(self, node: str, prefixes: list[str]) -> None:
        self._nodes.append(node)
        pairs = [f"{source},{prefix}" for prefix in prefixes for source in self._sources(prefix)]
        names = {"prefixes": " ".join(prefixes), "pairs": " ".join(pairs)}
        down, up = _DOWN.format(table=_TABLE), _UP.format(hop=NEXT_HOP, table=_TABLE, **names)
        self._run(node, f"{down}{up}")

    def _sources(self, prefix: str) -> list[str]:
        """Return whose packets for a prefix go to the agent: everybody's for a block, testers' for a server's own."""
        if ipaddress.IPv4Network(prefix).prefixlen < 32:
            return ["0.0.0.0/0"]
        shown = [shown for tenant in self.plan.tenants.values() for shown in tenant.exposures]
        public = dict.fromkeys(prefix for exposure in shown for prefix in exposure.public)
        return [f"{NEXT_HOP}/32", str(OUTSIDE), *public]

    def _leaves(self) -> list[str]:
        return list(dict.fromkeys(leaf for block in self._blocks for leaf, _, _ in block.hops))

    def _route(self, leaf: str, *, add: bool = False) -> None:
        """Add or remove the routes of all blocks on a leaf, in one vtysh: its start costs most."""
        words = ["vtysh", "-c", "configure terminal"]
        for block in self._blocks:
            for vrf, hop in ((vrf, hop) for name, vrf, hop in block.hops if name == leaf):
                route = f"{'' if add else 'no '}ip route {block.prefix} {hop}"
                words += ["-c", f"vrf {vrf}", "-c", route, "-c", "exit-vrf"]
        self._call(leaf, words)

    def _forget(self) -> None:
        """Delete the testers' flows from the table of every gateway in the lab."""
        prefixes = [str(OUTSIDE), *(block.prefix for block in self._blocks)]
        # conntrack says with exit code 1 that there was none
        script = "; ".join(f"conntrack -D -s {prefix} >/dev/null 2>&1" for prefix in prefixes) + "; true"
        for name in self.plan.gateways:
            if self.lab.lab.has(name):
                self._run(name, script)

    def _wait_for(self, block: Block, timeout_s: float = 60) -> None:
        """Wait until every gateway of the tenant in the lab knows the way to the block."""
        nodes, tenant = self.lab.lab, self.plan.tenants[block.tenant]
        missing = [g.name for g in self.plan.gateways.values() if block.tenant in g.tenants and nodes.has(g.name)]
        deadline = time.monotonic() + timeout_s
        while missing:
            words = ["ip", "route", "show", "vrf", tenant.vrf, block.prefix]
            missing = [name for name in missing if not self._call(name, words).strip()]
            if missing and time.monotonic() > deadline:
                raise CouldNotRunError(f"no route to the tester's block {block.prefix} on {', '.join(missing)}")
            time.sleep(0.3 if missing else 0)

    def _run(self, node: str, script: str) -> None:
        self._call(node, ["sh", "-c", script])

    def _call(self, node: str, argv: list[str]) -> str:
        try:
            return str(self.lab.run(node, argv, timeout_s=_PATIENCE_S).check().out)
        except TimeoutError:
            raise CouldNotRunError(f"{argv[0]} in {node} said nothing for {_PATIENCE_S:g} s") from None
