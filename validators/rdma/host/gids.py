"""Which GID to use, by type and address, from sysfs: never by a fixed index, which differs between hosts and boots.

Where the kernel shares RDMA devices among network namespaces (`rdma system` says `netns shared`, the default) sysfs has
the devices of all of them, and addresses and netdev names may be there twice. A GID is only used when its netdev is of
this namespace, told by the MAC that the device's GID table has for that netdev.

Sources: `Documentation/ABI/stable/sysfs-class-infiniband` of the Linux kernel; its default GIDs are fe80::/64 with the
netdev's MAC as modified EUI-64.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from validators.rdma.host.backend import BackendMissingError, DeviceError

SYSFS = Path("/sys/class/infiniband")
_SIOCGIFHWADDR = 0x8927
_UNSET = "0000:0000:0000:0000:0000:0000:0000:0000"
_LINK_LOCAL = bytes.fromhex("fe80000000000000")


@dataclass(frozen=True)
class Gid:
    """One entry of a port's GID table."""

    device: str
    port: int
    index: int
    gid: str
    kind: str
    netdev: str


def gid_of(address: str) -> str:
    """Return the GID of an IP address: IPv4 is mapped into IPv6 (::ffff:a.b.c.d), written out in full."""
    ip = ipaddress.ip_address(address)
    packed = ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed
    # not `exploded`: newer Pythons keep the dotted form of a mapped address, which pyverbs does not read
    return packed.hex(":", 2)


def packed(gid: str) -> bytes:
    """Return the 16 bytes of a GID written out."""
    return bytes.fromhex(gid.replace(":", ""))


def table(root: Path = SYSFS, device: str = "") -> list[Gid]:
    """Read every GID that is set on this host, or on one device. Entries that cannot be read are left out.

    A table has room for some thousand entries, nearly all of them zero: no more than the entry is read of those.
    """
    found = []
    for port in sorted(root.glob(f"{device or '*'}/ports/*")):
        for name in sorted(_listed(f"{port}/gids"), key=int):
            gid = _read(f"{port}/gids/{name}")
            if not gid or gid == _UNSET:
                continue
            kind = _read(f"{port}/gid_attrs/types/{name}")
            if kind:
                netdev = _read(f"{port}/gid_attrs/ndevs/{name}")
                found.append(Gid(port.parts[-3], int(port.name), int(name), gid, kind, netdev))
    return found


def choose(address: str, device: str = "", kind: str = "RoCE v2", root: Path = SYSFS) -> Gid:
    """Return the GID of `kind` that belongs to `address`, on `device` if given, with a netdev of this namespace.

    Raises BackendMissingError when the host has no RDMA device, DeviceError with what was found when none matches or
    those that do are of other network namespaces.
    """
    if not any(root.glob("*")):
        raise BackendMissingError("this host has no RDMA device (nothing in /sys/class/infiniband)")
    entries = table(root, device)
    want = ipaddress.IPv6Address(gid_of(address))
    foreign = []
    for entry in entries:
        if ipaddress.IPv6Address(entry.gid) != want or entry.kind.lower() != kind.lower():
            continue
        if device in {"", entry.device}:
            if not (why := _why_foreign(entry, entries)):
                return entry
            foreign.append(f"{entry.device} has the {kind} GID of {address}, but {why}")
    if foreign:
        raise DeviceError(f"{'; '.join(foreign)}: a device of another network namespace is never used")
    everywhere = table(root) if device else entries
    seen = "; ".join(f"{e.device} port {e.port} index {e.index}: {e.gid} {e.kind} {e.netdev}" for e in everywhere)
    where = f" on {device}" if device else ""
    empty = "no GID is set: is the netdev in this network namespace, with an address?"
    raise DeviceError(f"no {kind} GID for {address}{where}; found {seen or empty}")


def mac_of(netdev: str) -> bytes:
    """Return the MAC of a netdev of this network namespace, empty when it is not here.

    Asked of the kernel, not of /sys/class/net, which shows the namespace that it was mounted in.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            answer = fcntl.ioctl(asking, _SIOCGIFHWADDR, struct.pack("16s16x", netdev.encode()[:15]))
        except OSError:
            return b""
    return answer[18:24]


def _why_foreign(entry: Gid, entries: list[Gid]) -> str:
    """Return why a GID is not of this network namespace, empty when it is."""
    mac = mac_of(entry.netdev) if entry.netdev else b""
    if not mac:
        return f"its netdev {entry.netdev or '(none)'} is not in this network namespace"
    same = [e for e in entries if (e.device, e.port, e.netdev) == (entry.device, entry.port, entry.netdev)]
    # a device may have no such GID (of an Ethernet port with an identifier of its own); then the name decides
    macs = {found for e in same if (found := _mac_in(packed(e.gid)))}
    if macs and mac not in macs:
        theirs = ", ".join(sorted(one.hex(":") for one in macs))
        return f"its netdev {entry.netdev} has MAC {theirs}, the one of this network namespace {mac.hex(':')}"
    return ""


def _mac_in(gid: bytes) -> bytes:
    """Return the MAC in a link-local GID (modified EUI-64), empty for any other GID."""
    if gid[:8] != _LINK_LOCAL or gid[11:13] != b"\xff\xfe":
        return b""
    return bytes([gid[8] ^ 2]) + gid[9:11] + gid[13:16]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names, of which there are thousands
    except OSError:
        return []


def _read(path: str) -> str:
    """Read a short file with three system calls: opening it as a text file takes seven, times thousands of entries."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, 256).decode("ascii").strip()
    except OSError:
        return ""
    finally:
        os.close(file)
