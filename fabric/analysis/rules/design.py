"""What the plan leaves idle or weak, though every file is right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fabric.analysis.rule import Rule
from fabric.hardware.ranges import host_patterns
from fabric.plan import LEAF_KINDS, SPINE
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem


_REFERENCE_LEAVES = 2  # XOC-128 has two backend leaves and one spine


class ServersInTenants(Rule):
    """Every server that a managed fabric connects belongs to a tenant.

    Why: a server without one has a cable and a port, and no VRF, address or route: it reaches nothing.
    Fix: add them to the `servers` of a tenant in tenants.yaml, or lower the `count` of their class.
    """

    id = "design.servers-in-tenants"
    severity = Severity.WARNING

    def check(self) -> Iterator[Problem]:
        managed = {name for name, fabric in self.plan.fabrics.items() if fabric.managed}
        idle = [
            server.name
            for server in self.plan.servers.values()
            if any(port.fabric in managed for port in server.ports) and not any(port.tenant for port in server.ports)
        ]
        if idle:
            text = "in no tenant: no VRF, no address, nothing is reached"
            yield self.finding(", ".join(host_patterns(idle)), text)


class SecondSpine(Rule):
    """A managed fabric with two leaves or more has two spines or more.

    Why: when the only spine fails or is upgraded, no leaf reaches another. With two leaves it is a note: the small
        sites of the reference design are so.
    Fix: give the fabric a second spine, `spine: {count: 2}`.
    """

    id = "design.second-spine"
    severity = Severity.WARNING

    def check(self) -> Iterator[Problem]:
        for name, fabric in self.plan.fabrics.items():
            spines, leaves = self.plan.switches_of(name, SPINE), self.plan.switches_of(name, *LEAF_KINDS)
            if fabric.managed and len(spines) == 1 and len(leaves) > 1:
                text = f"{spines[0].name} is the only spine of {len(leaves)} leaves: its failure splits them"
                severity = Severity.INFO if len(leaves) == _REFERENCE_LEAVES else self.severity
                yield replace(self.finding(f"fabric {name}", text), severity=severity)
