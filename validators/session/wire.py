"""One JSON object per line over TCP: the language of the store, the workers and the client."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Message = dict[str, Any]


class Line:
    """A connection that carries messages; every read and write ends within `timeout_s` or raises OSError."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._reader = sock.makefile("rb")

    @classmethod
    def to(cls, host: str, port: int, timeout_s: float, source: str = "") -> Line:
        """Connect; raises OSError."""
        here = (source, 0) if source else None
        sock = socket.create_connection((host, port), timeout=timeout_s, source_address=here)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(sock)

    def send(self, message: Message) -> None:
        """Write one message; raises OSError."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self) -> Message:
        """Read one message; raises OSError at the end, on silence and on anything that is not a message."""
        line = self._reader.readline(1 << 20)
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the other side ended the connection")
        try:
            message = json.loads(line)
        except ValueError as error:
            raise ConnectionError(f"not a message: {error}") from error
        if not isinstance(message, dict):
            raise ConnectionError("not a message")
        return message

    def messages(self) -> Iterator[Message]:
        """Read messages until the other side ends."""
        while True:
            try:
                yield self.receive()
            except OSError:
                return

    def local(self) -> str:
        """Return this end as `address:port`."""
        host, port = self._socket.getsockname()[:2]
        return f"{host}:{port}"

    def close(self) -> None:
        """Close at once, without waiting for what was not sent."""
        self._socket.close()


class Server:
    """Runs `handle` in a thread for each connection; several servers may share one port (SO_REUSEPORT)."""

    def __init__(self, host: str, port: int, handle: Callable[[Line], None]) -> None:
        """Listen from now on; port 0 takes a free one, see `port`."""

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with contextlib.suppress(OSError):
                    handle(Line(self.request))

        self._server = _Listener((host, port), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Serve until the process ends."""
        self._thread.join()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Listener(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
