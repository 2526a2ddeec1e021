"""Break things on purpose and put them back: bad links, dead links, dead nodes; each with its own way home.

A fault with an end time is reverted by a process inside the machine, so it goes away even when the tool that asked for
it is long dead.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labs import model, targets
from labs.native import bringup, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_FAULTS = nodes.STATE / "faults.json"
HOWS = ("silent", "down", "daemons", "power")


class RefusedError(Exception):
    """What was asked for makes no sense here, and why: nothing was done."""


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


def _target(lab: model.Lab, text: str) -> targets.Target:
    try:
        return targets.find(lab, text)
    except targets.UnknownTargetError as error:
        raise RefusedError(str(error)) from error


def _keep(target: str, fault: dict[str, Any], seconds: float) -> dict[str, Any]:
    since = time.time()
    fault = {"target": target, "since": since, "for_s": seconds, **fault}
    with _register() as found:
        if target in found:
            raise RefusedError(f"{target} has a fault already ({found[target]['text']}): `kvfabric lab heal` it first")
        found[target] = fault
    return fault


def impair(
    target: str, loss: float = 0, delay_ms: float = 0, rate_mbit: float = 0, seconds: float = 0
) -> dict[str, Any]:
    """Lose, delay or slow down what both ends of a link send (per cent, milliseconds one way, Mb/s).

    Of a node, what it sends on any of its ports.
    """
    wanted = _target(_lab(), target)
    words = []
    words += [f"loss {loss:g}%"] if loss else []
    words += [f"delay {delay_ms:g}ms"] if delay_ms else []
    words += [f"rate {rate_mbit:g}mbit"] if rate_mbit else []
    if not words:
        raise RefusedError("say at least one of loss, delay, rate")
    for end in wanted.ends:
        if other := _impaired(end):
            raise RefusedError(
                f"{end.node} {end.interface} is impaired already, by {other}: `kvfabric lab heal` it first"
            )
    fault = _keep(wanted.name, {"kind": "impair", "text": ", ".join(words)}, seconds)
    for end in wanted.ends:
        # netem's queue must hold what the delay keeps in flight, or it would lose packets nobody asked it to lose
        command = ["tc", "qdisc", "replace", "dev", end.interface, "root", "netem", *" ".join(words).split()]
        done = nodes.run_in(end.node, [*command, "limit", "20000"])
        if done.returncode:
            heal(wanted.name)
            raise OSError(f"tc refused on {end.node} {end.interface}: {done.stderr.strip()}")
    _revert_later(fault)
    return fault


def _impaired(end: model.End) -> str:
    """The fault that has netem on this port already: a second one would replace it, and its end would end both."""
    lab = _lab()
    for fault in listed():
        if fault["kind"] == "impair" and end in targets.find(lab, fault["target"]).ends:
            return str(fault["target"])
    return ""


def cut(target: str, how: str = "silent", seconds: float = 0) -> dict[str, Any]:
    """Break a link or a node.

    `silent`: every packet is lost while the ports stay up, so only BFD or a timer can notice. `down`: the ports lose
    their light. For nodes also `daemons` (FRR is killed, the kernel goes on forwarding) and `power` (both).
    """
    lab = _lab()
    if how not in HOWS:
        raise RefusedError(f"no way to break things called {how}; there are {', '.join(HOWS)}")
    wanted = _target(lab, target)
    if how in {"daemons", "power"} and not wanted.is_node:
        raise RefusedError(f"{target} is a link: only a node can be broken by {how}")
    fault = _keep(wanted.name, {"kind": "break", "how": how, "text": how}, seconds)
    if how == "silent":
        _drop(wanted)
    if how in {"daemons", "power"}:
        _kill_daemons(wanted.name)
    if how in {"down", "power"}:
        _take_down(wanted)
    _revert_later(fault)
    return {**fault, "at": time.time()}


def _to_take_down(target: targets.Target) -> tuple[model.End, ...]:
    """Taking one end of a pair down takes the light from the other; keep routes and addresses of the near one."""
    return target.ends if target.is_node else target.ends[1:]


def _take_down(target: targets.Target) -> None:
    for end in _to_take_down(target):
        nodes.batch([f"link set {end.interface} down"], ("-n", end.node))


def _table(target: targets.Target) -> str:
    """A name of its own for each fault, so that those of a node and of its link do not undo each other."""
    return f"kvlab_{zlib.crc32(target.name.encode()):08x}"


def _drop(target: targets.Target) -> None:
    for name in {end.node for end in target.ends}:
        ports = ", ".join(f'"{end.interface}"' for end in target.ends if end.node == name)
        chains = "\n".join(
            f" chain {hook} {{\n  type filter hook {hook} devices = {{ {ports} }} priority -500; policy drop;\n }}"
            for hook in ("ingress", "egress")
        )
        done = nodes.run_in(name, ["nft", "-f", "-"], f"table netdev {_table(target)} {{\n{chains}\n}}\n")
        if done.returncode:
            heal(target.name)
            raise OSError(f"nft refused to cut {name}: {done.stderr.strip()[:300]}")


def _kill_daemons(name: str) -> None:
    # by a shell in the node: the numbers in these files are the node's own
    nodes.run_in(name, ["sh", "-c", "cat /run/frr/*.pid 2>/dev/null | xargs -r kill -9"])


def _revert_later(fault: dict[str, Any]) -> None:
    if fault["for_s"] <= 0 or os.fork():
        return
    try:
        os.setsid()
        nodes.hold_no_output()
        time.sleep(fault["for_s"])
        heal(fault["target"], fault["since"])
    finally:
        os._exit(0)


def heal(target: str = "", since: float = 0) -> list[str]:
    """Undo one fault, or all of them; returns the targets that were healed.

    With `since` only the fault that was made then: what reverts a fault on time must not take a later one for it.
    """
    lab = _lab()
    name = _target(lab, target).name if target else ""
    with _register() as found:
        chosen = [key for key in list(found) if name in {"", key} and since in {0, found[key]["since"]}]
        undone = [found.pop(key) for key in chosen]
        left = list(found.values())
    if name and not chosen and not since:
        there = ", ".join(fault["target"] for fault in left)
        raise RefusedError(f"{target} has no fault; " + (f"faults: {there}" if there else "nothing in this lab has"))
    for fault in undone:
        _undo(fault["kind"], fault.get("how", ""), targets.find(lab, fault["target"]))
    for fault in left:
        if fault.get("how") in {"down", "power"}:
            _take_down(targets.find(lab, fault["target"]))  # a port may be down for two reasons
    return chosen


def _undo(kind: str, how: str, target: targets.Target) -> None:
    if kind == "impair":
        for end in target.ends:
            nodes.run_in(end.node, ["tc", "qdisc", "del", "dev", end.interface, "root"])
    if how == "silent":
        for name in {end.node for end in target.ends}:
            nodes.run_in(name, ["nft", "delete", "table", "netdev", _table(target)])
    if how in {"down", "power"}:
        for name in {end.node for end in _to_take_down(target)}:
            _light_again(name, [end.interface for end in _to_take_down(target) if end.node == name])
    if how in {"daemons", "power"}:
        _restart_routing(target.name)


def _light_again(name: str, interfaces: list[str]) -> None:
    """Ports up, then the node's own network.sh once more: a port that goes down loses the routes out of it."""
    nodes.batch([f"link set {interface} up" for interface in interfaces], ("-n", name))
    nodes.run_in(name, ["sh", "-c", f"test ! -f {nodes.OWN_FILES}/network.sh || sh -e {nodes.OWN_FILES}/network.sh"])


def _restart_routing(name: str) -> None:
    """Start a node's daemons again, in a child that lives in the node."""
    os.waitpid(nodes.call_in(name, bringup.start_routing), 0)
