"""Memory that blocks live in: one anonymous file, mapped, so that every back-end can register or share it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os


class Buffer:
    """`size` bytes of zeroed memory in whole pages. `fd` names it for another process of the same user."""

    def __init__(self, size: int) -> None:
        self.size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.fd = os.memfd_create("kv-blocks")
        os.ftruncate(self.fd, self.size)
        self.map = mmap.mmap(self.fd, self.size)

    @property
    def address(self) -> int:
        """Virtual address of the first byte, for registering."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.map))

    def view(self) -> memoryview:
        """Return the memory as bytes that can be written; release it before `close`."""
        return memoryview(self.map)

    def clear(self) -> None:
        """Zero everything, so that what was not written is seen as such."""
        zeros = bytes(1 << 20)
        for offset in range(0, self.size, len(zeros)):
            end = min(offset + len(zeros), self.size)
            self.map[offset:end] = zeros[: end - offset]

    def is_clear(self) -> bool:
        """Tell whether every byte is still zero."""
        zeros = bytes(1 << 20)
        return all(
            self.map[offset : offset + len(zeros)] == zeros[: min(len(zeros), self.size - offset)]
            for offset in range(0, self.size, len(zeros))
        )

    def close(self) -> None:
        """Unmap and forget. A view that numpy or a device still holds keeps the pages until it goes."""
        with contextlib.suppress(BufferError):
            self.map.close()
        os.close(self.fd)
