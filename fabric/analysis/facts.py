"""What the rules look at: the plan, the parsed files, and indexes over both that are built once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fabric.analysis.node import Node, node_of
from fabric.analysis.rendered import CONFIG_DB, FRR_CONF
from fabric.plan import FABRIC_LINK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.analysis.frr_conf import Bgp, FrrConf
    from fabric.analysis.rendered import ConfigDb, Rendered
    from fabric.analysis.sessions import Session
    from fabric.plan import Link, Plan, Switch


@dataclass(frozen=True, slots=True)
class Alike:
    """Switches whose tables are equal: a rule looks at `first` and speaks for all of `names`."""

    first: str
    names: tuple[str, ...]
    fabric: str

    @property
    def subject(self) -> str:
        """How a finding names the group."""
        others = len(self.names) - 1
        return self.first if not others else f"{self.first} and {others} alike"


class Facts:
    """Indexes shared by the rules of one run. Everything is lazy: a rule pays for what it asks."""

    def __init__(self, plan: Plan, rendered: Rendered) -> None:
        self.plan = plan
        self.rendered = rendered
        self.session_cache: list[Session] = []
        self._nodes: dict[str, Node] = {}

    @cached_property
    def sonic(self) -> tuple[str, ...]:
        """Devices of the plan that have a config_db.json."""
        return tuple(name for name in self.plan.kind_of if CONFIG_DB in self.rendered.files.get(name, {}))

    @cached_property
    def routers(self) -> dict[str, FrrConf]:
        """Devices of the plan that have an frr.conf, with it parsed."""
        found = {
            name: self.rendered.frr(name) for name in self.plan.kind_of if FRR_CONF in self.rendered.files.get(name, {})
        }
        return {name: conf for name, conf in found.items() if conf is not None}

    @cached_property
    def managed_switches(self) -> tuple[Switch, ...]:
        """Switches that should have files."""
        return tuple(s for s in self.plan.switches.values() if s.managed and self.plan.fabrics[s.fabric].managed)

    def db(self, device: str) -> ConfigDb:
        """Return a device's config_db."""
        return self.rendered.config_db(device)

    def bgp(self) -> Iterator[tuple[str, Bgp]]:
        """Every BGP instance of every router, with the device's name."""
        for device, conf in self.routers.items():
            for bgp in conf.bgp.values():
                yield device, bgp

    def node(self, device: str) -> Node:
        """Return a device's interfaces as its own files set them up, whatever kind of file that is."""
        known = self._nodes.get(device)
        if known is None:
            known = self._nodes[device] = node_of(self.rendered, device)
        return known

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Every device that has files."""
        return {name: self.node(name) for name in self.plan.kind_of if name in self.rendered.files}

    @cached_property
    def rdma_fabrics(self) -> frozenset[str]:
        """Names of fabrics with a lossless class."""
        return frozenset(
            name for name, fabric in self.plan.fabrics.items() if fabric.managed and fabric.qos is not None
        )

    @cached_property
    def linked(self) -> dict[str, dict[str, Link]]:
        """Switch -> interface -> link, for every cable of the switch."""
        found: dict[str, dict[str, Link]] = {name: {} for name in self.plan.switches}
        for link in self.plan.links.values():
            for end in (link.a, link.b):
                if end.device in found:
                    found[end.device][end.interface] = link
        return found

    def alike(self, tables: Sequence[str]) -> list[Alike]:
        """Group the SONiC switches of a fabric whose `tables` are equal, so that a rule runs once a group.

        Equal text was parsed into one object, so identity is enough; tables that differ in layout only are not joined.
        """
        groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
        for device in self.sonic:
            switch = self.plan.switches.get(device)
            fabric = switch.fabric if switch else ""
            groups.setdefault((fabric, tuple(id(self.db(device).get(table)) for table in tables)), []).append(device)
        return [Alike(names[0], tuple(names), fabric) for (fabric, _), names in groups.items()]

    @cached_property
    def lossless_ports(self) -> dict[str, frozenset[str]]:
        """Switch -> interfaces that carry RDMA: fabric links of a lossless fabric, and cables of RDMA NIC ports."""
        rdma = {port.link for server in self.plan.servers.values() for port in server.ports if port.rdma}
        return {
            switch: frozenset(n for n, link in links.items() if link.kind == FABRIC_LINK or link.id in rdma)
            for switch, links in self.linked.items()
        }

    @cached_property
    def vrf_names(self) -> frozenset[str]:
        """VRF names of the tenants."""
        return frozenset(self.plan.tenant_of_vrf)
