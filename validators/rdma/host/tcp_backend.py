"""The same transfers over TCP, as a control and for hosts without RDMA. Every result says `TCP, no RDMA`.

The owner of memory runs a thread per stream that answers READ and WRITE frames; keys and domains are checked in
software as verbs check them in hardware, so the access scenarios can be run, but prove nothing about a NIC. A frame is
a header and up to 256 (offset, size) pairs; the sockets carry the asked traffic class.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any

from validators.rdma.host.backend import DeviceError, OpenSpec, Piece, QpSettings, Times, TransferError
from validators.rdma.host.tracked import TrackedDevice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.rdma.host.memory import Buffer

_HEAD = struct.Struct("<BQI")  # verb (1 read, 2 write), key, pairs
_PAIR = struct.Struct("<QQ")  # offset, size
_STATUS = struct.Struct("<B")  # 0 done, 1 refused
_PER_FRAME = 256


class Backend:
    """TCP streams."""

    name = "tcp"

    def open(self, spec: OpenSpec) -> TcpDevice:
        """Listen on the address. Raises DeviceError when it is not this host's."""
        return TcpDevice(spec)


class TcpDevice(TrackedDevice):
    """A listener, its regions by key, and the streams it answers."""

    transport = "TCP, no RDMA"

    def __init__(self, spec: OpenSpec) -> None:
        super().__init__()
        self.spec = spec
        self.regions: dict[int, TcpRegion] = {}
        try:
            family = socket.AF_INET6 if ":" in spec.address else socket.AF_INET
            self.listener = socket.create_server((spec.address, 0), family=family, backlog=256)
        except OSError as error:
            raise DeviceError(f"cannot listen on {spec.address}: {error.strerror}") from error
        self.tokens: dict[bytes, TcpConnection] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def describe(self) -> dict[str, Any]:
        """Address in the place of a GID."""
        return {"device": "tcp", "netdev": "", "gid": self.spec.address, "gid_type": "none", "active_mtu": 0}

    def register(self, domain: str, buffer: Buffer, access: str) -> TcpRegion:
        """Make the buffer reachable under a fresh key."""
        region = TcpRegion(self, domain, buffer, access)
        self.regions[region.key] = region
        return region

    def connect(self, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int = 0) -> TcpConnection:
        """Make a connection of `qps` streams; `depth` and `cq_entries` change nothing here."""
        del depth, cq_entries
        return TcpConnection(self, domain, qps, settings)

    def close(self) -> None:
        """Close everything."""
        super().close()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(stream,), daemon=True).start()

    def _answer(self, stream: socket.socket) -> None:
        with stream, contextlib.suppress(ConnectionError, OSError):
            connection = self.tokens.get(bytes(_receive(stream, 16)))
            if connection is not None:
                # what a READ brings leaves from here, and must be in the class too
                _mark(stream, connection.settings.traffic_class)
            while connection is not None:
                verb, key, count = _HEAD.unpack(_receive(stream, _HEAD.size))
                body = _receive(stream, count * _PAIR.size)
                pairs = list(_PAIR.iter_unpack(body))
                self._serve(stream, verb, self.regions.get(key), connection.domain, pairs)

    @staticmethod
    def _serve(
        stream: socket.socket, verb: int, region: TcpRegion | None, domain: str, pairs: list[tuple[int, int]]
    ) -> None:
        end = max(offset + size for offset, size in pairs)
        wanted = "read" if verb == 1 else "write"
        if region is None or region.domain != domain or region.access != wanted or end > region.buffer.size:
            if verb == 2:
                _receive(stream, sum(size for _, size in pairs))
            stream.sendall(_STATUS.pack(1))
            return
        with memoryview(region.buffer.map) as memory:
            parts = [memory[offset : offset + size] for offset, size in pairs]
            if verb == 1:
                _send(stream, [memoryview(_STATUS.pack(0)), *parts])
            else:
                _receive_into(stream, parts)
                stream.sendall(_STATUS.pack(0))


class TcpRegion:
    """A buffer under a key."""

    def __init__(self, device: TcpDevice, domain: str, buffer: Buffer, access: str) -> None:
        self.device, self.domain, self.buffer, self.access = device, domain, buffer, access
        self.address = 0
        self.key = secrets.randbits(48) or 1
        device.regions_open.add(self)

    def close(self) -> None:
        """Take the key back; safe to call twice."""
        self.device.regions.pop(self.key, None)
        self.device.regions_open.discard(self)


