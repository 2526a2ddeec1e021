"""Which GID to use, by type and address, from sysfs: never by a fixed index, which differs between hosts and boots.

Sources: `Documentation/ABI/stable/sysfs-class-infiniband` of the Linux kernel.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from validators.rdma.host.backend import BackendMissingError, DeviceError

SYSFS = Path("/sys/class/infiniband")


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


def table(root: Path = SYSFS) -> list[Gid]:
    """Read every GID that is set on this host. Entries of other network namespaces cannot be read and are left out."""
    found = []
    for path in sorted(root.glob("*/ports/*/gids/*"), key=lambda p: (p.parts[-5], p.parts[-3], int(p.name))):
        attrs = path.parents[1] / "gid_attrs"
        gid = _read(path)
        kind = _read(attrs / "types" / path.name)
        if gid and kind and ipaddress.IPv6Address(gid) != ipaddress.IPv6Address("::"):
            netdev = _read(attrs / "ndevs" / path.name)
            found.append(Gid(path.parts[-5], int(path.parts[-3]), int(path.name), gid, kind, netdev))
    return found


def choose(address: str, device: str = "", kind: str = "RoCE v2", root: Path = SYSFS) -> Gid:
    """Return the GID of `kind` that belongs to `address`, on `device` if given.

    Raises BackendMissingError when the host has no RDMA device, DeviceError with what was found when none matches.
    """
    if not any(root.glob("*")):
        raise BackendMissingError("this host has no RDMA device (nothing in /sys/class/infiniband)")
    entries = table(root)
    want = ipaddress.IPv6Address(gid_of(address))
    for entry in entries:
        same = ipaddress.IPv6Address(entry.gid) == want and entry.kind.lower() == kind.lower()
        if same and device in {"", entry.device}:
            return entry
    seen = "; ".join(f"{e.device} port {e.port} index {e.index}: {e.gid} {e.kind} {e.netdev}" for e in entries)
    where = f" on {device}" if device else ""
    empty = "no GID is set: is the netdev in this network namespace, with an address?"
    raise DeviceError(f"no {kind} GID for {address}{where}; found {seen or empty}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""
