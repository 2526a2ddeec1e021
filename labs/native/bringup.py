"""Bring one node to life from its rendered files, called inside it: the work is `labs/node.sh`, as in every engine.

It runs what was rendered and decides nothing: a missing file means that the node does not have that part.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labs.model import Node

# read now: once inside a node, this file may be out of sight
_SCRIPT = (Path(__file__).resolve().parent.parent / "node.sh").read_text()
_LONGEST_S = 900


class NodeError(Exception):
    """A step that makes the node useless, in words."""


def bring_up(node: Node) -> list[str]:
    """Bring this node up, called inside it; return complaints that did not stop it. Raises NodeError."""
    return _run("up", KV_RDMA=" ".join(node.rdma))


def start_routing() -> list[str]:
    """Start the FRR daemons of the node and load its frr.conf; returns what they complained of. Raises NodeError."""
    return _run("routing")


def start_lldp(interfaces: list[str]) -> None:
    """Start lldpd on these interfaces of the node. Raises NodeError."""
    _run("lldp", KV_PORTS=" ".join(interfaces))


def rdma_name(node: str, interface: str) -> str:
    """Return the name of a Soft-RoCE device: one kernel holds them all, so it carries the server's name too."""
    return f"{node}.{interface}"


def own_rdma(node: Node) -> list[str]:
    """In RDMA mode `exclusive`, move a server's devices into it; called outside of all nodes. Returns what failed.

    A new Soft-RoCE device belongs to the first namespace then, whichever its port is in.
    """
    if not node.rdma or "exclusive" not in _asked(["rdma", "system", "show"]).stdout:
        return []
    names = [rdma_name(node.name, interface) for interface in node.rdma]
    moved = [(name, _asked(["rdma", "dev", "set", name, "netns", node.name])) for name in names]
    return [f"{name} stays outside of {node.name}: {done.stderr.strip()}" for name, done in moved if done.returncode]


def _asked(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, stdin=subprocess.DEVNULL, text=True, capture_output=True, check=False)


def _run(step: str, **settings: str) -> list[str]:
    try:
        done = subprocess.run(
            ["sh", "-c", _SCRIPT, "node.sh", step], stdin=subprocess.DEVNULL, text=True, capture_output=True,
            check=False, timeout=_LONGEST_S, env={**os.environ, **settings},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise NodeError(f"node.sh {step}: not done within {_LONGEST_S} s; is this machine very busy?") from None
    if done.returncode:
        raise NodeError(done.stderr.strip() or f"node.sh {step}: exit {done.returncode}")
    return [line[2:] for line in done.stdout.splitlines() if line.startswith("! ")]
