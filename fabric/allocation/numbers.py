"""AS numbers, loopbacks, VTEPs, management addresses, VNIs and VLANs of a site, all from the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fabric.allocation.addresses import host, pair, usable
from fabric.allocation.ledger import PoolExhaustedError
from fabric.plan import PoolUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from ipaddress import IPv4Network

    from fabric.allocation.ledger import Ledger
    from fabric.inventory.load import Inventory, Path_
    from fabric.inventory.models import Range
    from fabric.problem import Problem

_MOST_RD = 65535


@dataclass(frozen=True, slots=True)
class TenantNumbers:
    """A tenant's number (also in its RDs), its L3VNI and that VNI's VLAN."""

    number: int
    vni: int
    vlan: int


class Numbers:
    """Takes numbers from the ledger; running out is a problem that names the pool and who holds it."""

    def __init__(self, inventory: Inventory, ledger: Ledger, problems: list[Problem]) -> None:
        self.inventory, self.ledger, self.problems = inventory, ledger, problems
        self.pools = inventory.site.pools
        self._uses: list[tuple[str, str, int]] = []
        self._meanings: dict[str, Callable[[int], str]] = {}

    def take(
        self,
        pool: str,
        keys: Iterable[str],
        size: int,
        path: Path_,
        renamed: dict[str, str] | None = None,
        reserved: int | None = None,
    ) -> dict[str, int]:
        """Numbers for keys; an exhausted pool becomes a problem at `path` and zeros."""
        wanted = list(keys)
        try:
            return self.ledger.allocate(pool, wanted, size, renamed, reserved)
        except PoolExhaustedError as error:
            fix = "enlarge the pool"
            if error.retired:
                fix += ", or give back the numbers of removed names with `kvfabric plan SITE --forget`"
            self.problems.append(self.inventory.problem("pools.exhausted", path, f"pool {pool}", error.text, fix))
            return dict.fromkeys(wanted, 0)

    def addresses(self, pool: str, field: str, keys: Iterable[str]) -> dict[str, str]:
        """One address (without length) a key from the pool of `pools.<field>`."""
        network: IPv4Network = getattr(self.pools, field)
        # nobody gets the address of the management network's router
        reserved = self._router() if field == "management" else None
        numbers = self.take(pool, keys, usable(network), ("pools", field), reserved=reserved)
        self._uses.append((pool, str(network), usable(network) - (reserved is not None)))
        self._meanings[pool] = lambda number: host(network, number + 1)
        return {key: host(network, number + 1) for key, number in numbers.items()}

    def _router(self) -> int:
        """The number of the management network's router in its pool: the last one where the site says none."""
        network, said = self.pools.management, self.pools.management_gateway
        return int(said) - int(network.network_address) - 1 if said else usable(network) - 1

    def range(
        self, pool: str, field: str, keys: Iterable[str], renamed: dict[str, str] | None = None
    ) -> dict[str, int]:
        """One number a key from the range of `pools.<field>`."""
        span: Range = getattr(self.pools, field)
        size = span.last - span.first + 1
        numbers = self.take(pool, keys, size, ("pools", field), renamed)
        self._uses.append((pool, f"{span.first}-{span.last}", size))
        self._meanings[pool] = lambda number: str(span.first + number)
        return {key: span.first + number for key, number in numbers.items()}

    def pairs(self, pool: str, network: IPv4Network, keys: Iterable[str], path: Path_) -> dict[str, int]:
        """The number of a /31 for each key in a pool of point-to-point links."""
        size = network.num_addresses // 2
        numbers = self.take(pool, keys, size, path)
        self._uses.append((pool, str(network), size))
        self._meanings[pool] = lambda number: pair(network, number)[0]
        return numbers

    @cached_property
    def tenants(self) -> dict[str, TenantNumbers]:
        """Every tenant's numbers. The VNI is `vni_step` x number, so the number is also the VNI's short name."""
        site = self.inventory.site
        renamed = {name: spec.was for name, spec in site.tenants.items() if spec.was}
        numbers = self.take("tenant", site.tenants, _MOST_RD, ("tenants",), renamed)
        self.means("tenant", lambda number: f"{number + 1} (VNI {self.pools.vni_step * (number + 1)})")
        vlans = self.range("vlan", "vlans", site.tenants, renamed)
        return {
            name: TenantNumbers(number + 1, self.pools.vni_step * (number + 1), vlans[name])
            for name, number in numbers.items()
        }

    def means(self, pool: str, meaning: Callable[[int], str]) -> None:
        """Say what a position of a pool stands for."""
        self._meanings[pool] = meaning

    def meaning(self, pool: str, number: int) -> str:
        """Return what a position stands for, such as an AS number or address; the position where nobody said."""
        return self._meanings.get(pool, str)(number)

    def uses(self) -> list[PoolUse]:
        """How full each pool is, retired numbers counted."""
        return [PoolUse(name, text, len(self.ledger.pools.get(name, {})), size) for name, text, size in self._uses]
