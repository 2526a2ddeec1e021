"""What is asked of a site: which flows, in which rounds, of which lossless classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.problem import InputError, Problem
from validators.rdma import sets
from validators.rdma.endpoints import endpoints, find

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.kv.size import PiecePlan
    from fabric.plan import Plan
    from validators.rdma.endpoints import Endpoint
    from validators.rdma.sets import Flow

SETS = ("pair", "matrix", "cover", "bisection", "incast", "restore")


@dataclass(frozen=True, slots=True)
class Question:
    """Which flows. `owner` and `reader` are `server` or `server:port`; `count` is for incast, `readers` for restore.

    `tenant` limits matrix, cover and bisection to one tenant. `restore_bytes` is what each reader of a restore gets in
    all, 0 for one pass over the pieces; `deadline_s` is when the last reader must have it. `traffic_class` names a
    lossless class; empty is the first one, and every one for an incast.
    """

    kind: str = "pair"
    owner: str = ""
    reader: str = ""
    count: int = 2
    readers: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    restore_bytes: int = 0
    deadline_s: float = 0.0
    tenant: str = ""
    traffic_class: str = ""
    seed: int = 1


def rounds_of(
    plan: Plan, question: Question, qps: int = 1, reaches: Callable[[str], bool] = lambda _server: True
) -> list[list[Flow]]:
    """Return the rounds of a question: flows of a round run together. Servers that are not reached are left out.

    Raises InputError when nothing is left to run, or what was named is not reached, with what to change.
    """
    rounds = _rounds(plan, question, qps, reaches)
    needed = dict.fromkeys(end.server for flows in rounds for flow in flows for end in (flow.owner, flow.reader))
    if lacking := [server for server in needed if not reaches(server)]:
        fix = "add it to the hosts file; in a lab, start a slice that has it; or name another server"
        raise InputError(
            [Problem("probe.reach", server, "is not among the devices that can be reached", fix) for server in lacking]
        )
    return rounds


def _rounds(plan: Plan, question: Question, qps: int, reaches: Callable[[str], bool]) -> list[list[Flow]]:
    if question.tenant and question.tenant not in plan.tenants:
        fix = f"tenants: {', '.join(plan.tenants)}"
        raise InputError([Problem("probe.tenant", f"tenant {question.tenant}", "is not in the plan", fix)])
    ends = [e for e in endpoints(plan) if reaches(e.server) and question.tenant in {"", e.tenant}]
    if question.kind == "pair":
        _need(question, "owner", "reader")
        return [sets.pair(plan, find(plan, question.owner), find(plan, question.reader))]
    if question.kind == "matrix":
        return sets.matrix(ends)
    if question.kind == "cover":
        return sets.cover(ends, paths_between(plan, ends), qps, question.seed)
    if question.kind == "bisection":
        return [sets.bisection(ends)]
    if question.kind == "incast":
        _need(question, "reader")
        return [sets.incast(ends, find(plan, question.reader)[0], question.count)]
    if question.kind == "restore":
        _need(question, "pool", "readers")
        pool = [end for name in question.pool for end in find(plan, name)]
        readers = [end for name in question.readers for end in find(plan, name)]
        return [sets.restore(plan, pool, readers)]
    raise InputError([Problem("probe.set", question.kind, "is not a set of flows", f"one of {', '.join(SETS)}")])


def _need(question: Question, *names: str) -> None:
    options = {"owner": "--from", "reader": "--to", "pool": "--pool", "readers": "--readers"}
    lacking = [options[name] for name in names if not getattr(question, name)]
    if lacking:
        text = f"needs {' and '.join(lacking)}"
        raise InputError([Problem("probe.set", question.kind, text, "name a SERVER or SERVER:PORT")])


def paths_between(plan: Plan, ends: Sequence[Endpoint]) -> int:
    """Return the equal paths between two leaves: the most links that a leaf of the ends has to switches above it."""
    ups = [
        sum(
            link.far(leaf).device in plan.switches
            for link in plan.links_of.get(leaf, ())
            if link.fabric == ends[0].fabric
        )
        for leaf in {end.leaf for end in ends}
    ]
    return max(ups, default=1)


def groups_of(plan: PiecePlan, most_bytes: int) -> tuple[tuple[tuple[int, int], ...], str]:
    """Return the pieces of a rank as (size, count), cut to `most_bytes` in all, and what was cut."""
    whole = tuple((part.size, part.count) for part in plan.pieces)
    if plan.total <= most_bytes:
        return whole, f"all {plan.count} pieces of a rank"
    share = most_bytes / plan.total
    cut = tuple((size, max(1, int(count * share))) for size, count in whole)
    kept = sum(count for _, count in cut)
    return cut, f"{kept} of {plan.count} pieces of a rank (at most {most_bytes} bytes are held)"


def check_groups(groups: Sequence[tuple[int, int]]) -> None:
    """Raise InputError for a piece that cannot carry its identity."""
    text = "must be a multiple of 8 and at least 64 bytes, to carry its identity"
    problems = [
        Problem("probe.piece", f"piece of {size} bytes", text, f"such as {max(64, -(-size // 8) * 8)}")
        for size, count in groups
        if size % 8 or size < 64 or count < 1
    ]
    if problems:
        raise InputError(problems)
