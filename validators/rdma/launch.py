"""Start both ends of every flow through agents, together, and bring the rows back."""

from __future__ import annotations

import uuid
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabric.problem import CouldNotRunError
from validators.agents.agent import run_program
from validators.rdma.asking import asking
from validators.rdma.together import Waiting, start_together

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future, ThreadPoolExecutor

    from validators.agents.agent import Agent
    from validators.rdma.endpoints import Endpoint
    from validators.rdma.places import Places
    from validators.rdma.sets import Flow

PACKAGES = ("validators.rdma.host",)
MODULE = "validators.rdma.host.main"
_FIRST_PORT = 18515
_ENDS_BY_ITSELF_S = 2.0
"""In which an end that was connected sees that the other has gone."""
_BEFORE_CONNECTING = frozenset({"missing", "device", "agent"})
_TELL = "touch {0}; i=0; while [ -e {0} ] && [ $i -lt 50 ]; do sleep 0.2; i=$((i + 1)); done; rm -f {0}"


@dataclass(frozen=True, slots=True)
class Ask:
    """What every flow of a round does. `groups` are (piece bytes, pieces); `settings` are of a queue pair."""

    backend: str = "auto"
    scenario: str = "transfer"
    verb: str = "read"
    groups: tuple[tuple[int, int], ...] = ((65_536, 64),)
    scatter: bool = True
    qps: int = 4
    depth: int = 64
    repeats: int = 20
    duration_s: float = 0.0
    settings: dict[str, int] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    nobody_gid: str = "198.18.255.254"
    deadline_s: float = 90.0


@dataclass(frozen=True, slots=True)
class Row:
    """What one flow said: the row of its driving end, and of its passive end."""

    flow: Flow
    drive: dict[str, Any]
    serve: dict[str, Any]


def run_round(flows: Sequence[Flow], ask: Ask, places: Places, together: bool = True) -> list[Row]:
    """Run flows at the same time. A host that cannot be reached becomes an error row, it does not stop the others.

    `together` gives all of them one start; without it each starts as soon as it is ready.
    """
    meet = together and len(flows) > 1 and ask.scenario == "transfer"
    meetings = [f"/tmp/kvfabric-{uuid.uuid4().hex}" if meet else "" for _ in flows]  # noqa: S108 - own name
    with asking(places, 2 * len(flows)) as pool:
        running = [
            _start(pool, number, flow, ask, places, meeting)
            for number, (flow, meeting) in enumerate(zip(flows, meetings, strict=True))
        ]
        if meet:
            started = [
                Waiting(meeting, places.agent(_driver(flow, ask).server), drive)
                for flow, meeting, (drive, _) in zip(flows, meetings, running, strict=True)
            ]
            start_together(started, places, ask.deadline_s)
        return [Row(flow, drive.result(), serve.result()) for flow, (drive, serve) in zip(flows, running, strict=True)]


def _driver(flow: Flow, ask: Ask) -> Endpoint:
    return flow.reader if ask.verb == "read" else flow.owner


def _start(
    pool: ThreadPoolExecutor,
    number: int,
    flow: Flow,
    ask: Ask,
    places: Places,
    meeting: str,
) -> tuple[Future[dict[str, Any]], Future[dict[str, Any]]]:
    driver = _driver(flow, ask)
    server = flow.owner if driver is flow.reader else flow.reader
    common = {"backend": ask.backend, "port": _FIRST_PORT + number, "deadline_s": ask.deadline_s}
    common |= {"wait_s": ask.deadline_s / 2, "idle_s": ask.deadline_s}
    passive = {**common, "role": "serve", "open": _open(server, places), "listen": server.address}
    active = {
        **common,
        "role": "drive",
        "open": _open(driver, places),
        "peer": server.address,
        "scenario": ask.scenario,
        "verb": ask.verb,
        "workload": {"groups": ask.groups, "scatter": ask.scatter},
        "identity": ask.identity,
        "qps": ask.qps,
        "depth": ask.depth,
        "repeats": ask.repeats,
        "duration_s": ask.duration_s,
        "settings": ask.settings,
        "nobody_gid": ask.nobody_gid,
        "meeting": meeting,
        "transfer_deadline_s": ask.deadline_s / 3,
    }
    here, there = places.agent(driver.server), places.agent(server.server)
    called, waiting = (f"/tmp/kvfabric-{uuid.uuid4().hex}.over" for _ in range(2))  # noqa: S108 - own names
    active["over"], passive["over"] = called, waiting
    serve = pool.submit(_run, there, passive, ask.deadline_s + 30)
    drive = pool.submit(_run, here, active, ask.deadline_s + 30)
    drive.add_done_callback(lambda ended: _tell(ended, serve, there, waiting))
    serve.add_done_callback(lambda ended: _tell(ended, drive, here, called))
    return drive, serve


def _tell(ended: Future[dict[str, Any]], other: Future[dict[str, Any]], agent: Agent, over: str) -> None:
    """Tell the other end, which may still wait to be connected, that this one has failed and will not come."""
    if ended.cancelled() or ended.exception() or ended.result().get("error", {}).get("kind") not in _BEFORE_CONNECTING:
        return
    wait([other], _ENDS_BY_ITSELF_S)
    if not other.done():
        with suppress(CouldNotRunError):
            agent.execute(["sh", "-c", _TELL.format(over)], b"", 60.0)


def _open(end: Endpoint, places: Places) -> dict[str, str]:
    return {"address": end.address, "device": places.rdma_device(end)}


def _run(agent: Agent, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    try:
        row = run_program(agent, PACKAGES, MODULE, request, timeout_s)
    except CouldNotRunError as error:
        return {"error": {"kind": "agent", "text": str(error)}}
    failed = row.get("error")
    if row.get("role") == request["role"] or (isinstance(failed, dict) and {"kind", "text"} <= failed.keys()):
        return row
    return {"error": {"kind": "agent", "text": f"{agent.name}: what came back is no row of this probe"}}
