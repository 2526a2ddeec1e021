"""Renamed classes: everything the ledger holds for a device's former name is moved to its new one.

A class that says `was` keeps all it had: numbers, addresses, cable positions, cable numbers, and the MAC addresses,
which are made from the name that a device had first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.allocation.ledger import Ledger
    from fabric.inventory.models import Site

IDENTITY = "identity"
Value = TypeVar("Value")


def rename_devices(site: Site, ledger: Ledger) -> None:
    """Rewrite the ledger for every `was` of the site. Names that the ledger already has are left as they are."""
    for old, new in _renamed(site):
        # a device's name as it stands in keys: alone, before a colon, or after the dashes of a link
        token = re.compile(rf"(?:(?<=--)|(?<![a-z0-9-])){re.escape(old)}-((?:b?\d+-)?\d+)(?![a-z0-9]|-[a-z0-9])")
        replacement = rf"{new}-\1"
        group = re.compile(rf"^(gateway )?{re.escape(old)}(?=$|\.)")
        _move(ledger.pools, token, replacement)
        _move(ledger.pins, token, replacement)
        for name, pool in ledger.pools.items():
            moved = _move(pool, token, replacement)
            if name == "management":  # every device that has a MAC address has one of these
                identities = ledger.pins.setdefault(IDENTITY, {})
                identities.update({new: identities.pop(old, old) for old, new in moved})
        for name, pins in ledger.pins.items():
            if name != IDENTITY:
                _move(pins, token, replacement)
                if name.endswith("/placement"):
                    _move(pins, group, rf"\g<1>{new}")
                for key, value in pins.items():
                    pins[key] = token.sub(replacement, value)


def identity_of(ledger: Ledger, device: str) -> str:
    """Return the name that a device had first; MAC addresses are made from it."""
    book = ledger.pins.get(IDENTITY, {})
    if device in book:
        return book[device]
    # a new device that got the name a renamed one had first must not get its MAC address too
    return f"{device}/2" if device in book.values() else device


def _renamed(site: Site) -> Iterator[tuple[str, str]]:
    servers = [(name, spec.was) for name, spec in site.servers.items()]
    gateways = [(name, spec.was) for name, spec in site.gateways.items()]
    for name, was in (*servers, *gateways):
        if was and was != name:
            yield was, name
    for fabric, spec_ in site.fabrics.items():
        prefix = spec_.prefix or fabric
        classes = {
            "leaf": spec_.leaf,
            "border-leaf": spec_.border_leaf,
            "spine": spec_.spine,
            "super": spec_.super_spine,
        }
        for role, switch in classes.items():
            new = switch.name or f"{prefix}-{role}" if switch else ""
            if switch and switch.was and switch.was != new:
                yield switch.was, new


def _move(book: dict[str, Value], token: re.Pattern[str], replacement: str) -> list[tuple[str, str]]:
    """Move keys to their new names; returns (old, new) of those that were moved."""
    moved = []
    for key in [key for key in book if token.search(key)]:
        new = token.sub(replacement, key)
        if new not in book:
            book[new] = book.pop(key)
            moved.append((key, new))
    return moved
