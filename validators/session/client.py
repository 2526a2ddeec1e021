"""A client that keeps its session: cut or silent connections are made again and the answer goes on where it stopped."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from validators.session.wire import Line
from validators.session.worker import piece

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class SessionSeen:
    """What a client met in one request. `outages_ms`: from the last good piece to the first one after each break;
    `outages_from_ms`: when each began, since the request.

    `wrong` counts pieces that are not the ones asked for, `repeated` numbers that came twice, `breaks` says how each
    connection ended.
    """

    session: str
    token: str
    wanted: int
    received: int = 0
    wrong: int = 0
    repeated: int = 0
    connections: int = 0
    resumed_at: list[int] = field(default_factory=list)
    breaks: list[str] = field(default_factory=list)
    outages_ms: list[float] = field(default_factory=list)
    outages_from_ms: list[float] = field(default_factory=list)
    workers: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    finished: bool = False
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return asdict(self)


@dataclass(frozen=True)
class Request:
    """One request to the VIP: `generate` with `pieces` every `each_s`, or a `tool` that is silent for `each_s`.

    `silence_s` is how long the client waits for the next piece before it takes the connection for dead; `patience_s`
    bounds the whole request.
    """

    host: str
    port: int
    session: str
    token: str
    op: str = "generate"
    pieces: int = 20
    each_s: float = 0.05
    silence_s: float = 1.0
    patience_s: float = 20.0
    source: str = ""

    def message(self, number: int) -> dict[str, Any]:
        """Return the request as sent, going on from piece `number`."""
        common = {"op": self.op, "session": self.session, "token": self.token, "from": number}
        if self.op == "tool":
            return {**common, "seconds": self.each_s}
        return {**common, "pieces": self.pieces, "interval_s": self.each_s}


def run(request: Request, begun_to_answer: Callable[[], None] = lambda: None) -> SessionSeen:
    """Run one request to its end, resuming as often as needed within its patience.

    `begun_to_answer` is called once, when the first worker has taken the request.
    """
    total = 1 if request.op == "tool" else request.pieces
    seen = SessionSeen(request.session, request.token, total)
    begun = time.monotonic()
    reading = _Reading(begun, begun, begun_to_answer)
    while not seen.finished and time.monotonic() - begun < request.patience_s:
        if seen.connections:
            seen.resumed_at.append(seen.received)
        seen.connections += 1
        try:
            _one_connection(request, seen, reading)
        except OSError as error:
            seen.breaks.append(type(error).__name__)
            reading.broken = True
            time.sleep(0.05)
    seen.seconds = round(time.monotonic() - begun, 3)
    return seen


@dataclass
class _Reading:
    """When the request began and the last good piece came, and whether the connection has broken since."""

    begun: float
    last_good: float
    begun_to_answer: Callable[[], None]
    broken: bool = False

    def good(self, seen: SessionSeen) -> None:
        now = time.monotonic()
        if self.broken:
            seen.outages_ms.append(round((now - self.last_good) * 1000, 1))
            seen.outages_from_ms.append(round((self.last_good - self.begun) * 1000, 1))
        self.last_good, self.broken = now, False


def _one_connection(request: Request, seen: SessionSeen, reading: _Reading) -> None:
    line = Line.to(request.host, request.port, request.silence_s, request.source)
    try:
        seen.ends.append(line.local())
        line.send(request.message(seen.received))
        while not seen.finished:
            message = line.receive()
            if "worker" in message:
                seen.workers.append(message["worker"])
                if len(seen.workers) == 1:
                    reading.begun_to_answer()
            elif "done" in message:
                seen.finished = seen.received == seen.wanted
            elif "number" in message:
                reading.good(seen)
                _take(seen, message)
            else:
                raise ConnectionError(str(message.get("error", "an answer without meaning")))
    finally:
        line.close()


def _take(seen: SessionSeen, message: dict[str, Any]) -> None:
    number = int(message["number"])
    if number < seen.received:
        seen.repeated += 1
        return
    if number != seen.received or message["text"] != piece(seen.session, seen.token, number):
        seen.wrong += 1
    seen.received = number + 1


def main(arguments: list[str]) -> None:
    """Run one request, given as JSON: print a line when it is being answered, and at its end what was seen as JSON."""
    seen = run(Request(**json.loads(arguments[0])), lambda: print("begun", flush=True))  # noqa: T201
    print(json.dumps(seen.to_dict()), flush=True)  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    main(sys.argv[1:])
