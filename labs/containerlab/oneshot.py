"""Run one program in a machine of its own, without a supervisor: for building things, not for labs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from labs.machine import Machine

_BOOT_S = 60


def run(machine: Machine, argv: Sequence[str], timeout_s: float, say: Callable[[str], None]) -> None:
    """Run a program in a started machine to its end; what it prints is said line by line.

    Raises CouldNotRunError when it fails, when the machine ends, or when nothing is heard for `timeout_s`.
    """
    machine.channel.settimeout(_BOOT_S)
    messages = _messages(machine, wire.Splitter())
    if next(messages)["op"] != "ready":
        raise CouldNotRunError("the machine spoke before it was ready")
    machine.channel.settimeout(timeout_s)
    request = {"id": 1, "op": "exec", "node": "", "argv": list(argv)}
    machine.channel.sendall(wire.encode(request) + wire.encode({"id": 1, "op": "eof"}))
    printed = b""
    for message in messages:
        if message["op"] == "out":
            printed += wire.unpack(message["data"])
            *lines, printed = printed.split(b"\n")
            for line in lines:
                say(line.decode(errors="replace"))
        elif message["op"] == "exit" and message["rc"] == 0:
            return
        elif message["op"] in {"exit", "error"}:
            why = message.get("text") or f"exit {message['rc']}"
            raise CouldNotRunError(f"`{' '.join(argv)}` failed: {why} {printed.decode(errors='replace')}".strip())


def _messages(machine: Machine, splitter: wire.Splitter) -> Iterator[wire.Message]:
    while True:
        try:
            data = machine.channel.recv(65536)
        except TimeoutError:
            raise CouldNotRunError("nothing was heard from the machine for too long") from None
        if not data:
            raise CouldNotRunError("the machine ended before its work was done")
        yield from splitter.feed(data)
