"""One thing of the site and all that touches it: a device, tenant, link or gateway group, found by any of its names."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from fabric.interop.showing.lookup import find
from fabric.interop.showing.path import path_card
from fabric.interop.showing.reach import reach_card

if TYPE_CHECKING:
    from fabric.interop.showing.card import Card
    from fabric.plan import Plan


def show(plan: Plan, name: str, other: str = "") -> Card:
    """Describe `name`, or the way from it to `other` (of a server also to an address); InputError with suggestions for
    an unknown name."""
    if other and name in plan.servers and (address := _address(other)):
        return reach_card(plan, name, address)
    if other:
        return path_card(plan, name, other)
    return find(plan, name)


def _address(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text.strip())
    except ValueError:
        return None
