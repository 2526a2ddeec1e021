"""The KV store: answers by session id what has been made so far, and lets each piece of work be done once.

Work is named by an idempotency token. A worker must hold the token's lease to add the next piece; the lease runs out
when its worker dies, and the next worker goes on where the last one stopped. A second piece with the same number is
refused and counted: that counter is how the validator knows that nothing was done twice.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from validators.session.wire import Line, Server

if TYPE_CHECKING:
    from collections.abc import Callable

LEASE_S = 0.6


@dataclass
class Work:
    """One token's work: its pieces so far, who may add to it, and how often a piece came twice."""

    pieces: list[str] = field(default_factory=list)
    makers: list[str] = field(default_factory=list)
    owner: str = ""
    until: float = 0.0
    refused: int = 0


class Store:
    """All work by (session, token)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, lease_s: float = LEASE_S) -> None:
        self._clock, self._lease = clock, lease_s
        self._lock = threading.Lock()
        self._work: dict[tuple[str, str], Work] = {}

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answer one request; an unknown one gets an error, never silence."""
        try:
            call = {"get": self._get, "claim": self._claim, "add": self._add, "facts": self._facts}[message["op"]]
            with self._lock:
                work = self._work.setdefault((str(message["session"]), str(message["token"])), Work())
                return call(work, message)
        except (KeyError, TypeError, ValueError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _get(self, work: Work, message: dict[str, Any]) -> dict[str, Any]:
        return {"pieces": work.pieces[int(message["from"]) :]}

    def _claim(self, work: Work, message: dict[str, Any]) -> dict[str, Any]:
        """Grant the lease to whoever asks first, renew it for its owner, refuse it to others until it runs out."""
        now, worker = self._clock(), str(message["worker"])
        if work.owner not in ("", worker) and now < work.until:
            return {"granted": False}
        work.owner, work.until = worker, now + float(message.get("lease_s", self._lease))
        return {"granted": True, "next": len(work.pieces)}

    def _add(self, work: Work, message: dict[str, Any]) -> dict[str, Any]:
        if message["worker"] != work.owner or int(message["number"]) != len(work.pieces):
            work.refused += 1
            return {"added": False}
        work.pieces.append(str(message["text"]))
        work.makers.append(str(message["worker"]))
        work.until = max(work.until, self._clock() + self._lease)
        return {"added": True}

    def _facts(self, work: Work, message: dict[str, Any]) -> dict[str, Any]:
        del message
        return {"pieces": len(work.pieces), "makers": work.makers, "refused": work.refused}

    def serve(self, line: Line) -> None:
        """Answer all requests of one connection."""
        for message in line.messages():
            line.send(self.answer(message))


def main(arguments: list[str]) -> None:
    """Serve a store: HOST PORT."""
    server = Server(arguments[0], int(arguments[1]), Store().serve)
    print(server.port, flush=True)  # noqa: T201 - the parent reads the port
    server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
