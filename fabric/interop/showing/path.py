"""The way between two devices: how many hops, how many equal ways, and over which switches."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fabric.interop.showing.card import Card, Table
from fabric.interop.showing.lookup import find, unknown
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.plan import Link, Plan


def path_card(plan: Plan, start: str, end: str) -> Card:
    """Describe the shortest ways from `start` to `end`, one row for each fabric that joins them.

    Servers do not forward: a way never goes through one. Raises InputError for names that are not devices.
    """
    problems = [_no_device(plan, name) for name in (start, end) if name not in plan.kind_of]
    if problems:
        raise InputError(problems)
    facts = {"allowed by tenancy": _allowed(plan, start, end)}
    header = ("fabric", "hops", "ways", "via", "first_hop_gbps", "locality")
    rows = []
    for fabric in plan.fabrics:
        way = _shortest(plan, fabric, start, end)
        if way:
            rows.append((fabric, *way))
    if not rows:
        facts["path"] = "none: no fabric joins the two"
    return Card(f"{start} to {end}", f"path in {plan.site}", facts, [Table("ways", header, rows)])


def _no_device(plan: Plan, name: str) -> Problem:
    """The problem of an end that is no device: it may be something else, which has no way to it."""
    try:
        card = find(plan, name)
    except InputError:
        return unknown(plan, name)
    kind = card.kind.removesuffix(f" of {plan.site}")
    text = f"is a {kind}, and a way is between two devices, or from a server to an address"
    return Problem("show.no-device", name, text, f"`kvfabric show {plan.site} {name}` says what it is")


def _allowed(plan: Plan, start: str, end: str) -> str:
    """What the tenants of two servers say about each other; empty when one of them is no server."""
    if start not in plan.servers or end not in plan.servers:
        return ""
    ours, theirs = ({p.tenant for p in plan.servers[n].ports if p.tenant} for n in (start, end))
    if ours & theirs:
        return f"yes: both in {', '.join(sorted(ours & theirs))}"
    peered = sorted(f"{a} peers with {b}" for a in ours for b in theirs if b in plan.tenants[a].peers)
    return f"yes: {', '.join(peered)}" if peered else "no: different tenants without a peering"


def _neighbours(plan: Plan, fabric: str) -> dict[str, list[Link]]:
    found: dict[str, list[Link]] = {}
    for link in plan.links.values():
        if link.fabric == fabric:
            found.setdefault(link.a.device, []).append(link)
            found.setdefault(link.b.device, []).append(link)
    return found


def _shortest(plan: Plan, fabric: str, start: str, end: str) -> tuple[object, ...] | None:
    """Breadth first; counts link-disjoint choices along shortest ways, parallel links included."""
    links = _neighbours(plan, fabric)
    distance, ways = {start: 0}, {start: 1}
    before: dict[str, list[str]] = {}
    queue = deque([start])
    while queue:
        device = queue.popleft()
        if device == end or (device in plan.servers and device != start):
            continue
        for link in links.get(device, ()):
            far = link.far(device).device
            if far not in distance:
                distance[far], ways[far] = distance[device] + 1, 0
                queue.append(far)
            if distance[far] == distance[device] + 1:
                ways[far] += ways[device]
                if device not in before.setdefault(far, []):
                    before[far].append(device)
    if end not in distance or start == end:
        return None
    first = sum(link.speed for link in links[start] if _leads(link.far(start).device, end, before))
    via = _layers(before, start, end)
    locality = "one leaf" if distance[end] == 2 and start in plan.servers else f"{distance[end] - 1} switches"
    return distance[end], ways[end], " > ".join(via), first, locality


def _leads(neighbour: str, end: str, before: dict[str, list[str]]) -> bool:
    """Whether a shortest way to `end` goes over `neighbour`."""
    seen: set[str] = set()
    stack = [end]
    while stack:
        device = stack.pop()
        if device == neighbour:
            return True
        if device not in seen:
            seen.add(device)
            stack.extend(before.get(device, ()))
    return False


def _layers(before: dict[str, list[str]], start: str, end: str) -> list[str]:
    """The devices of each step between the two, many of one step said by their number."""
    layers: list[list[str]] = []
    step = [end]
    while True:
        step = list(dict.fromkeys(device for name in step for device in before.get(name, ())))
        if not step or step == [start]:
            break
        layers.append(step)
    return [layer[0] if len(layer) == 1 else f"{layer[0]} +{len(layer) - 1}" for layer in reversed(layers)]
