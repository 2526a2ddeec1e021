"""The process that owns a running lab: it starts the machine, carries messages, and cleans up whatever happens.

Whoever starts a lab holds the writing end of a pipe, the lease. Until the lab is committed to stay, the end of that
process, by any means, is the end of the lab. Usage: `python -m labs.supervisor STATE ENGINE LEASE_FD ALIVE_FD JSON`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs import engines, state, wire
from labs.machine import Options
from labs.outbox import Outbox

if TYPE_CHECKING:
    from labs.machine import Machine


# bytes of one tool that may wait here for the agent before that tool is not read from
_FOR_AGENT = 1 << 18
# bytes that may wait here for a tool: above the first its programs' output is held, below the second it goes on
_FOR_TOOL, _FOR_TOOL_AGAIN = 1 << 22, 1 << 20


class _Client:
    """A connected tool: its requests by our number, and what waits to be written to it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.splitter = wire.Splitter()
        self.pending = bytearray()
        self.requests: dict[int, int] = {}
        self.held = False


class Supervisor:
    """Carries messages between any number of tools and the one agent, giving each request a number of its own."""

    def __init__(self, folder: Path, machine: Machine, lease: int) -> None:
        self.folder = folder
        self.machine = machine
        self.selector = selectors.DefaultSelector()
        self.agent_splitter = wire.Splitter()
        self.outbox = Outbox()
        self.clients: list[_Client] = []
        self.owners: dict[int, tuple[_Client, int]] = {}
        self.counter = 0
        self.running = True
        self.ready = False
        self.reason = "stopped"
        self.leased = True
        self.died = False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "control.sock"))
        self.listener.listen(16)
        machine.channel.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ, self._on_connect)
        self.selector.register(machine.channel, selectors.EVENT_READ, self._on_agent)
        self.selector.register(lease, selectors.EVENT_READ, self._on_lease)
        self.selector.register(os.pidfd_open(machine.process.pid), selectors.EVENT_READ, self._on_death)

    def serve(self) -> None:
        """Carry messages until the lab is stopped, its lease ends, or the machine dies."""
        while self.running:
            agent = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.ready and self.outbox.may_send() else 0)
            self.selector.modify(self.machine.channel, agent, self._on_agent)
            for client in self.clients:
                self._hold_or_resume(client)
                self._listen_to(client)
            for key, mask in self.selector.select():
                if isinstance(key.data, tuple):
                    key.data[0](key.data[1], mask)
                else:
                    key.data(mask)
        self._farewell()

    def _hold_or_resume(self, client: _Client) -> None:
        """Stop the output of a tool's programs while that tool does not read what it was sent."""
        waiting = len(client.pending)
        if waiting < _FOR_TOOL_AGAIN if client.held else waiting > _FOR_TOOL:
            client.held = not client.held
            for number in client.requests.values():
                self.outbox.put(client, {"id": number, "op": "hold" if client.held else "resume"})

    def _listen_to(self, client: _Client) -> None:
        wanted = selectors.EVENT_WRITE if client.pending else 0
        if self.outbox.waiting(client) < _FOR_AGENT:
            wanted |= selectors.EVENT_READ
        known = client.sock in self.selector.get_map()
        if wanted and known:
            self.selector.modify(client.sock, wanted, (self._on_client, client))
        elif wanted:
            self.selector.register(client.sock, wanted, (self._on_client, client))
        elif known:
            self.selector.unregister(client.sock)

    def stop(self, reason: str) -> None:
        """End the loop; `reason` is what the tools are told."""
        self.running = False
        self.reason = reason

    # -- the machine

    def _on_agent(self, mask: int) -> None:
        channel = self.machine.channel
        try:
            if mask & selectors.EVENT_WRITE:
                self.outbox.send(channel.send)
            if mask & selectors.EVENT_READ:
                data = channel.recv(65536)
                if not data:
                    self._on_death(0)
                for message in self.agent_splitter.feed(data):
                    self._from_agent(message)
        except BlockingIOError:
            return
        except OSError:  # a machine that dies with something unread resets its channel
            self._on_death(0)

    def _from_agent(self, message: wire.Message) -> None:
        if message.get("op") == "ready":
            self.ready = True
            return
        if message.get("op") == "taken":
            self.outbox.taken(int(message["bytes"]))
            return
        client, ident = self.owners.get(message.get("id", 0), (None, 0))
        if client is None:
            return
        if message["op"] in {"exit", "return", "error"}:
            del self.owners[message["id"]]
            client.requests.pop(ident, None)
        client.pending += wire.encode({**message, "id": ident})

    def _on_death(self, _mask: int) -> None:
        """The machine has ended, or its agent has, which is about to be its end."""
        try:
            end = f"the machine ended (exit {self.machine.process.wait(timeout=5)})"
        except subprocess.TimeoutExpired:
            end = "the machine's agent ended"
        tail: list[str] = []
        with contextlib.suppress(OSError):
            tail = (self.folder / "console.log").read_text(errors="replace").splitlines()[-12:]
        self.stop("\n  ".join([end, *tail]))
        self.died = True

    def _on_lease(self, _mask: int) -> None:
        self.stop("the tool that started the lab has ended")

    # -- the tools

    def _on_connect(self, _mask: int) -> None:
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        client = _Client(sock)
        self.clients.append(client)

    def _on_client(self, client: _Client, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                del client.pending[: client.sock.send(client.pending[:65536])]
            if mask & selectors.EVENT_READ:
                data = client.sock.recv(65536)
                if not data:
                    self._forget(client)
                    return
                for message in client.splitter.feed(data):
                    self._from_client(client, message)
        except BlockingIOError:
            return
        except OSError:
            self._forget(client)

    def _from_client(self, client: _Client, message: wire.Message) -> None:
        ident, op = int(message.get("id", 0)), message.get("op")
        if op == "stop":
            self.stop("stopped")
        elif op == "commit":
            with contextlib.suppress(KeyError):
                self._drop_lease()
            client.pending += wire.encode({"id": ident, "op": "return", "value": None})
        elif op in {"exec", "call"}:
            self.counter += 1
            client.requests[ident] = self.counter
            self.owners[self.counter] = (client, ident)
            self.outbox.put(client, {**message, "id": self.counter})
        elif ident in client.requests:
            self.outbox.put(client, {**message, "id": client.requests[ident]})

    def _drop_lease(self) -> None:
        self.leased = False
        for key in list(self.selector.get_map().values()):
            if key.data == self._on_lease:
                self.selector.unregister(key.fileobj)

    def _forget(self, client: _Client) -> None:
        """A tool has gone: what it had running ends with it."""
        self.selector.unregister(client.sock)
        client.sock.close()
        self.clients.remove(client)
        for number in client.requests.values():
            self.outbox.put(client, {"id": number, "op": "signal", "signal": signal.SIGKILL})
            self.owners.pop(number, None)

    def _farewell(self) -> None:
        for client in self.clients:
            with contextlib.suppress(OSError):
                client.sock.setblocking(True)
                client.sock.settimeout(2)
                client.sock.sendall(bytes(client.pending) + wire.encode({"id": 0, "op": "gone", "text": self.reason}))
                client.sock.close()


def main(arguments: list[str]) -> None:
    """Own the lab of a state folder from its birth to its end."""
    folder, engine, lease, options = Path(arguments[0]), arguments[1], int(arguments[2]), json.loads(arguments[4])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    machine = supervisor = None
    try:
        try:
            machine = engines.load(engine).start(folder, Options(**options))
            state.write_facts(
                folder, engine=engine, supervisor=os.getpid(), machine=machine.process.pid, started=time.time()
            )
        except (CouldNotRunError, OSError) as error:
            sys.exit(f"{error.filename or folder}: {error.strerror}" if isinstance(error, OSError) else str(error))
        supervisor = Supervisor(folder, machine, lease)
        supervisor.serve()
    finally:
        if machine is not None:
            machine.kill()
        state.remove(folder)
        if supervisor and supervisor.died and not supervisor.leased:
            state.note_death(folder, supervisor.reason)


if __name__ == "__main__":
    main(sys.argv[1:])
