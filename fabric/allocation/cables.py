"""Cable numbers: given once by the end that every cable has to itself, and kept, so that labels on cables stay true."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.allocation.numbers import Numbers
    from fabric.plan import Link

POOL = "cable"
_MOST = 10_000_000


def number_cables(links: dict[str, Link], numbers: Numbers) -> None:
    """Give every link its cable number, from 1; numbers of removed cables are held for their return.

    New cables are numbered kind by kind and fabric by fabric in the order of the plan, then by the name of end `a`.
    """
    batches: dict[tuple[str, str], list[str]] = {}
    for link_id, link in links.items():
        batches.setdefault((link.kind, link.fabric), []).append(link_id)
    numbers.means(POOL, lambda number: str(number + 1))
    for ids in batches.values():
        keys = {link_id: f"{links[link_id].a.device}:{links[link_id].a.port}" for link_id in ids}
        given = numbers.take(POOL, keys.values(), _MOST, ("cables",))
        for link_id, key in keys.items():
            links[link_id] = replace(links[link_id], cable=given[key] + 1)
