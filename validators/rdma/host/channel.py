"""The control channel between the two ends of a probe: JSON lines over TCP, every wait with a deadline."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

_LOOK_S = 0.3
"""Time between two looks for the file that says that the other end will not come."""


class ChannelError(Exception):
    """The other end did not come, went away, or said that it failed."""


class Channel:
    """One connected channel. `patience_s` is how long an answer may take, where the caller does not say it."""

    def __init__(self, stream: socket.socket, patience_s: float = 30.0) -> None:
        self.stream, self.patience_s = stream, patience_s
        self.reader = stream.makefile("rb")
        self.sent = 0

    def send(self, message: dict[str, Any]) -> None:
        """Send one message. Raises ChannelError."""
        data = json.dumps(message).encode() + b"\n"
        self.sent += len(data)
        try:
            self.stream.sendall(data)
        except OSError as error:
            raise ChannelError(f"control channel broke: {error}") from error

    def receive(self, timeout_s: float) -> dict[str, Any]:
        """Return the next message. Raises ChannelError at the deadline or when the peer is gone."""
        self.stream.settimeout(timeout_s)
        try:
            line = self.reader.readline()
        except TimeoutError as error:
            raise ChannelError(f"no message from the peer within {timeout_s:g} s") from error
        except OSError as error:
            raise ChannelError(f"control channel broke: {error}") from error
        if not line:
            raise ChannelError("the peer closed the control channel")
        message: dict[str, Any] = json.loads(line)
        return message

    def ask(self, op: str, timeout_s: float = 0.0, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raises ChannelError with the peer's own words when it failed."""
        self.send({"op": op, **arguments})
        answer = self.receive(max(timeout_s, self.patience_s))
        if "error" in answer:
            raise ChannelError(f"peer, at {op}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Close both directions."""
        self.reader.close()
        self.stream.close()


def accept(address: str, port: int, timeout_s: float, over: str = "") -> Channel:
    """Wait for one peer, until the deadline or until the file `over` says that none will come. Raises ChannelError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    end = time.monotonic() + timeout_s
    try:
        with socket.create_server((address, port), family=family) as listener:
            while True:
                listener.settimeout(max(0.001, min(_LOOK_S, end - time.monotonic())))
                try:
                    return Channel(listener.accept()[0])
                except TimeoutError as error:
                    _raise_if_over(over)
                    if time.monotonic() >= end:
                        raise ChannelError(f"nobody connected to {address}:{port} within {timeout_s:g} s") from error
    except OSError as error:
        raise ChannelError(f"cannot listen on {address}:{port}: {error}") from error


def dial(address: str, port: int, timeout_s: float, over: str = "") -> Channel:
    """Connect, trying until the deadline or the file `over`, as the other end may start later. Raises ChannelError."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            stream = socket.create_connection((address, port), timeout=max(0.1, min(2.0, end - time.monotonic())))
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Channel(stream, max(30.0, timeout_s))
        except OSError as error:
            _raise_if_over(over)
            if time.monotonic() > end:
                raise ChannelError(f"cannot reach {address}:{port} within {timeout_s:g} s: {error}") from error
            time.sleep(0.05)


def _raise_if_over(over: str) -> None:
    if over and Path(over).exists():
        Path(over).unlink(missing_ok=True)
        raise ChannelError("the other end ended before it was connected")
