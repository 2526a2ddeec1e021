"""Raw packet sockets in bulk: `sendmmsg` for sending, a TPACKET_V3 ring read as a numpy view for receiving.

Sources: Linux Documentation/networking/packet_mmap.rst, packet(7), sendmmsg(2), bpf classic (filter.rst).
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SOL_PACKET = 263
_PACKET_RX_RING, _PACKET_STATISTICS, _PACKET_VERSION, _PACKET_IGNORE_OUTGOING = 5, 6, 10, 23
_TPACKET_V3 = 2
_SO_ATTACH_FILTER = 26
_STATUS_USER = 1
_LEAST_BLOCK, _MOST_BLOCK = 1 << 12, 1 << 17
_BLOCKS = 1024
_FRAME_BYTES = 2048
_RETIRE_MS = 1
_ETH_P_IP = 0x0800

_BLOCK = np.dtype(
    {
        "names": ["status", "packets", "first"],
        "formats": ["<u4", "<u4", "<u4"],
        "offsets": [8, 12, 16],
        "itemsize": 48,
    }
)
_HEADER_FIELDS = {"next": ("<u4", 0), "sec": ("<u4", 4), "nsec": ("<u4", 8), "caught": ("<u4", 12), "mac": ("<u2", 24)}


@dataclass(frozen=True)
class Catch:
    """What a ring lets in: IPv4 of one protocol to one destination prefix, cut to `size` bytes."""

    protocol: int
    network: int
    mask: int
    size: int

    def program(self) -> list[tuple[int, int, int, int]]:
        """Return the classic BPF program; frames shorter than `size` are refused so that the stride is constant."""
        return [
            (0x28, 0, 0, 12),  # ldh  ethertype
            (0x15, 0, 8, _ETH_P_IP),
            (0x30, 0, 0, 23),  # ldb  IP protocol
            (0x15, 0, 6, self.protocol),
            (0x20, 0, 0, 30),  # ld   destination
            (0x54, 0, 0, self.mask),
            (0x15, 0, 3, self.network & self.mask),
            (0x80, 0, 0, 0),  # ld   length of the frame
            (0x35, 0, 1, self.size),
            (0x06, 0, 0, self.size),
            (0x06, 0, 0, 0),
        ]


def attach_filter(sock: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    """Attach a classic BPF program (code, jump if true, jump if false, constant) to a socket."""
    raw = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(raw)))


def ignore_outgoing(sock: socket.socket) -> None:
    """Do not hand a socket what this host itself sends."""
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)


class Ring:
    """A TPACKET_V3 receive ring for frames of one layout; `drops` counts what the kernel could not put into it.

    The kernel closes a block after `_RETIRE_MS` however little is in it, so the number of blocks, not their size, says
    how long a slow trickle may wait to be read: a small ring has small ones, and still a thousand.
    """

    def __init__(self, interface: str, catch: Catch, dtype: np.dtype[Any], *, megabytes: int = 32) -> None:
        """Open the ring in the current namespace; needs CAP_NET_RAW. `megabytes` is its memory in MiB."""
        self._dtype = dtype
        memory = megabytes << 20
        # a power of two: the memory of a block is whole pages
        self._block_bytes = min(_MOST_BLOCK, max(_LEAST_BLOCK, 1 << (memory // _BLOCKS).bit_length() - 1))
        self._blocks = max(2, memory // self._block_bytes)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        attach_filter(self._socket, catch.program())
        self._socket.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
        ignore_outgoing(self._socket)
        frames = self._blocks * self._block_bytes // _FRAME_BYTES
        request = struct.pack("7I", self._block_bytes, self._blocks, _FRAME_BYTES, frames, _RETIRE_MS, 0, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_RX_RING, request)
        self._map = mmap.mmap(self._socket.fileno(), self._blocks * self._block_bytes)
        self._headers = np.ndarray(self._blocks, _BLOCK, self._map, 0, (self._block_bytes,))
        self._next = 0
        self.drops = 0
        self.packets = 0
        self._socket.bind((interface, _ETH_P_IP))

    def begin(self) -> None:
        """Forget what waits and what was lost so far: a measurement answers for its own time only."""
        self.read()
        self.statistics()
        self.drops = self.packets = 0

    def read(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return all frames that wait (copied) and the kernel's receive time of each in ns since 1970."""
        frames: list[NDArray[Any]] = []
        times: list[NDArray[np.int64]] = []
        for _ in range(self._blocks):
            header = self._headers[self._next]
            if not int(header["status"]) & _STATUS_USER:
                break
            if int(header["packets"]):
                body, stamp = self._block(self._next, int(header["packets"]), int(header["first"]))
                frames.append(body)
                times.append(stamp)
            self._headers["status"][self._next] = 0
            self._next = (self._next + 1) % self._blocks
        # not np.concatenate: it would turn the fields' byte order round
        joined = np.empty(sum(map(len, frames)), self._dtype)
        at = 0
        for piece in frames:
            joined[at : at + len(piece)] = piece
            at += len(piece)
        return joined, np.concatenate(times) if times else np.empty(0, np.int64)

    def _block(self, index: int, count: int, first: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        start = index * self._block_bytes + first
        stride, _, _, _, _, _, mac = struct.unpack_from("<6IH", self._map, start)
        if count == 1:
            stride = _FRAME_BYTES
        view = {
            name: np.ndarray(count, fmt, self._map, start + at, (stride,)) for name, (fmt, at) in _HEADER_FIELDS.items()
        }
        if count > 1 and not (view["next"][:-1] == stride).all():
            msg = "the ring's packets are not all of one size: the filter does not fit the layout"
            raise RuntimeError(msg)
        stamp = view["sec"].astype(np.int64) * 1_000_000_000 + view["nsec"]
        return np.ndarray(count, self._dtype, self._map, start + mac, (stride,)).copy(), stamp

    def wait(self, seconds: float) -> bool:
        """Wait until a block is ready; True when there is one."""
        if int(self._headers["status"][self._next]) & _STATUS_USER:
            return True
        return bool(select.select([self._socket], [], [], max(0.0, seconds))[0])

    def statistics(self) -> dict[str, int]:
        """Return packets and drops since `begin` or the opening (the kernel's PACKET_STATISTICS, added up)."""
        packets, drops, _ = struct.unpack("3I", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 12))
        self.packets += packets
        self.drops += drops
        return {"packets": self.packets, "drops": self.drops}

    def close(self) -> None:
        """Close the socket; the memory goes when the last view of it does."""
        self._socket.close()


