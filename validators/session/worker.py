"""A worker behind the VIP: streams the pieces of an answer or runs a tool call; its work outlives it in the store.

Any worker can serve any session: what has been made is read from the store, what is missing is made under the lease.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import time
from typing import Any

from validators.session.wire import Line, Server


def piece(session: str, token: str, number: int) -> str:
    """Return the text of a piece: a function of what was asked, so that a client can check every one."""
    return hashlib.sha256(f"{session}/{token}/{number}".encode()).hexdigest()[:12]


class Worker:
    """One worker process; `name` tells workers apart in the store."""

    def __init__(self, store: tuple[str, int], name: str = "") -> None:
        self._store, self.name = store, name or f"worker-{os.getpid()}"
        self._requests = itertools.count(1)

    def serve(self, client: Line) -> None:
        """Serve the requests of one client connection, one after another."""
        for request in client.messages():
            store = Line.to(*self._store, timeout_s=5)
            try:
                if request.get("op") == "generate":
                    self._stream(client, store, request, float(request["interval_s"]))
                elif request.get("op") == "tool":
                    self._stream(client, store, {**request, "pieces": 1}, float(request["seconds"]))
                else:
                    client.send({"error": f"no such request: {request.get('op')!r}"})
            except (KeyError, TypeError, ValueError) as error:
                client.send({"error": f"{type(error).__name__}: {error}"})
            finally:
                store.close()

    def _stream(self, client: Line, store: Line, request: dict[str, Any], each_s: float) -> None:
        """Send pieces from `from` on; make those that nobody has made, follow those that another worker makes."""
        key = {"session": request["session"], "token": request["token"]}
        number, total = int(request.get("from", 0)), int(request["pieces"])
        client.send({"worker": self.name})
        # a lease belongs to one request: the old one of a client that came back may still be running here
        owner = f"{self.name}#{next(self._requests)}"
        while number < total:
            ready = self._ask(store, {"op": "get", **key, "from": number})["pieces"]
            for text in ready:
                client.send({"number": number, "text": text})
                number += 1
            if ready:
                continue
            lease = {"op": "claim", **key, "worker": owner, "lease_s": each_s + 0.6}
            grant = self._ask(store, lease)
            if grant["granted"] and grant["next"] == number:
                time.sleep(each_s)
                self._ask(
                    store,
                    {"op": "add", **key, "worker": owner, "number": number, "text": piece(**key, number=number)},
                )
            elif not grant["granted"]:
                time.sleep(0.02)
        client.send({"done": total})

    @staticmethod
    def _ask(store: Line, message: dict[str, Any]) -> dict[str, Any]:
        store.send(message)
        return store.receive()


def main(arguments: list[str]) -> None:
    """Serve a worker: HOST PORT STORE-HOST STORE-PORT."""
    host, port, store_host, store_port = arguments
    server = Server(host, int(port), Worker((store_host, int(store_port))).serve)
    print(server.port, flush=True)  # noqa: T201 - the parent reads the port
    server.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
