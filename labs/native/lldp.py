"""LLDP in the lab: one lldpd a node under the plan's names, and whether it sees the cables that the lab has.

Sources: lldpd(8), lldpcli(8); its `json0` output has one shape whatever the number of neighbours.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

from labs.native import bringup, nodes

if TYPE_CHECKING:
    from labs.model import Lab, Node

_PAUSE_S = 0.3
# a daemon that is stopped (a paused container) leaves lldpcli waiting
_ANSWER_S = 10


def start(lab: Lab, node: Node) -> None:
    """Start lldpd on the node's cables, called inside it. Nothing is raised: `wait` tells what it does not see."""
    interfaces = [end.interface for link in lab.links_of(node.name) for end in link.ends() if end.node == node.name]
    with contextlib.suppress(OSError, subprocess.SubprocessError, bringup.NodeError):
        bringup.start_lldp(interfaces)


def parse(text: str) -> dict[str, tuple[str, str]]:
    """Return local interface -> (device, port) of the neighbours in lldpcli's json0; empty when it says nothing."""
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    found = {}
    for group in data.get("lldp", []):
        for interface in group.get("interface", []):
            chassis, port = interface["chassis"][0], interface["port"][0]
            found[interface["name"]] = (_first(chassis.get("name")), _first(port.get("id")))
    return found


def _first(values: Any) -> str:
    return str(values[0].get("value", "")) if values else ""


def neighbours(node: str) -> dict[str, tuple[str, str]]:
    """Ask the lldpd of a node whom it sees."""
    return parse(nodes.run_in(node, ["lldpcli", "-f", "json0", "show", "neighbors"], timeout=_ANSWER_S).stdout)


def missing(lab: Lab, seen: dict[str, dict[str, tuple[str, str]]]) -> list[str]:
    """Return, in words, the cables of the lab that one of their ends (among the nodes asked) does not see."""
    found = []
    for link in lab.links:
        for here, far in ((link.a, link.b), (link.b, link.a)):
            if here.node not in seen:
                continue
            device, port = seen[here.node].get(here.interface, ("", ""))
            if (device, port) != (far.node, far.interface):
                sees = f"sees {device} {port}" if device else "sees nobody"
                found.append(f"{here.node}: LLDP on {here.interface} {sees}, not {far.node} {far.interface}")
    return found


def observe(lab: Lab, names: list[str] | None = None) -> dict[str, dict[str, tuple[str, str]]]:
    """Ask all nodes that have a cable (or those named)."""
    cabled = {end.node for link in lab.links for end in link.ends()}
    return {name: neighbours(name) for name in (names or [node.name for node in lab.nodes]) if name in cabled}


def wait(lab: Lab, timeout_s: float) -> tuple[float, list[str]]:
    """Ask until every cable is seen from both ends; returns seconds and what was missing at the end."""
    started = time.monotonic()
    seen = observe(lab)
    while (lacks := missing(lab, seen)) and time.monotonic() - started < timeout_s:
        time.sleep(_PAUSE_S)
        seen |= observe(lab, sorted({text.partition(":")[0] for text in lacks}))
    return time.monotonic() - started, lacks
