"""The agent: runs where the packets are, takes one JSON command per line on stdin, answers one JSON line on stdout.

The same code runs by `ip netns exec`, in a lab node and over SSH. A command is `{"id": 1, "do": "open", "args": {}}`,
an answer `{"id": 1, "ok": true, "result": ...}` or `{"id": 1, "ok": false, "error": "..."}`. The agent ends when its
stdin does, so that a lost controller leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from validators.connections import gateway_table
from validators.connections.arrays import packed, unpacked
from validators.connections.ladder_roles import Role
from validators.connections.packets import Listener, send_all
from validators.connections.port import Port, PortError, PortSpec
from validators.connections.step import StepSpec, run_step

if TYPE_CHECKING:
    from collections.abc import Callable


class Agent:
    """Open ports, running roles and watches, by name."""

    def __init__(self) -> None:
        self.ports: dict[str, Port] = {}
        self.roles: dict[str, Any] = {}
        self.listeners: dict[str, Listener] = {}
        self.watch: gateway_table.Watch | None = None
        self.rest_s = 0.0005

    def hello(self) -> dict[str, Any]:
        """Say what runs here."""
        return {
            "host": platform.node(),
            "kernel": platform.release(),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pid": os.getpid(),
            "clock_ns": time.time_ns(),
        }

    def rest(self, seconds: float) -> dict[str, Any]:
        """Let roles that start from now on sleep this long between two polls: many share one CPU in a lab."""
        self.rest_s = seconds
        return {}

    def open(self, name: str, **spec: Any) -> dict[str, Any]:
        """Open a port; see `PortSpec`."""
        if name in self.ports:
            self.ports.pop(name).close()
        port = self.ports[name] = Port(PortSpec(**spec))
        return {"mac": port.smac.hex(":"), "next_hop_mac": port.dmac.hex(":")}

    def close(self, name: str) -> dict[str, Any]:
        """Close a port and whoever listens on it."""
        if name in self.listeners:
            self.listeners.pop(name).close()
        port = self.ports.pop(name)
        drops = port.drops()
        port.close()
        return drops

    def step(self, inside: str, outside: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Run both sides of a ladder step between two ports of this agent."""
        return run_step(self.ports[inside], self.ports[outside], StepSpec.from_dict(spec)).to_dict()

    def role(self, name: str, port: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Start one side of a step, an idle pass or long flows; it answers by itself until `role_report`."""
        if name in self.roles:
            self.roles.pop(name).stop()
        self.roles[name] = Role.make(kind, self.ports[port], spec, self.rest_s)
        return {}

    def role_do(self, name: str, what: str, args: dict[str, Any] | None = None) -> Any:
        """Have a role do one of its own commands (`create`, `validate`, ...)."""
        return self.roles[name].do(what, args or {})

    def role_report(self, name: str) -> Any:
        """Stop a role and return what it saw."""
        return self.roles.pop(name).stop()

    def send(self, port: str, packets: list[dict[str, Any]], spacing_s: float = 0.0) -> dict[str, Any]:
        """Send single packets described field by field; see `packets.frame`."""
        return send_all(self.ports[port], packets, spacing_s)

    def listen(self, port: str) -> dict[str, Any]:
        """Start to keep every packet that arrives on a port."""
        if port in self.listeners:
            self.listeners.pop(port).close()
        self.listeners[port] = Listener(self.ports[port])
        return {}

    def heard(self, port: str, wait_s: float = 0.3, token: int | None = None) -> list[dict[str, Any]]:
        """Return the packets kept since the last call, waiting `wait_s` for stragglers, or until one has the token."""
        return self.listeners[port].take(wait_s, token)

    def snapshot(self) -> dict[str, Any]:
        """Return the gateway's table and counters now."""
        return gateway_table.snapshot()

    def watch_start(self, interval_s: float = 0.1) -> dict[str, Any]:
        """Begin to watch the gateway's table."""
        self.watch = gateway_table.Watch(interval_s)
        return {}

    def watch_stop(self) -> dict[str, Any]:
        """Return what happened on the gateway since `watch_start`."""
        if self.watch is None:
            msg = "no watch was started"
            raise ValueError(msg)
        result, self.watch = self.watch.stop(), None
        return result

    def entries(self, prefix: str, far: list[str]) -> dict[str, Any]:
        """Return the gateway's table entries that a prefix has with some far ends."""
        return gateway_table.entries(prefix, far)

    def forget(self, prefix: str) -> dict[str, Any]:
        """Delete the tester's own entries from the gateway's table."""
        return gateway_table.forget(prefix)


_COMMANDS = frozenset(name for name in vars(Agent) if not name.startswith("_"))


def answer(agent: Agent, line: str) -> dict[str, Any]:
    """Run one command line; every error becomes an answer, so the controller always knows."""
    number: Any = None
    try:
        command = json.loads(line)
        number, name = command.get("id"), command.get("do")
        if name not in _COMMANDS:
            return {"id": number, "ok": False, "error": f"no command {name!r}"}
        call: Callable[..., Any] = getattr(agent, name)
        return {"id": number, "ok": True, "result": packed(call(**unpacked(command.get("args", {}))))}
    except (PortError, OSError, ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
        return {"id": number, "ok": False, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Serve stdin until it ends."""
    agent = Agent()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever prints by accident must not break the protocol
    for line in sys.stdin:
        if line.strip():
            out.write(json.dumps(answer(agent, line)) + "\n")
            out.flush()
    for name in list(agent.ports):
        agent.close(name)


if __name__ == "__main__":
    main()