class Sender:
    """Send arrays of equal frames through one interface with as few system calls as possible."""

    def __init__(self, interface: str, *, batch: int = 256) -> None:
        """Open the socket in the current namespace; `batch` frames go into one call."""
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self._socket.bind((interface, 0))
        self.batch = batch
        self._vectors = np.zeros((batch, 2), np.uint64)
        self._messages = np.zeros((batch, 8), np.uint64)
        self._messages[:, 2] = self._vectors.ctypes.data + 16 * np.arange(batch, dtype=np.uint64)
        self._messages[:, 3] = 1
        self._steps = np.arange(batch, dtype=np.uint64)
        libc = ctypes.CDLL(None, use_errno=True)
        self._call = libc.sendmmsg
        self._call.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int]
        self.sent = 0
        self.refused = 0

    def send(self, frames: NDArray[Any]) -> tuple[int, int]:
        """Send all frames of a contiguous array; return the time before and after in ns since 1970.

        A full queue (ENOBUFS, EAGAIN) is waited out for at most 100 ms, then the rest counts as `refused`.
        """
        if not frames.flags.c_contiguous:
            frames = np.ascontiguousarray(frames)
        size, base, begun = frames.dtype.itemsize, frames.ctypes.data, time.time_ns()
        done, patience = 0, 100
        while done < len(frames):
            count = min(self.batch, len(frames) - done)
            self._vectors[:count, 0] = base + size * done + size * self._steps[:count]
            self._vectors[:count, 1] = size
            went = self._call(self._socket.fileno(), self._messages.ctypes.data, count, 0)
            if went > 0:
                done += went
                continue
            number = ctypes.get_errno()
            if number not in (errno.ENOBUFS, errno.EAGAIN, errno.EINTR):
                raise OSError(number, f"sendmmsg: {os.strerror(number)}")
            patience -= 1
            if patience == 0:
                break
            time.sleep(0.001)
        self.sent += done
        self.refused += len(frames) - done
        return begun, time.time_ns()

    def send_bytes(self, frame: bytes) -> None:
        """Send one frame of any kind."""
        self._socket.send(frame)
        self.sent += 1

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
