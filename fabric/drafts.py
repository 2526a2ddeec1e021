"""What is decided of a site before its devices and cables are made, and never changes after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.inventory.load import Inventory
    from fabric.inventory.models import Site
    from fabric.tenancy.build import Tenancy
    from fabric.topology.fabrics import FabricDraft


@dataclass(frozen=True, slots=True)
class Drafts:
    """Filled fabrics, racks (device -> rack), gateway groups (name -> gateways, the first preferred), and tenancy."""

    inventory: Inventory
    ledger: Ledger
    fabrics: dict[str, FabricDraft]
    racks: dict[str, str]
    groups: dict[str, tuple[str, ...]]
    tenancy: Tenancy

    @property
    def site(self) -> Site:
        """The inventory, as written."""
        return self.inventory.site
