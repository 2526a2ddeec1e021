"""Read a Linux gateway's connection table, its counters and its CPU, on the gateway itself.

Sources: /proc/net/stat/nf_conntrack (hexadecimal, one line per CPU), nf_conntrack_count and _max, /proc/stat (proc(5)),
/proc/net/softnet_stat. A counter that is not there is left out, never zero.
"""

from __future__ import annotations

import ipaddress
import re
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

_NET = Path("/proc/thread-self/net")
_SYSCTL = Path("/proc/sys/net/netfilter")
_KEPT = (
    "found",
    "invalid",
    "insert",
    "insert_failed",
    "drop",
    "early_drop",
    "icmp_error",
    "search_restart",
    "clashres",
)


def snapshot() -> dict[str, Any]:
    """Return occupancy, limit, counters, CPU and drops as they are now."""
    now: dict[str, Any] = {
        "at_ns": time.time_ns(),
        "counters": counters(),
        "cpu": _cpu(),
        "softnet_drops": _softnet_drops(),
    }
    for name in ("count", "max"):
        value = _number(_SYSCTL / f"nf_conntrack_{name}")
        if value is not None:
            now[name] = value
    now["interface_drops"] = _interface_drops()
    return now


def counters() -> dict[str, int]:
    """Return the connection table's event counters, summed over CPUs; empty if the kernel does not show them."""
    try:
        lines = (_NET / "stat" / "nf_conntrack").read_text().splitlines()
    except OSError:
        return {}
    names = lines[0].split()
    rows = [[int(word, 16) for word in line.split()] for line in lines[1:]]
    totals = {name: sum(row[i] for row in rows) for i, name in enumerate(names) if name in _KEPT}
    return {("clash_resolve" if name == "clashres" else name): value for name, value in totals.items()}


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what happened between two snapshots; pure. CPU is the busy share of the whole machine, 0 to 1."""
    result: dict[str, Any] = {"seconds": (after["at_ns"] - before["at_ns"]) / 1e9}
    result["count"] = after.get("count")
    result["max"] = after.get("max")
    result["counters"] = {
        name: value - before["counters"][name]
        for name, value in after["counters"].items()
        if name in before["counters"]
    }
    ticks = {name: after["cpu"][name] - before["cpu"][name] for name in after["cpu"]}
    if ticks.get("total"):
        result["cpu_busy"] = round(1 - ticks["idle"] / ticks["total"], 4)
        result["cpu_softirq"] = round(ticks["softirq"] / ticks["total"], 4)
    for name in ("softnet_drops", "interface_drops"):
        if before.get(name) is not None and after.get(name) is not None:
            result[name] = after[name] - before[name]
    return result


class Watch:
    """Samples occupancy while a step runs; `stop` returns the difference and the largest occupancy."""

    def __init__(self, interval_s: float = 0.1) -> None:
        """Start sampling in a thread of its own."""
        self._interval, self._peak = interval_s, 0
        self._before = snapshot()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gateway-watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self._peak = max(self._peak, _number(_SYSCTL / "nf_conntrack_count") or 0)

    def stop(self) -> dict[str, Any]:
        """Stop and return the step's figures."""
        self._stop.set()
        self._thread.join(timeout=2)
        result = difference(self._before, snapshot())
        result["count_peak"] = max(self._peak, result["count"] or 0)
        return result


def entries(prefix: str, far: list[str], *, limit: int = 20) -> dict[str, Any]:
    """Return how many table entries `prefix` has with an address of `far` (as any of four ends), and the first few.

    Another tenant may have hosts with the same addresses in the table, but its own far ends. Raises OSError when the
    table cannot be read: that is not the same as an empty table.
    """
    network = ipaddress.IPv4Network(prefix)
    found: list[str] = []
    total = 0
    public: Counter[str] = Counter()
    for line in _table():
        ends = re.findall(r"(?:src|dst)=([0-9.]+)", line)
        if not (any(ipaddress.IPv4Address(end) in network for end in ends) and set(ends) & set(far)):
            continue
        total += 1
        public[ends[-1]] += 1
        if len(found) < limit:
            found.append(line.strip())
    return {"prefix": prefix, "entries": total, "sample": found, "answers_to": dict(public.most_common(64))}


def forget(prefix: str) -> dict[str, Any]:
    """Delete the entries whose original source is in `prefix`: the tester's own flows, nobody else's."""
    network = ipaddress.IPv4Network(prefix)
    where = ["-s", str(network.network_address), "--mask-src", str(network.netmask)]
    done = subprocess.run(["conntrack", "-D", *where], capture_output=True, text=True, check=False)
    deleted = re.search(r"(\d+) flow entries", done.stderr)
    if deleted is None:
        raise OSError(f"conntrack -D: {done.stderr.strip() or done.returncode}")
    return {"deleted": int(deleted[1])}


def _table() -> list[str]:
    shown = _NET / "nf_conntrack"
    if shown.exists():
        return shown.read_text().splitlines()
    done = subprocess.run(["conntrack", "-L"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"conntrack -L: {done.stderr.strip()}")
    return done.stdout.splitlines()


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _cpu() -> dict[str, int]:
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    ticks = [int(word) for word in words]
    return {"total": sum(ticks), "idle": ticks[3] + ticks[4], "softirq": ticks[6]}


def _softnet_drops() -> int | None:
    try:
        return sum(int(line.split()[1], 16) for line in (_NET / "softnet_stat").read_text().splitlines())
    except OSError:
        return None


def _interface_drops() -> int:
    lines = (_NET / "dev").read_text().splitlines()[2:]
    fields = [line.split(":", 1)[1].split() for line in lines]
    return sum(int(row[3]) + int(row[11]) for row in fields)
