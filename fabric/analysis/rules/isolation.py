"""Tenant isolation as the rendered files really have it, against what the plan declares."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.analysis.isolation import declared, matrix
from fabric.analysis.policy import permits
from fabric.analysis.rendered import FRR_CONF
from fabric.analysis.rule import Rule
from fabric.plan import LEAF_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.frr_conf import AddressFamily, Bgp, FrrConf
    from fabric.plan import Tenant
    from fabric.problem import Problem


class IsolationMatrix(Rule):
    """Who reaches whom, computed from the route targets of every router, is what the tenants declare.

    Why: one wrong import anywhere joins two customers' networks, and every session still looks healthy.
    Fix: correct the import list of the VRF, or declare the peering in the inventory on both sides.
    """

    id = "isolation.matrix"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        want = declared(self.plan)
        for view in matrix(self.facts):
            allowed = want.get(view.tenant, frozenset({view.tenant}))
            subject = f"{view.device} {view.vrf}"
            for other in sorted(view.sees - allowed):
                line = view.lines.get(other, view.line)
                text = f"imports routes of tenant {other}, which {view.tenant} does not peer with"
                yield self.finding(subject, text, device=view.device, line=line)
            for other in sorted(view.needs - view.sees):
                text = f"does not import routes of {'its own tenant' if other == view.tenant else f'its peer {other}'}"
                yield self.finding(subject, text, device=view.device, line=view.line)


class ExportsOwnTarget(Rule):
    """A VRF exports its own tenant's route target and nobody else's.

    Why: a VRF that exports a peer's target puts its routes where that peer's peers import them: a shared storage
        tenant becomes a way between its clients.
    Fix: export the tenant's own target only; peering is done by importing.
    """

    id = "isolation.exports"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, bgp in self.facts.bgp():
            tenant = self.plan.tenant_of_vrf.get(bgp.vrf)
            if tenant is None or bgp.evpn is None:
                continue
            for target, line in bgp.evpn.rt_export.items():
                if target != tenant.rt and not (device in self.plan.gateways and self._nobody(target)):
                    owner = next((t.name for t in self.plan.tenants.values() if t.rt == target), "no tenant")
                    text = f"exports {target}, the target of {owner}, instead of {tenant.rt}"
                    yield self.finding(f"{device} {bgp.vrf}", text, device=device, line=line)

    def _nobody(self, target: str) -> bool:
        """A gateway marks its default route with a target of its own, which no tenant's routes carry."""
        return all(t.rt != target for t in self.plan.tenants.values())


class TargetsDistinct(Rule):
    """No two tenants have the same route target, VNI or VRF name.

    Why: equal numbers are one network under two names.
    Fix: delete the wrong entry of the ledger and plan again.
    """

    id = "isolation.distinct"

    def check(self) -> Iterator[Problem]:
        seen: dict[tuple[str, object], str] = {}
        for tenant in self.plan.tenants.values():
            for what, value in (
                ("route target", tenant.rt),
                ("VNI", tenant.vni),
                ("VRF", tenant.vrf),
                ("VLAN", tenant.vlan),
            ):
                other = seen.setdefault((what, value), tenant.name)
                if other != tenant.name:
                    yield self.finding(f"tenant {tenant.name}", f"has the {what} {value} of tenant {other}")


class NoTransit(Rule):
    """A VRF advertises its own subnets only, and takes no routes but EVPN's and its peers', by their subnets.

    Why: a shared tenant that advertises what it took from a client is a way between its clients; so is one that takes
        whatever a peer's VRF holds.
    Fix: `advertise ipv4 unicast route-map OWN-...` and `import vrf route-map PEERS-...` with lists of subnets.
    """

    id = "isolation.no-transit"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, conf in self.facts.routers.items():
            if device in self.plan.gateways:
                continue
            for bgp in conf.bgp.values():
                tenant = self.plan.tenant_of_vrf.get(bgp.vrf)
                if tenant is None or bgp.ipv4 is None:
                    continue
                subject = f"{device} {bgp.vrf}"
                for text, line in self._leaks(conf, bgp, tenant):
                    yield self.finding(subject, text, device=device, line=line)

    def _leaks(self, conf: FrrConf, bgp: Bgp, tenant: Tenant) -> Iterator[tuple[str, int]]:
        family = bgp.ipv4
        assert family is not None
        if "bgp" in family.redistribute:
            yield "redistributes bgp", family.redistribute["bgp"][1]
        for line, words in conf.vrfs[bgp.vrf].routes if bgp.vrf in conf.vrfs else ():
            if "nexthop-vrf" in words:
                yield f"has '{' '.join(words)}'", line
        if family.import_vrf:
            yield from self._passed_on(conf, bgp, family, tenant)

    def _passed_on(self, conf: FrrConf, bgp: Bgp, family: AddressFamily, tenant: Tenant) -> Iterator[tuple[str, int]]:
        line = next(iter(family.import_vrf.values()))
        if not family.import_map:
            yield "takes every route of its peers' VRFs: `import vrf` has no route-map", line
        said = next(iter((bgp.evpn.advertise if bgp.evpn else {}).items()), ("", 0))
        advertised = said[0].partition("route-map ")[2]
        own = _networks([tenant])
        mine = own + _networks([self.plan.tenants[name] for name in tenant.peers if name in self.plan.tenants])
        for other in self.plan.tenants.values():
            peer = other.name in tenant.peers
            for prefix in _networks([other]):
                if any(prefix.overlaps(net) for net in (own if peer else mine)):
                    continue
                if peer and said[0] and permits(conf, advertised, str(prefix)):
                    yield f"advertises {prefix} of its peer {other.name}", said[1]
                if not peer and family.import_map and permits(conf, family.import_map, str(prefix)):
                    yield f"would take {prefix} of tenant {other.name} from a peer's VRF", line


def _networks(tenants: list[Tenant]) -> list[IPv4Network]:
    return [IPv4Network(subnet.prefix) for tenant in tenants for subnet in tenant.subnets]


class ServerPortVrf(Rule):
    """A server's port is in the VRF of its tenant, with the plan's address; an unassigned port is in none.

    Why: a port left in the default VRF reaches every switch of the underlay; in a wrong VRF it is another tenant's.
    Fix: render again; if the plan is wrong, correct the tenant's `servers`.
    """

    id = "isolation.port-vrf"
    file = "config_db.json"

    def check(self) -> Iterator[Problem]:
        vrf_of = {tenant.name: tenant.vrf for tenant in self.plan.tenants.values()}
        for switch in self.facts.managed_switches:
            if switch.kind not in LEAF_KINDS or switch.name not in self.rendered.files:
                continue
            node = self.facts.node(switch.name)
            for name, link in self.facts.linked[switch.name].items():
                if link.kind != "server":
                    continue
                interface = node.interfaces.get(name)
                vrf = interface.vrf if interface else ""
                addresses = interface.addresses if interface else []
                want = vrf_of.get(link.tenant, "")
                address = link.end(switch.name).address
                have = ", ".join(addresses) or "no address"
                if vrf != want or (link.tenant and address not in addresses) or (not link.tenant and addresses):
                    text = (
                        f"to {link.a.device} is in {vrf or 'the default VRF'} with {have}, "
                        f"the plan says {want or 'no VRF'} with {address or 'no address'}"
                    )
                    keys = ("INTERFACE", name) if node.file == self.file else ()
                    yield self.finding(f"{switch.name} {name}", text, device=switch.name, file=node.file, keys=keys)
