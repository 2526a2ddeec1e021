"""Three tiers: leaves in pods with spines of their own, and super-spines in planes that join the pods.

A pod is `pod_leaves` leaves and S spines. Spine j of every pod is in plane j: it is cabled to the super-spines of that
plane only, so there are S planes and a path between pods never changes its plane (the folded Clos that large fabrics
use: A. Andreyev, "Introducing data center fabric", 2014). Border leaves have pods of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.plan import BORDER_LEAF, LEAF, SPINE, SUPER_SPINE
from fabric.topology.switches import Draft
from fabric.topology.uplinks import Uplink, connect, spine_count

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.topology.placement import LeafRow
    from fabric.topology.switches import ClassPorts


class PlanesError(Exception):
    """The number of super-spines cannot be divided over the planes."""

    def __init__(self, count: int, planes: int) -> None:
        self.count, self.planes = count, planes
        super().__init__(f"{count} super-spines over {planes} planes")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the inventory says of the tiers above the leaves; counts are None where the builder is to choose.

    `spines` is per pod, `supers` over all planes.
    """

    pod_leaves: int
    spine_ports: ClassPorts
    super_ports: ClassPorts
    spine_prefix: str
    super_prefix: str
    spines: int | None
    supers: int | None


@dataclass(frozen=True, slots=True)
class Tiers:
    """The switches above the leaves, pod by pod and plane by plane, and the cables to them."""

    spines: list[Draft]
    supers: list[Draft]
    uplinks: list[Uplink]


def connect_pods(rows: dict[str, LeafRow], wanted: Wanted, ledger: Ledger, book: str) -> Tiers:
    """Form pods and planes and cable them. Raises SpinePortsError, UnevenUplinksError or PlanesError."""
    pods = _pods(rows, wanted.pod_leaves)
    planes = max(spine_count(leaves, wanted.spine_ports, wanted.spines) for leaves in pods.values())
    spines: dict[str, list[Draft]] = {}
    uplinks: list[Uplink] = []
    for number, (pod, leaves) in enumerate(pods.items()):
        spine_count(leaves, wanted.spine_ports, planes)  # the uplinks of every pod must divide alike
        spines[pod] = [
            Draft(f"{wanted.spine_prefix}-{pod}-{j + 1:02d}", SPINE, number * planes + j, wanted.spine_ports, pod=pod)
            for j in range(planes)
        ]
        for leaf in leaves:
            leaf.pod = pod
        uplinks += connect(leaves, spines[pod], ledger, f"{book}/pod-{pod}")
    supers: list[Draft] = []
    for j in range(planes):
        below = [spines[pod][j] for pod in spines]
        above = _supers(below, wanted, planes, j)
        uplinks += connect(below, above, ledger, f"{book}/plane-{j + 1:02d}")
        supers += above
    return Tiers([spine for pod in spines.values() for spine in pod], supers, uplinks)


def _pods(rows: dict[str, LeafRow], size: int) -> dict[str, list[Draft]]:
    """Leaves by pod: `01`, `02` ... and `b01` ... for border leaves, so that neither moves the other's names."""
    found: dict[str, list[Draft]] = {}
    for kind, sign in ((LEAF, ""), (BORDER_LEAF, "b")):
        leaves = rows[kind].leaves if kind in rows else []
        for first in range(0, len(leaves), size):
            found[f"{sign}{first // size + 1:02d}"] = leaves[first : first + size]
    return found


def _supers(below: list[Draft], wanted: Wanted, planes: int, plane: int) -> list[Draft]:
    if wanted.supers is not None and wanted.supers % planes:
        raise PlanesError(wanted.supers, planes)
    said = wanted.supers // planes if wanted.supers is not None else None
    count = spine_count(below, wanted.super_ports, said)
    prefix = f"{wanted.super_prefix}-{plane + 1:02d}"
    return [
        Draft(f"{prefix}-{k + 1:02d}", SUPER_SPINE, plane * count + k, wanted.super_ports, pod=f"plane-{plane + 1:02d}")
        for k in range(count)
    ]
