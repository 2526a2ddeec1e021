"""Which flows a probe runs: a pair, a matrix, a cover, a bisection, an incast, a restore.

A flow's `reader` is where blocks arrive and its `owner` is where they lie; with READ the reader drives (decode pulls),
with WRITE the owner does (prefill pushes).
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.plan import Plan
    from validators.rdma.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Flow:
    """Blocks go from `owner` to `reader`."""

    owner: Endpoint
    reader: Endpoint

    @property
    def name(self) -> str:
        """Direction in the plan's names."""
        return f"{self.owner.name} -> {self.reader.name}"


def pair(plan: Plan, owner: Sequence[Endpoint], reader: Sequence[Endpoint]) -> list[Flow]:
    """Flows between two servers of one tenant or of peers: same rail to same rail where both have it, else in order."""
    if {end.server for end in owner} == {end.server for end in reader}:
        fix = "name another server: data that does not leave its server proves nothing of the network"
        raise InputError([Problem("probe.pair", owner[0].server, "is both where blocks lie and where they go", fix)])
    flows = [Flow(a, b) for a in owner for b in reader if may_reach(plan, a, b) and a.rail == b.rail]
    flows = flows or [Flow(a, b) for a, b in zip(owner, reader, strict=False) if may_reach(plan, a, b)]
    return _some(flows, "pair", "the two servers have no tenant in common, and no peering, on any RDMA fabric")


def matrix(ends: Sequence[Endpoint]) -> list[list[Flow]]:
    """Return every ordered pair of NICs of one tenant and fabric, in rounds where no NIC is used twice."""
    left = [Flow(a, b) for a in ends for b in ends if _may_talk(a, b)]
    _some(left, "matrix", "no two servers of one tenant have RDMA ports")
    rounds = []
    while left:
        taken, later = _disjoint(left)
        rounds.append(taken)
        left = later
    return rounds


def cover(ends: Sequence[Endpoint], paths: int, qps: int = 1, seed: int = 1, share: float = 0.99) -> list[list[Flow]]:
    """Return rounds of random flows between leaves, as many per pair of leaves as touch all `paths` paths with
    probability `share`: a full matrix of NICs is not needed to meet every link.

    What is hashed is a queue pair, with a source port of its own, so a flow of `qps` queue pairs counts that often.
    """
    rng = random.Random(seed)  # noqa: S311 - a sample, not a secret
    by_leaf: dict[tuple[str, str, str, str], list[Flow]] = {}
    for a in ends:
        for b in ends:
            if _may_talk(a, b) and a.leaf != b.leaf:
                by_leaf.setdefault((a.leaf, b.leaf, a.tenant, a.fabric), []).append(Flow(a, b))
    need = -(-flows_to_cover(paths, share) // qps)
    chosen = [rng.choice(flows) for flows in by_leaf.values() for _ in range(need)]
    rng.shuffle(chosen)
    _some(chosen, "cover", "no two leaves have RDMA ports of one tenant")
    rounds = []
    while chosen:
        taken, chosen = _disjoint(chosen)
        rounds.append(taken)
    return rounds


def bisection(ends: Sequence[Endpoint]) -> list[Flow]:
    """Return flows that pair one half of the leaves with the other, each NIC once, all at the same time."""
    leaves = sorted({end.leaf for end in ends})
    first = set(leaves[: len(leaves) // 2])
    flows, used = [], set()
    for a in (end for end in ends if end.leaf in first):
        b = next((b for b in ends if b.leaf not in first and b.name not in used and _may_talk(a, b)), None)
        if b is not None:
            used.add(b.name)
            flows.append(Flow(a, b))
    return _some(flows, "bisection", "no NIC of one half of the leaves shares a tenant with one of the other half")


def incast(ends: Sequence[Endpoint], reader: Endpoint, count: int) -> list[Flow]:
    """Return `count` flows into one NIC: from as many servers as there are, other leaves first, then further NICs."""
    near = [e for e in ends if _may_talk(e, reader)]
    turn: dict[str, int] = {}
    order: list[tuple[int, int, Endpoint]] = []
    for owner in sorted(near, key=lambda e: (e.leaf == reader.leaf, e.rail != reader.rail)):
        turn[owner.server] = turn.get(owner.server, 0) + 1
        order.append((turn[owner.server], len(order), owner))
    if len(order) < count:
        text = f"{len(order)} NICs can send to it, {count} are asked for"
        raise InputError([Problem("probe.incast", reader.name, text, f"--count {len(order)}")])
    return [Flow(owner, reader) for _, _, owner in sorted(order, key=lambda one: one[:2])[:count]]


def restore(plan: Plan, pool: Sequence[Endpoint], readers: Sequence[Endpoint]) -> list[Flow]:
    """Return one flow per reading NIC, spread over the pool's ports in turn, own leaf first.

    The pool may be of another tenant that the readers' tenant peers with, as shared storage is.
    """
    flows, load = [], dict.fromkeys((end.name for end in pool), 0)
    for reader in readers:
        able = [end for end in pool if may_reach(plan, end, reader)]
        if able:
            owner = min(able, key=lambda end: (load[end.name], end.leaf != reader.leaf))
            load[owner.name] += 1
            flows.append(Flow(owner, reader))
    return _some(flows, "restore", "no pool port has a tenant in common, or a peering, with a reader")


def flows_to_cover(paths: int, share: float = 0.99) -> int:
    """Return how many random flows touch all of `paths` equal paths with probability `share` (coupon collector).

    Exact by inclusion and exclusion: P = sum over k of (-1)^k C(paths, k) (1 - k/paths)^flows.
    """
    flows = paths
    while _covered(paths, flows) < share:
        flows += 1
    return flows


def _covered(paths: int, flows: int) -> float:
    return math.fsum((-1) ** k * math.comb(paths, k) * (1 - k / paths) ** flows for k in range(paths + 1))


def _may_talk(a: Endpoint, b: Endpoint) -> bool:
    return a.server != b.server and a.tenant == b.tenant and a.fabric == b.fabric


def may_reach(plan: Plan, a: Endpoint, b: Endpoint) -> bool:
    """Whether the plan lets two NICs of one fabric talk: one tenant, or two that peer."""
    peers = plan.tenants[a.tenant].peers if a.tenant in plan.tenants else ()
    return a.server != b.server and a.fabric == b.fabric and (a.tenant == b.tenant or b.tenant in peers)


def _disjoint(flows: Sequence[Flow]) -> tuple[list[Flow], list[Flow]]:
    taken: list[Flow] = []
    later: list[Flow] = []
    sending, receiving = set(), set()
    for flow in flows:
        if flow.owner.name in sending or flow.reader.name in receiving:
            later.append(flow)
            continue
        sending.add(flow.owner.name)
        receiving.add(flow.reader.name)
        taken.append(flow)
    return taken, later


def _some(flows: list[Flow], what: str, text: str) -> list[Flow]:
    if not flows:
        raise InputError([Problem(f"probe.{what}", what, text)])
    return flows
