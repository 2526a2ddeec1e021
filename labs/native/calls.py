"""The lab's own functions, as the agent offers them to the tool: each takes and returns JSON-ready data."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from labs import converge, facts, model, status
from labs.native import bringup, faults, lldp, nodes
from labs.native.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable


__all__ = ["CallError", "RefusedError", "run"]


class CallError(Exception):
    """The function could not do it, in words for a person."""


def note(text: str) -> None:
    """Tell the tool what is going on."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _lab() -> model.Lab:
    return model.Lab.from_json((nodes.SHARE / "lab.json").read_text())


def up() -> dict[str, Any]:
    """Build the lab: links, then all nodes side by side. Returns seconds and what the nodes complained of."""
    started = time.monotonic()
    lab = _lab()
    nodes.make_links(lab)
    linked = time.monotonic()
    children = {node.name: _start(lab, node) for node in lab.nodes}
    nodes.remember({name: pid for name, (pid, _) in children.items()})
    complaints, dead = [], []
    for name, (_, pipe) in children.items():
        with os.fdopen(pipe) as stream:
            text = stream.read()
        answer = json.loads(text) if text else {"trouble": "ended without a word", "complaints": []}
        complaints += [f"{name}: {line}" for line in answer["complaints"]]
        dead += [f"{name}: {answer['trouble']}"] if answer["trouble"] else []
    if dead:
        raise CallError("\n".join(dead))
    complaints += [line for node in lab.nodes for line in bringup.own_rdma(node)]
    ended = time.monotonic()
    return {
        "links_s": round(linked - started, 2),
        "nodes_s": round(ended - linked, 2),
        "complaints": complaints,
    }


def _start(lab: model.Lab, node: model.Node) -> tuple[int, int]:
    """Fork the process of a node: it brings the node up, reports on a pipe, and stays to hold the namespaces.

    LLDP comes after the report: nobody waits for it, and `cabled` says whether it works.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_end)
        return pid, read_end
    answer: dict[str, Any] = {"trouble": "", "complaints": []}
    try:
        os.setsid()
        os.close(read_end)
        nodes.enter_new(node)
        answer["complaints"] = bringup.bring_up(node)
    except Exception as error:  # noqa: BLE001  whatever it was, the tool must hear of it, in this node's name
        answer["trouble"] = str(error) if isinstance(error, bringup.NodeError) else f"{type(error).__name__}: {error}"
    try:
        os.write(write_end, json.dumps(answer).encode())
        os.close(write_end)
        lldp.start(lab, node)
        nodes.hold()
    finally:
        os._exit(1)
    raise AssertionError("not reached")


def wait_converged(timeout_s: float) -> dict[str, Any]:
    """Wait until FRR says that the lab is as planned; returns seconds and what is still missing."""
    seconds, missing = converge.wait(_lab(), timeout_s)
    return {"seconds": round(seconds, 2), "missing": missing}


def wait_cabled(timeout_s: float) -> dict[str, Any]:
    """Wait until LLDP sees every cable of the lab from both ends; returns seconds and what is still missing."""
    seconds, missing = lldp.wait(_lab(), timeout_s)
    return {"seconds": round(seconds, 2), "missing": missing}


def show_status() -> dict[str, Any]:
    """Return what a network engineer asks first, and what differs from the plan."""
    return status.collect(_lab())


def observe() -> dict[str, Any]:
    """Return the facts of every router: what engines must agree on."""
    return {name: facts.of(converge.observe(name)) for name in converge.routers(_lab())}


def deploy() -> dict[str, Any]:
    """Deploy the lab with containerlab (engine `containerlab`). Returns seconds and what the nodes complained of."""
    from labs.containerlab import inside

    return inside.deploy(_lab(), note)


def destroy() -> list[str]:
    """Destroy what `deploy` made; returns what is left of it."""
    from labs.containerlab import inside

    return inside.destroy(note)


_CALLS: dict[str, Callable[..., Any]] = {
    "up": up,
    "deploy": deploy,
    "destroy": destroy,
    "converge": wait_converged,
    "cabled": wait_cabled,
    "status": show_status,
    "observe": observe,
    "impair": faults.impair,
    "cut": faults.cut,
    "heal": faults.heal,
    "faults": faults.listed,
}


def run(name: str, arguments: dict[str, Any]) -> Any:
    """Run a function by name. Raises CallError for what a person can understand."""
    if name not in _CALLS:
        raise CallError(f"this lab has no function {name}")
    try:
        return _CALLS[name](**arguments)
    except OSError as error:
        raise CallError(str(error)) from error
