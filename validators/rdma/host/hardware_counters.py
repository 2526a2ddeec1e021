"""Counters of an RDMA device and its netdev as the kernel shows them, raw: judging is done where the plan is known."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from validators.rdma.host.gids import SYSFS

if TYPE_CHECKING:
    from pathlib import Path

_SOFT_ROCE = "rxe"
_ETHTOOL = re.compile(r"^\s*([A-Za-z0-9_\[\]. -]+?):\s*(\d+)\s*$")


def read(device: str, port: int, netdev: str) -> dict[str, int]:
    """Return every counter found, prefixed by its place: `hw.`, `port.` or `eth.`."""
    base = SYSFS / device / "ports" / str(port)
    found = {f"hw.{name}": value for name, value in _folder(base / "hw_counters").items()}
    found |= {f"port.{name}": value for name, value in _folder(base / "counters").items()}
    # inside a network namespace the kernel hides both folders, but answers the `rdma` tool
    found |= {f"hw.{name}": value for name, value in _rdma_tool(device, port).items()}
    # a virtual netdev counts nothing of RDMA, and in a lab every process more costs as much as a transfer
    if driver(device) != _SOFT_ROCE:
        found |= {f"eth.{name}": value for name, value in _ethtool(netdev).items()}
    return found


def driver(device: str) -> str:
    """Return the kernel driver of a device (`mlx5_core`, `bnxt_en`), `rxe` when it has no hardware behind it."""
    link = SYSFS / device / "device" / "driver"
    if link.exists():
        return link.resolve().name
    return _SOFT_ROCE if (SYSFS / device / "ports").exists() else ""


def _folder(folder: Path) -> dict[str, int]:
    values = {}
    for path in folder.glob("*"):
        try:
            values[path.name] = int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue  # `lifespan` and what the device does not support
    return values


def _rdma_tool(device: str, port: int) -> dict[str, int]:
    if not shutil.which("rdma"):
        return {}
    argv = ["rdma", "-j", "statistic", "show", "link", f"{device}/{port}"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    try:
        rows = json.loads(done.stdout or "[]")
    except json.JSONDecodeError:
        return {}
    return {name: value for row in rows for name, value in row.items() if isinstance(value, int) and name != "port"}


def _ethtool(netdev: str) -> dict[str, int]:
    if not netdev or not shutil.which("ethtool"):
        return {}
    done = subprocess.run(["ethtool", "-S", netdev], capture_output=True, text=True, timeout=10, check=False)
    matches = (_ETHTOOL.match(line) for line in done.stdout.splitlines())
    return {match[1].strip(): int(match[2]) for match in matches if match}
