"""What resolving exposures needs to know of the rest of the site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Network

    from fabric.plan import Subnet


@dataclass(frozen=True)
class ExposureContext:
    """`subnets` by tenant, only of the gateways' fabric; `services` maps tenant -> server -> address (no length);
    `groups` maps a gateway group to its gateways, preferred first; `idle_timeout_s` is the default of each group;
    `infrastructure` are named ranges that public and private addresses may not touch.
    """

    subnets: dict[str, tuple[Subnet, ...]]
    services: dict[str, dict[str, str]]
    groups: dict[str, tuple[str, ...]]
    idle_timeout_s: dict[str, int]
    infrastructure: tuple[tuple[str, IPv4Network], ...]
