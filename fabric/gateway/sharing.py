"""Rules between exposures: who may share a public or private address, and which gateway then answers for it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from fabric.gateway.capacity import PORTS_PER_ADDRESS
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.gateway.context import ExposureContext
    from fabric.gateway.exposures import Placed
    from fabric.inventory.load import Inventory
    from fabric.problem import Problem

_STATEFUL = {"masquerade", "portForward"}


def check_sharing(
    inventory: Inventory, context: ExposureContext, placed: Sequence[Placed], problems: list[Problem]
) -> None:
    """Add a problem for each pair of exposures that cannot both be kept."""
    checker = _Sharing(inventory, context, problems)
    checker.check_groups(placed)
    for left, right in _pairs_that_overlap(placed):
        checker.check_public(left, right)
    by_tenant: dict[str, list[Placed]] = {}
    for item in placed:
        by_tenant.setdefault(item.tenant, []).append(item)
    for items in by_tenant.values():
        for i, left in enumerate(items):
            for right in items[i + 1 :]:
                checker.check_private(left, right)
    checker.check_tables(placed)


def _pairs_that_overlap(placed: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """Pairs with a public address in common, in the order written; a sweep, since there may be thousands."""
    spans = sorted(
        (int(network.network_address), int(network.broadcast_address), position)
        for position, item in enumerate(placed)
        for network in map(IPv4Network, item.exposure.public)
    )
    open_spans: list[tuple[int, int]] = []
    for first, last, position in spans:
        open_spans = [(end, other) for end, other in open_spans if end >= first]
        for _, other in open_spans:
            a, b = sorted((position, other))
            yield placed[a], placed[b]
        open_spans.append((last, position))


class _Sharing:
    """Checks pairs of exposures and adds problems at the later one."""

    def __init__(self, inventory: Inventory, context: ExposureContext, problems: list[Problem]) -> None:
        self.inventory, self.context, self.problems = inventory, context, problems

    def _bad(self, at: Placed, field: str, rule: str, text: str, fix: str, severity: Severity = Severity.ERROR) -> None:
        path = (*at.path, field)
        self.problems.append(self.inventory.problem(f"gateway.{rule}", path, at.subject, text, fix, severity))

    def check_groups(self, placed: Sequence[Placed]) -> None:
        """A tenant leaves by one default route, so all of its exposures must follow one order of gateways."""
        first: dict[str, Placed] = {}
        for item in placed:
            known = first.setdefault(item.tenant, item)
            if known.exposure.group != item.exposure.group:
                text = (
                    f"is shown by group '{item.exposure.group}', {known.exposure.name} by '{known.exposure.group}': "
                    "answers would leave by the other group's gateway, which does not know the flow"
                )
                self._bad(item, "group", "one-group", text, f"use group: {known.exposure.group} for the whole tenant")

    def check_public(self, left: Placed, right: Placed) -> None:
        """Public addresses have one owner; only a masquerade pool and port forwards of one tenant share some."""
        common = ", ".join(_common(left, right))
        if left.tenant != right.tenant:
            text = f"{common} is also shown for tenant {left.tenant} ({left.exposure.name})"
            self._bad(right, "public", "public-shared", text, "a public address belongs to one tenant: use another")
        elif {left.exposure.mode, right.exposure.mode} == _STATEFUL:
            self._check_share(left, right)
        elif left.exposure.mode == right.exposure.mode == "portForward":
            self._check_ports(left, right)
        else:
            text = f"{common} is also in {left.exposure.title}"
            fix = "only masquerade and portForward of one tenant may share public addresses"
            self._bad(right, "public", "public-shared", text, fix)

    def _check_ports(self, left: Placed, right: Placed) -> None:
        taken = {(m.protocol, m.public_port) for m in left.exposure.ports}
        for m in right.exposure.ports:
            if (m.protocol, m.public_port) in taken:
                text = f"{m.protocol} port {m.public_port} is already forwarded by {left.exposure.name}"
                self._bad(right, m.protocol, "port-twice", text, "use another port or public address")

    def _check_share(self, left: Placed, right: Placed) -> None:
        """A forwarded address inside a pool is announced by the preferred gateway, so it must be of its share."""
        pool, forward = (left, right) if left.exposure.mode == "masquerade" else (right, left)
        address = IPv4Network(forward.exposure.public[0]).network_address
        preferred = pool.exposure.shares[0]
        if not IPv4Address(preferred.first) <= address <= IPv4Address(preferred.last):
            text = (
                f"{address} is in the share of a standby gateway of pool {pool.exposure.name}: the preferred gateway "
                "announces it for the forwarded ports and would draw in answers to the standby's flows"
            )
            fix = f"forward from {preferred.first} to {preferred.last}, or from an address outside the pool"
            self._bad(forward, "public", "public-share", text, fix)

    def check_private(self, left: Placed, right: Placed) -> None:
        """One private address, one source address outside; static may be a part of what masquerade covers."""
        modes = {left.exposure.mode, right.exposure.mode}
        if modes in (_STATEFUL, {"portForward"}, {"masquerade", "static"}):
            return
        for a in map(IPv4Network, left.exposure.private):
            for b in map(IPv4Network, right.exposure.private):
                if a.overlaps(b):
                    self._private_clash(left, right, a, b)

    def _private_clash(self, left: Placed, right: Placed, a: IPv4Network, b: IPv4Network) -> None:
        text = f"private {b} overlaps {a} of {left.exposure.title}"
        fix = "an address is shown one way: give them disjoint private prefixes"
        self._bad(right, "private", "private-overlap", text, fix)

    def check_tables(self, placed: Sequence[Placed]) -> None:
        """Warn when the pools of a gateway can hold more flows than its conntrack table."""
        addresses: dict[str, int] = {}
        for item in placed:
            for share in item.exposure.shares:
                count = int(IPv4Address(share.last)) - int(IPv4Address(share.first)) + 1
                addresses[share.gateway] = addresses.get(share.gateway, 0) + count
        for name, spec in self.inventory.site.gateways.items():
            most = max((n for g, n in addresses.items() if g.startswith(f"{name}-")), default=0)
            flows = 2 * most * PORTS_PER_ADDRESS
            if flows > spec.conntrack_max:
                text = f"pools of {most} addresses hold {flows:,} TCP and UDP flows, the table {spec.conntrack_max:,}"
                fix = f"conntrack_max: {flows}, or know that the table is the limit"
                path = ("gateways", name, "conntrack_max")
                problem = self.inventory.problem(
                    "gateway.conntrack", path, f"gateways {name}", text, fix, Severity.INFO
                )
                self.problems.append(problem)


def _common(left: Placed, right: Placed) -> Iterator[str]:
    for a in map(IPv4Network, left.exposure.public):
        for b in map(IPv4Network, right.exposure.public):
            if a.overlaps(b):
                yield str(a if a.prefixlen > b.prefixlen else b)