class TcpConnection:
    """Streams to one peer, opened by the side that moves."""

    def __init__(self, device: TcpDevice, domain: str, qps: int, settings: QpSettings) -> None:
        self.device, self.domain, self.qps, self.settings = device, domain, qps, settings
        self.token = secrets.token_bytes(16)
        device.tokens[self.token] = self
        device.connections_open.add(self)
        self.streams: list[socket.socket] = []
        self.peer: dict[str, Any] = {}

    def local_info(self) -> dict[str, Any]:
        """Where to connect, and the token that names the domain."""
        host, port = self.device.listener.getsockname()[:2]
        return {"host": host, "port": port, "token": self.token.hex(), "gid": host}

    def establish(self, peer: dict[str, Any]) -> None:
        """Remember the peer; streams are opened when the first transfer is prepared."""
        self.peer = peer

    def dial(self) -> list[socket.socket]:
        """Open the streams once. Raises DeviceError when the peer cannot be reached."""
        while len(self.streams) < self.qps:
            try:
                stream = socket.create_connection((self.peer["host"], self.peer["port"]), timeout=5)
            except OSError as error:
                raise DeviceError(f"cannot reach {self.peer['host']}:{self.peer['port']}: {error}") from error
            _mark(stream, self.settings.traffic_class)
            stream.sendall(bytes.fromhex(self.peer["token"]))
            self.streams.append(stream)
        return self.streams

    def in_force(self) -> list[dict[str, Any]]:
        """What the sockets really use."""
        rows = []
        for stream in self.streams:
            v4 = stream.family == socket.AF_INET
            tos = stream.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) if v4 else 0
            # the kernel owns the ECN bits of a TCP socket, so only the DSCP can be asked for
            rows.append({"dscp": tos >> 2, "source_port": stream.getsockname()[1]})
        return rows

    def prepare(self, verb: str, pieces: Sequence[Piece], local: TcpRegion, remote: dict[str, int]) -> TcpTransfer:
        """Build the frames of every stream."""
        return TcpTransfer(self, verb, pieces, local, remote)

    def close(self) -> None:
        """Close the streams and forget the token."""
        for stream in self.streams:
            stream.close()
        self.streams = []
        self.device.tokens.pop(self.token, None)
        self.device.connections_open.discard(self)


class TcpTransfer:
    """Frames per stream, each with the local pieces it fills or sends."""

    def __init__(
        self, connection: TcpConnection, verb: str, pieces: Sequence[Piece], local: TcpRegion, remote: dict[str, int]
    ) -> None:
        self.verb = verb
        self.streams = connection.dial()
        self.memory = memoryview(local.buffer.map)
        frames = [pieces[first : first + _PER_FRAME] for first in range(0, len(pieces), _PER_FRAME)]
        if len(frames) < len(self.streams):
            each = -(-len(pieces) // len(self.streams))
            frames = [pieces[first : first + each] for first in range(0, len(pieces), each)]
        code = 1 if verb == "read" else 2
        self.work: list[list[tuple[bytes, list[memoryview]]]] = [[] for _ in self.streams]
        for number, frame in enumerate(frames):
            head = _HEAD.pack(code, remote["key"], len(frame))
            pairs = b"".join(_PAIR.pack(remote["address"] + piece.remote, piece.size) for piece in frame)
            parts = [self.memory[piece.local : piece.local + piece.size] for piece in frame]
            self.work[number % len(self.streams)].append((head + pairs, parts))

    def run(self, deadline_s: float, time_posts: bool = False) -> Times:
        """Run every stream in a thread of its own. Raises TransferError."""
        del time_posts
        start = time.perf_counter()
        errors: list[TransferError] = []
        posting = [0.0] * len(self.streams)
        threads = [
            threading.Thread(target=self._stream, args=(number, start, deadline_s, posting, errors), daemon=True)
            for number in range(len(self.streams))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        frames = sum(len(work) for work in self.work)
        return Times(0.0, max(posting), time.perf_counter() - start, frames, frames)

    def _stream(
        self, number: int, start: float, deadline_s: float, posting: list[float], errors: list[TransferError]
    ) -> None:
        stream = self.streams[number]
        try:
            for request, parts in self.work[number]:
                stream.settimeout(max(0.001, deadline_s - (time.perf_counter() - start)))
                before = time.perf_counter()
                _send(stream, [memoryview(request), *(parts if self.verb == "write" else ())])
                posting[number] += time.perf_counter() - before
                if _STATUS.unpack(_receive(stream, _STATUS.size))[0]:
                    raise TransferError("REM_ACCESS_ERR", "the peer refused the key", time.perf_counter() - start)
                if self.verb == "read":
                    _receive_into(stream, parts)
        except TransferError as error:
            errors.append(error)
        except TimeoutError:
            errors.append(TransferError("deadline", f"no answer within {deadline_s:g} s", time.perf_counter() - start))
        except OSError as error:
            errors.append(TransferError("RETRY_EXC_ERR", f"stream broke: {error}", time.perf_counter() - start))

    def close(self) -> None:
        """Let go of the memory."""
        self.work = []
        with contextlib.suppress(BufferError):
            self.memory.release()


def _mark(stream: socket.socket, traffic_class: int) -> None:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if stream.family == socket.AF_INET:
        stream.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, traffic_class)


def _send(stream: socket.socket, parts: list[memoryview]) -> None:
    while parts:
        sent = stream.sendmsg(parts[:512])
        parts = _after(parts, sent)


def _receive(stream: socket.socket, count: int) -> bytearray:
    data = bytearray(count)
    _receive_into(stream, [memoryview(data)])
    return data


def _receive_into(stream: socket.socket, parts: list[memoryview]) -> None:
    while parts:
        count = stream.recvmsg_into(parts[:512])[0]
        if not count:
            raise ConnectionResetError("the peer closed the stream")
        parts = _after(parts, count)


def _after(parts: list[memoryview], count: int) -> list[memoryview]:
    """Return what is left of `parts` after `count` bytes."""
    for index, part in enumerate(parts):
        if count < len(part):
            return [part[count:], *parts[index + 1 :]]
        count -= len(part)
    return []
