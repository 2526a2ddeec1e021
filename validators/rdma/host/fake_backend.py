"""A copy between two processes of one machine, for tests without any device: no network at all, and it says so.

Access control is imitated as verbs have it: a key belongs to a region of one protection domain, allows reading or
writing, and opens nothing once the region is deregistered.
"""

from __future__ import annotations

import mmap
import os
import random
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from validators.rdma.host.backend import DeviceError, OpenSpec, Piece, QpSettings, Times, TransferError
from validators.rdma.host.memory import Buffer
from validators.rdma.host.tracked import TrackedDevice

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENTRY = struct.Struct("<QQQQQ")  # key, domain, fd, size, access; key 0 is an empty entry
_ENTRIES = 64
_ACCESS = {"local": 0, "read": 1, "write": 2}


class Backend:
    """Copy in memory."""

    name = "fake"

    def open(self, spec: OpenSpec) -> FakeDevice:
        """Open never fails."""
        return FakeDevice(spec)


class FakeDevice(TrackedDevice):
    """A table of regions in shared memory that the peer process looks into."""

    transport = "copy in memory, no network"

    def __init__(self, spec: OpenSpec) -> None:
        super().__init__()
        self.spec = spec
        self.table = Buffer(_ENTRY.size * _ENTRIES)

    def describe(self) -> dict[str, Any]:
        """Only names; there is no device."""
        return {
            "device": "fake",
            "netdev": "",
            "gid": "",
            "gid_type": "none",
            "active_mtu": 4096,
            "address": self.spec.address,
        }

    def register(self, domain: str, buffer: Buffer, access: str) -> FakeRegion:
        """Enter the buffer into the table under a fresh key."""
        return FakeRegion(self, domain, buffer, access)

    def connect(self, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int = 0) -> FakeConnection:
        """Make a connection; `qps`, `depth` and `cq_entries` change nothing here."""
        del depth, cq_entries
        return FakeConnection(self, domain, qps, settings)

    def close(self) -> None:
        """Close everything."""
        super().close()
        self.table.close()


class FakeRegion:
    """One entry of the table."""

    def __init__(self, device: FakeDevice, domain: str, buffer: Buffer, access: str) -> None:
        self.device, self.buffer = device, buffer
        self.address = 0
        self.key = random.randrange(1, 1 << 32)  # noqa: S311 - tests want it reproducible, nothing is protected by it
        free = (slot for slot in range(_ENTRIES) if not _entry(device.table.map, slot)[0])
        self.slot = next(free, -1)
        if self.slot < 0:
            raise DeviceError(f"more than {_ENTRIES} regions")
        entry = (self.key, _domain(domain), buffer.fd, buffer.size, _ACCESS[access])
        _ENTRY.pack_into(device.table.map, self.slot * _ENTRY.size, *entry)
        device.regions_open.add(self)

    def close(self) -> None:
        """Clear the entry."""
        if self in self.device.regions_open:
            _ENTRY.pack_into(self.device.table.map, self.slot * _ENTRY.size, 0, 0, 0, 0, 0)
            self.device.regions_open.discard(self)


class FakeConnection:
    """Knows where the peer's table is."""

    def __init__(self, device: FakeDevice, domain: str, qps: int, settings: QpSettings) -> None:
        self.device, self.domain, self.qps, self.settings = device, domain, qps, settings
        self.peer: dict[str, Any] = {}
        device.connections_open.add(self)

    def local_info(self) -> dict[str, Any]:
        """Process, table and domain."""
        return {"pid": os.getpid(), "table_fd": self.device.table.fd, "domain": self.domain, "gid": ""}

    def establish(self, peer: dict[str, Any]) -> None:
        """Remember the peer. Raises DeviceError when it is not a process of this machine."""
        if not Path(f"/proc/{peer.get('pid')}").exists():
            raise DeviceError(f"peer process {peer.get('pid')} is not on this machine")
        self.peer = peer

    def in_force(self) -> list[dict[str, Any]]:
        """Say back what was asked for."""
        s = self.settings
        one = {
            "mtu": s.mtu,
            "traffic_class": s.traffic_class,
            "hop_limit": s.hop_limit,
            "max_rd_atomic": s.max_rd_atomic,
        }
        return [dict(one) for _ in range(self.qps)]

    def prepare(self, verb: str, pieces: Sequence[Piece], local: FakeRegion, remote: dict[str, int]) -> FakeTransfer:
        """Nothing to build."""
        return FakeTransfer(self, verb, pieces, local, remote)

    def close(self) -> None:
        """Forget the peer."""
        self.device.connections_open.discard(self)


class FakeTransfer:
    """Copies piece by piece."""

    def __init__(
        self, connection: FakeConnection, verb: str, pieces: Sequence[Piece], local: FakeRegion, remote: dict[str, int]
    ) -> None:
        self.connection, self.verb, self.pieces, self.local, self.remote = connection, verb, pieces, local, remote

    def run(self, deadline_s: float, time_posts: bool = False) -> Times:
        """Copy everything. Raises TransferError as verbs would."""
        del time_posts
        start = time.perf_counter()
        theirs = self._open_remote(start)
        mine, base = self.local.buffer.map, self.remote["address"]
        for piece in self.pieces:
            here, there = (
                slice(piece.local, piece.local + piece.size),
                slice(base + piece.remote, base + piece.remote + piece.size),
            )
            if self.verb == "read":
                mine[here] = theirs[there]
            else:
                theirs[there] = mine[here]
            if time.perf_counter() - start > deadline_s:
                raise TransferError("deadline", f"not done within {deadline_s:g} s", deadline_s)
        theirs.close()
        took = time.perf_counter() - start
        return Times(posting_s=took, completion_s=took, posts=len(self.pieces), completions=len(self.pieces))

    def _open_remote(self, start: float) -> mmap.mmap:
        peer = self.connection.peer
        try:
            with Path(f"/proc/{peer['pid']}/fd/{peer['table_fd']}").open("rb") as file:
                table = file.read(_ENTRY.size * _ENTRIES)
        except OSError as error:
            raise TransferError("RETRY_EXC_ERR", f"the peer is gone: {error}", time.perf_counter() - start) from error
        end = self.remote["address"] + max(piece.remote + piece.size for piece in self.pieces)
        needed = _ACCESS["read" if self.verb == "read" else "write"]
        for slot in range(_ENTRIES):
            key, domain, fd, size, access = _ENTRY.unpack_from(table, slot * _ENTRY.size)
            allowed = domain == _domain(peer["domain"]) and access == needed and end <= size
            if key and key == self.remote["key"] and allowed:
                with Path(f"/proc/{peer['pid']}/fd/{fd}").open("r+b") as file:
                    return mmap.mmap(file.fileno(), size)
        raise TransferError("REM_ACCESS_ERR", "the key opens nothing in the peer's domain", time.perf_counter() - start)

    def close(self) -> None:
        """Nothing was built."""


def _entry(table: mmap.mmap, slot: int) -> tuple[int, ...]:
    return _ENTRY.unpack_from(table, slot * _ENTRY.size)


def _domain(name: str) -> int:
    return int.from_bytes(name.encode()[:8].ljust(8, b"\0"), "little")
