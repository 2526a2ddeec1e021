"""From what the inventory exposes to the plan's `Exposure`s, with every rule a gateway needs to keep its promises."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from fabric.gateway import nat, timeouts
from fabric.gateway.sharing import check_sharing
from fabric.gateway.space import is_private, special_use
from fabric.hints import names_hint
from fabric.plan import Exposure, PoolShare, PortMap
from fabric.problem import Severity

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.gateway.context import ExposureContext
    from fabric.inventory.load import Inventory
    from fabric.inventory.models import Expose
    from fabric.problem import Problem

MAX_EXPOSURES = 255  # the conntrack mark has eight bits for the exposure's place in its tenant
MAX_GROUP = 10  # leaves know ten ranks
MAX_STATIC = 65_536
_LARGEST_POOL = 65_536
_SHORT = {"masquerade": "masquerade", "portForward": "forward", "static": "static"}


@dataclass(frozen=True)
class Placed:
    """An exposure and where it was written: `tenants.<tenant>.expose.<index>`."""

    exposure: Exposure
    tenant: str
    index: int

    @property
    def path(self) -> tuple[str | int, ...]:
        """Path of the exposure in the inventory."""
        return ("tenants", self.tenant, "expose", self.index)

    @property
    def subject(self) -> str:
        """How problems name it."""
        return f"tenant {self.tenant} {self.exposure.title}"


def resolve_exposures(
    inventory: Inventory, ledger: Ledger, context: ExposureContext
) -> tuple[dict[str, tuple[Exposure, ...]], list[Problem]]:
    """Return the exposures of each tenant, and every problem found. The ledger is not needed: nothing is numbered."""
    del ledger
    problems: list[Problem] = []
    found: dict[str, tuple[Exposure, ...]] = {}
    placed: list[Placed] = []
    for tenant, spec in inventory.site.tenants.items():
        if not spec.expose:
            continue
        resolver = _Resolver(inventory, context, tenant, problems)
        resolver.check_tenant()
        mine = [p for i, expose in enumerate(spec.expose) if (p := resolver.resolve(i, expose))]
        found[tenant] = tuple(p.exposure for p in mine)
        placed.extend(mine)
    check_sharing(inventory, context, placed, problems)
    return found, problems


class _Resolver:
    """Resolves the exposures of one tenant."""

    def __init__(self, inventory: Inventory, context: ExposureContext, tenant: str, problems: list[Problem]) -> None:
        self.inventory, self.context, self.tenant, self.problems = inventory, context, tenant, problems
        self.spec = inventory.site.tenants[tenant]
        self.subnets = [IPv4Network(s.prefix) for s in context.subnets.get(tenant, ())]
        self.services = context.services.get(tenant, {})
        self.names: set[str] = set()
        self.index = 0

    # ------------------------------------------------------------------ reporting

    def _bad(self, field: str, rule: str, text: str, fix: str, severity: Severity = Severity.ERROR) -> None:
        path = ("tenants", self.tenant, "expose", self.index, *(field.split(".") if field else ()))
        mode = self.spec.expose[self.index].mode
        subject = f"tenant {self.tenant} {mode}"
        self.problems.append(self.inventory.problem(f"gateway.{rule}", path, subject, text, fix, severity))

    def check_tenant(self) -> None:
        """Check what concerns all exposures of the tenant."""
        path, subject = ("tenants", self.tenant, "expose"), f"tenant {self.tenant}"
        count = len(self.spec.expose)
        if count > MAX_EXPOSURES:
            text, fix = f"{count} exposures, a tenant has at most {MAX_EXPOSURES}", "join port forwards of one address"
            self.problems.append(self.inventory.problem("gateway.count", path, subject, text, fix))
        if not self.subnets:
            text = "has no subnet in the fabric of the gateways, so there is nothing to expose"
            fix = "give it servers with ports there, or remove `expose`"
            self.problems.append(self.inventory.problem("gateway.nothing", path, subject, text, fix))

    # ------------------------------------------------------------------ one exposure

    def resolve(self, index: int, expose: Expose) -> Placed | None:
        """Return the exposure, or None when it cannot be made; problems are added."""
        self.index = index
        before = self._errors()
        group = self._group(expose)
        name = self._name(index, expose)
        self._check_public(expose.public)
        self._check_fields(expose)
        idle = self._idle(expose, group)
        ports = self._ports(expose)
        private = self._private(expose, ports)
        self._check_private(expose, private)
        shares = self._shares(expose, group)
        if self._errors() > before:
            return None
        exposure = Exposure(
            name=name,
            tenant=self.tenant,
            mode=expose.mode,
            group=group,
            private=tuple(str(network) for network in private),
            public=(str(expose.public),),
            idle_timeout_s=idle,
            ports=ports,
            shares=shares,
        )
        return Placed(exposure, self.tenant, index)

    def _errors(self) -> int:
        return sum(problem.severity is Severity.ERROR for problem in self.problems)

    def _group(self, expose: Expose) -> str:
        groups = self.context.groups
        if not groups:
            self._bad("", "no-gateway", "the site has no gateway", "add `gateways`, or remove `expose`")
            return ""
        if expose.group is None:
            if len(groups) > 1:
                text = f"does not say which gateway group shows it: {', '.join(groups)}"
                self._bad("", "group", text, "add `group:`")
            return next(iter(groups))
        if expose.group not in groups:
            text = f"no gateway group '{expose.group}'"
            self._bad("group", "group", text, names_hint(expose.group, groups, "groups here"))
        elif len(groups[expose.group]) > MAX_GROUP:
            text = f"group '{expose.group}' has {len(groups[expose.group])} gateways, leaves know {MAX_GROUP} ranks"
            self._bad("group", "group", text, "use fewer gateways in a group")
        return expose.group

    def _name(self, index: int, expose: Expose) -> str:
        name = expose.name
        if name is None:
            # only equal names get a number, so that adding an exposure of another mode renames nothing
            name = _SHORT[expose.mode]
            earlier = sum(e.mode == expose.mode and e.name is None for e in self.spec.expose[:index])
            name = f"{name}-{earlier + 1}" if earlier else name
        if name in self.names:
            self._bad("name", "name", f"the name '{name}' is used twice in this tenant", "name them apart")
        self.names.add(name)
        return name

    def _check_public(self, public: IPv4Network) -> None:
        use = special_use(public)
        if use:
            self._bad("public", "special-use", f"{public} is {use} space", "use addresses the provider routes to you")
            return
        if is_private(public):
            text = f"{public} is private space: a gateway never announces or lets it out"
            self._bad("public", "private-public", text, "use addresses the provider routes to you")
        for subnet_of, subnets in self.context.subnets.items():
            for subnet in subnets:
                if public.overlaps(IPv4Network(subnet.prefix)):
                    text = f"{public} overlaps the subnet {subnet.prefix} of tenant {subnet_of}"
                    self._bad("public", "public-overlap", text, "move one of them")
        for name, network in self.context.infrastructure:
            if public.overlaps(network):
                text = f"{public} overlaps the site's own {name} {network}"
                self._bad("public", "public-overlap", text, "move one of them")
        if public.num_addresses > _LARGEST_POOL:
            text = f"{public} holds {public.num_addresses} addresses, the most is {_LARGEST_POOL}"
            self._bad("public", "pool-size", text, "use a /16 or smaller")

    def _check_fields(self, expose: Expose) -> None:
        mode = expose.mode
        forwards = bool(expose.tcp or expose.udp)
        if mode == "portForward":
            if not forwards:
                self._bad("", "ports", "forwards no port", "add `tcp:` or `udp:`, such as {443: compute-001:8443}")
            if expose.public.num_addresses != 1:
                text = f"{expose.public} is more than one address; ports are forwarded from one"
                self._bad("public", "ports", text, f"public: {expose.public.network_address}/32, and one exposure each")
        elif forwards:
            field = "tcp" if expose.tcp else "udp"
            self._bad(field, "one-mode", f"ports belong to portForward, not to {mode}", "make two exposures of it")
        if mode == "static" and expose.private is None:
            self._bad("", "static", "does not say which private address it shows", "add `private:`, a prefix or server")
        if mode == "static" and expose.idle_timeout is not None:
            text = "static keeps no state, so nothing can be idle"
            self._bad("idle_timeout", "timeout", text, "remove idle_timeout")

    def _idle(self, expose: Expose, group: str) -> int:
        if expose.mode == "static":
            return 0
        said = expose.idle_timeout is not None
        idle = expose.idle_timeout if said else self.context.idle_timeout_s.get(group, timeouts.DEFAULT_IDLE_S)
        assert idle is not None
        if not timeouts.MIN_IDLE_S <= idle <= timeouts.MAX_IDLE_S:
            text = f"an idle timeout of {idle} s is outside {timeouts.MIN_IDLE_S} s to {timeouts.MAX_IDLE_S // 3600} h"
            self._bad("idle_timeout" if said else "", "timeout", text, "use 2m")
        return idle

    # ------------------------------------------------------------------ the private side

    def _ports(self, expose: Expose) -> tuple[PortMap, ...]:
        found = []
        for protocol, table in (("tcp", expose.tcp), ("udp", expose.udp)):
            for public_port, target in table.items():
                where = f"{protocol}.{public_port}"
                parsed = self._target(where, target)
                if parsed:
                    found.append(PortMap(protocol, public_port, *parsed))
        return tuple(found)

    def _target(self, field: str, target: str) -> tuple[str, int] | None:
        """Read `10.1.0.10:8443` or `compute-001:8443`; None (and a problem) when it is neither."""
        host, colon, port = target.rpartition(":")
        if not colon or not host or not (port.isascii() and port.isdigit()):
            text = f"'{target}' is not a host and one port"
            fix = "write compute-001:8443 or 10.1.0.10:8443; a range is one entry a port"
            self._bad_port(field, text, fix)
            return None
        if not 1 <= int(port) <= 65_535:
            self._bad_port(field, f"port {port} is outside 1 to 65535", "use a port in that range")
            return None
        address = self._address(host)
        if address is None:
            self._bad_port(field, f"'{host}' is no address and no server of tenant {self.tenant}", self._close(host))
            return None
        return str(address), int(port)

    def _bad_port(self, field: str, text: str, fix: str) -> None:
        protocol, _, port = field.partition(".")
        path = ("tenants", self.tenant, "expose", self.index, protocol, int(port))
        subject = f"tenant {self.tenant} portForward"
        self.problems.append(self.inventory.problem("gateway.ports", path, subject, text, fix))

    def _address(self, text: str) -> IPv4Address | None:
        try:
            return IPv4Address(text)
        except AddressValueError:
            service = self.services.get(text)
            return IPv4Address(service) if service else None

    def _close(self, host: str) -> str:
        return names_hint(host, self.services, "servers with a service address")

    def _private(self, expose: Expose, ports: tuple[PortMap, ...]) -> list[IPv4Network]:
        if isinstance(expose.private, IPv4Network):
            return [expose.private]
        if expose.private is None:
            if expose.mode == "portForward":
                return [IPv4Network(address) for address in dict.fromkeys(m.private_address for m in ports)]
            return list(self.subnets)
        try:
            return [IPv4Network(expose.private)]
        except ValueError:
            address = self._address(expose.private)
            if address is not None:
                return [IPv4Network(address)]
        text = f"'{expose.private}' is no prefix and no server of tenant {self.tenant}"
        self._bad("private", "private", text, self._close(expose.private))
        return []

    def _check_private(self, expose: Expose, private: list[IPv4Network]) -> None:
        field = "private" if expose.private is not None else ""
        for network in private:
            use = special_use(network)
            if use:
                self._bad(field, "special-use", f"{network} is {use} space", "use addresses of the tenant")
            elif self.subnets and not any(network.subnet_of(subnet) for subnet in self.subnets):
                inside = ", ".join(map(str, self.subnets))
                text = f"{network} is not inside the tenant's subnets {inside}"
                self._bad(field, "outside-subnet", text, "expose only what the tenant owns")
        if expose.mode == "portForward" and expose.private is not None:
            self._check_targets(expose, private)
        if expose.mode == "static" and private:
            self._check_static(expose, private)

    def _check_targets(self, expose: Expose, private: list[IPv4Network]) -> None:
        for protocol, table in (("tcp", expose.tcp), ("udp", expose.udp)):
            for port, target in table.items():
                address = self._address(target.rpartition(":")[0])
                if address is not None and not any(address in network for network in private):
                    text = f"{target} is outside `private: {expose.private}`"
                    self._bad_port(f"{protocol}.{port}", text, "remove `private`, or forward to an address in it")

    def _check_static(self, expose: Expose, private: list[IPv4Network]) -> None:
        inside = nat.size(map(str, private))
        outside = expose.public.num_addresses
        if inside != outside:
            text = f"{inside} private and {outside} public addresses do not map one to one"
            self._bad("public", "static-size", text, f"use a public /{private[0].prefixlen}")
        elif inside > MAX_STATIC:
            self._bad("private", "static-size", f"{inside} addresses, the most is {MAX_STATIC}", "use a /16 or smaller")

    def _shares(self, expose: Expose, group: str) -> tuple[PoolShare, ...]:
        gateways = self.context.groups.get(group, ())
        if expose.mode != "masquerade" or not gateways:
            return ()
        try:
            return nat.shares(str(expose.public), gateways)
        except ValueError as error:
            need = 32 - (len(gateways) - 1).bit_length()
            text = f"{error}: each needs one, since gateways share no state"
            self._bad("public", "pool-size", text, f"use a /{need} or larger")
        return ()
