"""Gives flows that are ready their common start, over the agents by which they were started."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.rdma.asking import asking
from validators.rdma.host.meeting import READY, START

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from validators.agents.agent import Agent
    from validators.rdma.places import Places

_LOOKS, _LOOK_S = 7, 0.3
_LEAD_S = 0.5


@dataclass(frozen=True, slots=True)
class Waiting:
    """A flow that waits for its start: where its files are, the agent of its driving host, and its row to come."""

    meeting: str
    agent: Agent
    row: Future[dict[str, Any]]


def start_together(flows: Sequence[Waiting], places: Places, deadline_s: float) -> None:
    """Wait until every flow is ready or has ended, then write the moment for all that are ready.

    A host that cannot be asked leaves its flows to their own deadline, which ends them with a reason.
    """
    end = time.monotonic() + deadline_s
    ready: set[str] = set()
    longest_s = 0.0
    while time.monotonic() < end:
        missing = [flow for flow in flows if flow.meeting not in ready and not flow.row.done()]
        if not missing:
            break
        for line, took_s in _on_each_host(missing, places, _looking):
            ready |= {name.removesuffix(READY) for name in line.split()}
            longest_s = max(longest_s, took_s)
    alive = [flow for flow in flows if flow.meeting in ready]
    # what it takes to write on the slowest host, told by a command that does next to nothing
    longest_s = max([took_s for _, took_s in _on_each_host(alive, places, lambda _names: "true")], default=0.0)
    start_at = time.time() + _LEAD_S + 2 * longest_s
    _on_each_host(alive, places, lambda names: _writing(names, start_at))


def _looking(names: Sequence[str]) -> str:
    """Shell that waits a moment for all files, and names those that are there."""
    files = " ".join(shlex.quote(name + READY) for name in names)
    some = f"for f in {files}; do test -e $f || continue 2; done; break"
    wait = f"for i in $(seq {_LOOKS}); do sleep {_LOOK_S}; {some}; done"
    return f"{wait}; for f in {files}; do test -e $f && echo $f; done; true"


def _writing(names: Sequence[str], start_at: float) -> str:
    """Shell that puts the files there whole, so that nobody reads half a number."""
    lines = [f"echo {start_at!r} > {n}.new && mv {n}.new {n}" for n in (shlex.quote(name + START) for name in names)]
    return "; ".join(lines)


def _on_each_host(flows: Sequence[Waiting], places: Places, command: Any) -> list[tuple[str, float]]:
    """Run a command about its flows on each host, all at once; (what it said, seconds), empty where it failed."""
    hosts: dict[str, list[Waiting]] = {}
    for flow in flows:
        hosts.setdefault(flow.agent.name, []).append(flow)

    def ask(mine: list[Waiting]) -> tuple[str, float]:
        began = time.monotonic()
        try:
            done = mine[0].agent.execute(["sh", "-c", command([flow.meeting for flow in mine])], b"", 60.0)
        except CouldNotRunError:
            time.sleep(_LOOK_S)
            return "", 0.0
        return done.stdout.decode(errors="replace"), time.monotonic() - began

    if not hosts:
        return []
    with asking(places, len(hosts)) as pool:
        return list(pool.map(ask, hosts.values()))
