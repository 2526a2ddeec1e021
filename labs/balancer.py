"""What a load balancer says of its services: haproxy's own health checks, read from its control socket.

A check that is refused has gone all the way and back: nobody listens on the server. A check without an answer has not.
"""

from __future__ import annotations

import csv
import io
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from labs.client import Running

# in the node's own file system
SOCKET = "/run/haproxy/admin.sock"
_TIMEOUT_S = 2
# a refused check takes a millisecond or two, so half a second is no answer
_ASKS, _PAUSE_S = 10, 0.05
_QUESTION = b"show stat\n"


@dataclass(frozen=True, slots=True)
class Backend:
    """A server of a service: whether it gets connections, and what the last check said (`L4OK`, `L4TOUT` ...).

    `unsaid`: a new check is on its way, and haproxy has already forgotten why the last one could not connect.
    """

    name: str
    up: bool
    check: str
    text: str
    sessions: int
    unsaid: bool = False

    @property
    def reached(self) -> bool:
        """Whether a check came back, be it only to say that nobody listens."""
        return self.check == "L4OK" or (self.check == "L4CON" and "refused" in self.text.lower())


@dataclass(frozen=True, slots=True)
class Listener:
    """A service of the load balancer; `sessions` counts clients since the start."""

    name: str
    open: bool
    sessions: int
    backends: tuple[Backend, ...]

    @property
    def up(self) -> bool:
        """Whether a client that comes now is served."""
        return self.open and any(backend.up for backend in self.backends)


def parse(text: str) -> dict[str, Listener]:
    """Read haproxy's `show stat`: listeners by name.

    Source: https://docs.haproxy.org/3.0/management.html#9.1 (CSV format).
    """
    found: dict[str, Listener] = {}
    backends: dict[str, list[Backend]] = {}
    for row in csv.DictReader(io.StringIO(text.lstrip("# "))):
        service, name, status = row["pxname"], row["svname"], row["status"]
        if name == "FRONTEND":
            found[service] = Listener(service, status == "OPEN", int(row["stot"] or 0), ())
        elif name != "BACKEND":
            # `* L4TOUT`: a check is on its way, this was the last one's word
            check = (row["check_status"] or "").removeprefix("* ")
            said = " ".join(filter(None, (row.get("check_desc"), row.get("last_chk"))))
            unsaid = check == "L4CON" and not row.get("last_chk")
            up = status.startswith("UP")
            backends.setdefault(service, []).append(Backend(name, up, check, said, int(row["stot"] or 0), unsaid))
    return {
        name: Listener(name, listener.open, listener.sessions, tuple(backends.get(name, ())))
        for name, listener in found.items()
    }


def read(root: Path) -> dict[str, Listener] | None:
    """Ask the haproxy of a node whose file system is seen at `root`; None when it does not answer.

    Asks again, for half a second, while a check is on its way whose forerunner's reason is forgotten: that nobody
    listens would else look like a way that is cut.
    """
    for _ in range(_ASKS):
        if (text := _ask(root)) is None:
            return None
        found = parse(text)
        if not any(backend.unsaid for listener in found.values() for backend in listener.backends):
            break
        time.sleep(_PAUSE_S)
    return found


def _ask(root: Path) -> str | None:
    with socket.socket(socket.AF_UNIX) as channel:
        channel.settimeout(_TIMEOUT_S)
        try:
            channel.connect(str(root / SOCKET.removeprefix("/")))
            channel.sendall(_QUESTION)
            parts = []
            while part := channel.recv(65536):
                parts.append(part)
        except OSError:
            return None
    return b"".join(parts).decode()


def ask(running: Running, node: str) -> dict[str, Listener]:
    """Ask the haproxy of a node from outside the lab. Raises CouldNotRunError when it does not answer."""
    said = running.run(node, ["socat", "-", f"UNIX-CONNECT:{SOCKET}"], stdin=_QUESTION).check().out
    return parse(said)
