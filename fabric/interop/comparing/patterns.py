"""What is different as a whole: how servers are spread over leaves, how leaves are joined to spines.

One sentence here explains hundreds of moved cables.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fabric.interop.comparing.finding import PATTERN, Finding, plural
from fabric.plan import LEAF_KINDS, SPINE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.interop.cable_map import Cable
    from fabric.plan import Plan

# server name -> port name -> leaf name
Homes = dict[str, dict[str, str]]


def find(plan: Plan, planned: Iterable[Cable], given: Iterable[Cable]) -> list[Finding]:
    """Return the differences in pattern, server spread first."""
    planned, given = list(planned), list(given)
    found = []
    ours, theirs = _homes(plan, planned), _homes(plan, given)
    for key, our_homes in ours.items():
        finding = _spread(plan, key, our_homes, theirs.get(key, {}))
        if finding:
            found.append(finding)
    return [*found, *_uplinks(plan, planned, given)]


def _homes(plan: Plan, cables: Iterable[Cable]) -> dict[tuple[str, str], Homes]:
    """Which leaf each port of each server is on, by (fabric, server class)."""
    found: dict[tuple[str, str], Homes] = {}
    for cable in cables:
        for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
            server = plan.servers.get(here.device)
            if server is None or there.device in plan.servers:
                continue
            link = plan.link_at.get(here.place)
            fabric = link.fabric if link else ""
            homes = found.setdefault((fabric, server.server_class), {})
            homes.setdefault(server.name, {})[here.port] = there.device
    return found


def _spread(plan: Plan, key: tuple[str, str], ours: Homes, theirs: Homes) -> Finding | None:
    fabric, server_class = key
    # servers that one side lacks are said as missing or extra devices; they are no other pattern
    both = ours.keys() & theirs.keys()
    if fabric not in plan.fabrics or not both:
        return None
    ours, theirs = ({name: homes[name] for name in homes if name in both} for homes in (ours, theirs))
    our_spread, their_spread = _leaves_per_server(ours), _leaves_per_server(theirs)
    if our_spread == their_spread and _rails(ours) == _rails(theirs):
        return None
    width = max(len(ports) for ports in theirs.values())
    meant = plan.fabrics[fabric].placement
    shape = " (NIC n of every server on the same leaf: rail-optimised)" if _rails(theirs) else ""
    text = (
        f"{fabric}: the map spreads each {server_class} server's {plural(width, 'NIC port')} over "
        f"{_most(their_spread)}, {plural(_servers_per_leaf(theirs), 'server')} on a leaf{shape}; the plan is {meant}: "
        f"{_most(our_spread)} a server, {plural(_servers_per_leaf(ours), 'server')} on a leaf"
    )
    rows = tuple(
        f"{server}: {_leaves(ports)}; planned {_leaves(ours[server])}"
        for server, ports in theirs.items()
        if set(ports.values()) != set(ours[server].values())
    )
    return Finding(PATTERN, text, sum(len(ports) for ports in theirs.values()), rows)


def _leaves(ports: dict[str, str]) -> str:
    return ", ".join(dict.fromkeys(ports.values()))


def _leaves_per_server(homes: Homes) -> Counter[int]:
    return Counter(len(set(ports.values())) for ports in homes.values())


def _servers_per_leaf(homes: Homes) -> int:
    """The largest number of servers that touch one leaf."""
    counted = Counter(leaf for ports in homes.values() for leaf in set(ports.values()))
    return max(counted.values())


def _rails(homes: Homes) -> bool:
    """Whether servers that share their leaves all put the same port on the same leaf, over more than one leaf."""
    groups: dict[frozenset[str], set[tuple[tuple[str, str], ...]]] = {}
    for ports in homes.values():
        groups.setdefault(frozenset(ports.values()), set()).add(tuple(sorted(ports.items())))
    spread = all(len(leaves) > 1 for leaves in groups)
    return spread and len(groups) < len(homes) and all(len(shapes) == 1 for shapes in groups.values())


def _most(spread: Counter[int]) -> str:
    common = spread.most_common(1)[0][0]
    text = plural(common, "leaf", "leaves")
    return (
        text if len(spread) == 1 else f"{text} (some over {', '.join(str(n) for n in sorted(spread) if n != common)})"
    )


def _uplinks(plan: Plan, planned: list[Cable], given: list[Cable]) -> list[Finding]:
    ours, theirs = _pairs(plan, planned), _pairs(plan, given)
    found = []
    for fabric, our_pairs in ours.items():
        their_pairs = theirs.get(fabric)
        if not their_pairs or our_pairs == their_pairs:
            continue
        rows = tuple(
            f"{leaf} to {spine}: {their_pairs[leaf, spine]} links, planned {our_pairs[leaf, spine]}"
            for leaf, spine in dict.fromkeys([*our_pairs, *their_pairs])
            if their_pairs[leaf, spine] != our_pairs[leaf, spine]
        )
        text = (
            f"{fabric}: leaves and spines are joined by {_range(their_pairs)} a pair ({sum(their_pairs.values())} in "
            f"all) in the map, by {_range(our_pairs)} ({sum(our_pairs.values())}) in the plan"
        )
        found.append(Finding(PATTERN, text, abs(sum(our_pairs.values()) - sum(their_pairs.values())), rows))
    return found


def _pairs(plan: Plan, cables: list[Cable]) -> dict[str, Counter[tuple[str, str]]]:
    found: dict[str, Counter[tuple[str, str]]] = {}
    for cable in cables:
        kinds = {plan.kind_of.get(end.device, ""): end.device for end in (cable.a, cable.b)}
        leaf = next((device for kind, device in kinds.items() if kind in LEAF_KINDS), "")
        if leaf and SPINE in kinds:
            found.setdefault(plan.switches[leaf].fabric, Counter())[leaf, kinds[SPINE]] += 1
    return found


def _range(pairs: Counter[tuple[str, str]]) -> str:
    low, high = min(pairs.values()), max(pairs.values())
    return plural(low, "link") if low == high else f"{low} to {high} links"
