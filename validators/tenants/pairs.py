"""Who sends to whom in the tenant matrix, and who must hear it. Tenants may use the same addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_interface
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan, Server


@dataclass(frozen=True, slots=True)
class Pair:
    """A server of one tenant that sends to an address of a server of another, or of its own.

    `sender` is empty where all that could send have the address themselves: their packets would not leave them.
    `rightly` are servers within the sender's reach with the same address, whom the packets may go to instead.
    """

    tenant: str
    sender: str
    server: str
    address: str
    rightly: tuple[str, ...]

    @property
    def ears(self) -> tuple[str, ...]:
        """The servers that the packets are listened for at."""
        return (self.server, *self.rightly) if self.sender else ()


@dataclass(frozen=True)
class Reach:
    """What a tenant may reach by the plan: itself and its peers."""

    plan: Plan
    tenant: str

    @cached_property
    def allowed(self) -> frozenset[str]:
        """The tenants within reach."""
        return frozenset({self.tenant, *self.plan.tenants[self.tenant].peers})

    @cached_property
    def owners(self) -> dict[str, list[tuple[str, str]]]:
        """Address -> the servers that have it, each with the tenant that it has it for."""
        found: dict[str, list[tuple[str, str]]] = {}
        for server in self.plan.servers.values():
            for port in server.ports:
                if port.address and port.tenant:
                    found.setdefault(str(ip_interface(port.address).ip), []).append((server.name, port.tenant))
        return found

    def rightly(self, tenant: str, address: str) -> tuple[str, ...]:
        """The servers of others within reach that have an address of `tenant` too."""
        return tuple(s for s, t in self.owners[address] if t != tenant and t in self.allowed)

    def is_shared(self, address: str) -> bool:
        """Whether several servers have it, so that an answer does not say who answered."""
        return len(self.owners[address]) > 1

    def pairs(self) -> Iterator[Pair]:
        """Yield a pair per tenant that has an address in a fabric of the sender, forbidden ones first.

        What leaks may break what is allowed too, and is to be named before it.
        """
        for name in sorted(self.plan.tenants, key=lambda name: name in self.allowed):
            if pair := self._pair(name):
                yield pair

    def _pair(self, name: str) -> Pair | None:
        forbidden = name not in self.allowed
        deaf: Pair | None = None
        # an address that only this tenant has shows most: no route of another one can hide what leaks
        for shared in (False, True):
            for sender in members(self.plan, self.tenant):
                for server, address in self._targets(name, sender):
                    rightly = self.rightly(name, address) if forbidden else ()
                    if bool(rightly) is not shared:
                        continue
                    if address not in self._own(sender):
                        return Pair(name, sender.name, server, address, tuple(s for s in rightly if s != sender.name))
                    deaf = deaf or Pair(name, "", server, address, rightly)
        return deaf

    def _targets(self, name: str, sender: Server) -> Iterator[tuple[str, str]]:
        fabrics = {port.fabric for port in sender.ports if port.tenant == self.tenant}
        for server in members(self.plan, name):
            for port in reversed(server.ports):
                if server.name != sender.name and port.tenant == name and port.address and port.fabric in fabrics:
                    yield server.name, str(ip_interface(port.address).ip)

    @staticmethod
    def _own(server: Server) -> set[str]:
        return {str(ip_interface(port.address).ip) for port in server.ports if port.address}


def members(plan: Plan, tenant: str) -> list[Server]:
    """Return the servers with an address of a tenant."""
    return [s for s in plan.servers.values() if any(p.tenant == tenant and p.address for p in s.ports)]
