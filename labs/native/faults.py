"""Break things on purpose and put them back: bad links, dead links, dead nodes; each with its own way home.

A fault with an end time is reverted by a process inside the machine, so it goes away even when the tool that asked for
it is long dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs import model
from labs.native import bringup, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_FAULTS = nodes.STATE / "faults.json"
HOWS = ("silent", "down", "daemons", "power")
_TABLE = "kvlab_dead"


class RefusedError(Exception):
    """The fault was not made, and why."""


def _lab() -> model.Lab:
    return model.Lab.from_json((nodes.SHARE / "lab.json").read_text())


@contextmanager
def _register() -> Iterator[dict[str, dict[str, Any]]]:
    """The faults in force, by target; what the block changes is kept."""
    with _FAULTS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = json.loads(_FAULTS.read_text()) if _FAULTS.exists() else {}
        yield found
        _FAULTS.write_text(json.dumps(found))


def listed() -> list[dict[str, Any]]:
    """Return the faults in force."""
    with _register() as found:
        return list(found.values())


def ends_of(lab: model.Lab, target: str) -> list[model.End]:
    """Return the ends that a target names: a link id, a `NODE:INTERFACE`, or a node (all its ports).

    Raises RefusedError for a name that is none of them.
    """
    for link in lab.links:
        names = {link.id, *(f"{end.node}:{end.interface}" for end in link.ends())}
        if target in names:
            return list(link.ends())
    if lab.has(target):
        return [end for link in lab.links_of(target) for end in link.ends() if end.node == target]
    raise RefusedError(f"no link, port or node {target}; `kvfabric lab status` lists the links")


def _keep(target: str, fault: dict[str, Any], seconds: float) -> dict[str, Any]:
    fault = {"target": target, "since": time.time(), "for_s": seconds, **fault}
    with _register() as found:
        if target in found:
            raise RefusedError(f"{target} has a fault already ({found[target]['kind']}): heal it first")
        found[target] = fault
    return fault


def impair(
    target: str, loss: float = 0, delay_ms: float = 0, rate_mbit: float = 0, seconds: float = 0
) -> dict[str, Any]:
    """Lose, delay or slow down what both ends of a link send (per cent, milliseconds one way, Mb/s)."""
    ends = ends_of(_lab(), target)
    words = []
    words += [f"loss {loss:g}%"] if loss else []
    words += [f"delay {delay_ms:g}ms"] if delay_ms else []
    words += [f"rate {rate_mbit:g}mbit"] if rate_mbit else []
    if not words:
        raise RefusedError("say at least one of loss, delay, rate")
    fault = _keep(target, {"kind": "impair", "text": ", ".join(words)}, seconds)
    for end in ends:
        # netem's queue must hold what the delay keeps in flight, or it would lose packets nobody asked it to lose
        command = ["tc", "qdisc", "replace", "dev", end.interface, "root", "netem", *" ".join(words).split()]
        done = nodes.run_in(end.node, [*command, "limit", "20000"])
        if done.returncode:
            heal(target)
            raise RefusedError(f"tc refused on {end.node} {end.interface}: {done.stderr.strip()}")
    _revert_later(target, seconds)
    return fault


def cut(target: str, how: str = "silent", seconds: float = 0) -> dict[str, Any]:
    """Break a link or a node.

    `silent`: every packet is lost while the ports stay up, so only BFD or a timer can notice. `down`: the ports lose
    their light. For nodes also `daemons` (FRR is killed, the kernel goes on forwarding) and `power` (both).
    """
    lab = _lab()
    if how not in HOWS:
        raise RefusedError(f"no way to break things called {how}; there are {', '.join(HOWS)}")
    if how in {"daemons", "power"} and not lab.has(target):
        raise RefusedError(f"only a node can be broken by {how}")
    ends = ends_of(lab, target)
    fault = _keep(target, {"kind": "break", "how": how, "text": how}, seconds)
    if how == "silent":
        _drop(ends)
    if how in {"daemons", "power"}:
        _kill_daemons(target)
    if how in {"down", "power"}:
        for end in _to_take_down(lab, target, ends):
            nodes.batch([f"link set {end.interface} down"], ("-n", end.node))
    _revert_later(target, seconds)
    return {**fault, "at": time.time()}


def _to_take_down(lab: model.Lab, target: str, ends: list[model.End]) -> list[model.End]:
    """Taking one end of a pair down takes the light from the other; keep routes and addresses of the near one."""
    return ends if lab.has(target) else ends[1:]


def _drop(ends: list[model.End]) -> None:
    for name in {end.node for end in ends}:
        ports = ", ".join(f'"{end.interface}"' for end in ends if end.node == name)
        chains = "\n".join(
            f" chain {hook} {{\n  type filter hook {hook} devices = {{ {ports} }} priority -500; policy drop;\n }}"
            for hook in ("ingress", "egress")
        )
        done = nodes.run_in(name, ["nft", "-f", "-"], f"table netdev {_TABLE} {{\n{chains}\n}}\n")
        if done.returncode:
            raise OSError(f"nft refused to cut {name}: {done.stderr.strip()[:300]}")


def _kill_daemons(name: str) -> None:
    root = Path(f"/proc/{nodes.holders()[name]}/root/run/frr")
    for path in root.glob("*.pid"):
        with contextlib.suppress(ValueError, ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGKILL)


def _revert_later(target: str, seconds: float) -> None:
    if seconds <= 0 or os.fork():
        return
    try:
        os.setsid()
        nodes.hold_no_output()
        time.sleep(seconds)
        heal(target)
    finally:
        os._exit(0)


def heal(target: str = "") -> list[str]:
    """Undo one fault, or all of them; returns the targets that were healed."""
    with _register() as found:
        chosen = [name for name in list(found) if not target or name == target]
        undone = [found.pop(name) for name in chosen]
    lab = _lab()
    for fault in undone:
        _undo(lab, fault)
    return chosen


def _undo(lab: model.Lab, fault: dict[str, Any]) -> None:
    target, how = fault["target"], fault.get("how", "")
    ends = ends_of(lab, target)
    if fault["kind"] == "impair":
        for end in ends:
            nodes.run_in(end.node, ["tc", "qdisc", "del", "dev", end.interface, "root"])
    if how == "silent":
        for name in {end.node for end in ends}:
            nodes.run_in(name, ["nft", "delete", "table", "netdev", _TABLE])
    if how in {"down", "power"}:
        for end in _to_take_down(lab, target, ends):
            nodes.batch([f"link set {end.interface} up"], ("-n", end.node))
    if how in {"daemons", "power"}:
        _restart_routing(target)


def _restart_routing(name: str) -> None:
    """Start a node's daemons again, in a child that lives in the node."""
    move = nodes.enter(name)
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    code = 1
    try:
        move()
        bringup.start_routing()
        code = 0
    finally:
        os._exit(code)
