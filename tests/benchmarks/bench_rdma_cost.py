"""Cost of a work request without a device, and whether 10^6 of them leave memory flat. Not a test: prints figures.

    python tests/benchmarks/bench_rdma_cost.py

Two doubles of post and poll, which cost about nothing: functions in Python under the engine alone, and `verbs_double.c` by
LD_PRELOAD under engine and unmodified pyverbs (in the embedded lab, on a Soft-RoCE device that sees no request). The second
needs gcc, verbs.h (libibverbs-dev) and a built lab. Limit of both: 0.15 us per work request.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import tracemalloc
from pathlib import Path

from fabric.problem import CouldNotRunError
from labs.launch import launch
from labs.model import Lab
from validators.rdma.host.chains import LONGEST_CHAIN, chain_slices, run_window

REQUESTS = 1_000_000
LIMIT_US = 0.15
DOUBLE = Path(__file__).with_name("verbs_double.c")
SETUP = """
set -e
ip link add va type veth peer name vb; ip link set va mtu 9000 up; ip link set vb mtu 9000 up
ip addr add 10.9.0.1/24 dev va; rdma link add rxea type rxe netdev va
"""
INSIDE = """
import time
from validators.rdma.host.backend import OpenSpec, Piece, QpSettings
from validators.rdma.host.memory import Buffer
from validators.rdma.host.pyverbs_backend import Backend

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

device = Backend().open(OpenSpec("10.9.0.1"))
region = device.register("main", Buffer(1 << 22), "local")
connection = device.connect("main", 4, 64, QpSettings())
for name, count in (("prebuilt", 4_096), ("rewritten", 131_072)):
    pieces = [Piece(n % 1024 * 4096, n % 1024 * 4096, 4096) for n in range(count)]
    prepared = connection.prepare("read", pieces, region, {"address": 0, "key": 1})
    prepared.run(60)
    before, best, rounds = resident(), 1e9, -(-1_000_000 // count)
    for _ in range(rounds):
        start = time.perf_counter()
        prepared.run(60)
        best = min(best, time.perf_counter() - start)
    print(name, rounds * count, best / count * 1e6, resident() - before)
    prepared.close()
device.close()
"""


def engine() -> None:
    """The engine alone."""
    chains = len(chain_slices(REQUESTS, LONGEST_CHAIN))
    ready: list[tuple[int, str]] = []

    def post(chain: int) -> None:
        ready.append((chain, ""))

    def poll() -> list[tuple[int, str]]:
        found = ready[:16]
        del ready[:16]
        return found

    def timed() -> float:
        start = time.perf_counter()
        run_window(chains, 16, post, poll, 60.0)
        return time.perf_counter() - start

    timed()
    best = min(timed() for _ in range(5))
    _say("engine alone, chains of 32", best / REQUESTS * 1e6)
    tracemalloc.start()
    timed()
    before = tracemalloc.get_traced_memory()[0]
    timed()
    print(f"  memory kept by a further 10^6 requests: {tracemalloc.get_traced_memory()[0] - before} bytes")


def with_binding() -> None:
    """Engine and pyverbs on a device whose post and poll are doubles."""
    if not _can_compile():
        print("engine and pyverbs: skipped, needs gcc and verbs.h (apt-get install gcc libibverbs-dev)")
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            running = launch(Lab("bench-cost", (), ()), Path(folder), engine="uml").running
        except CouldNotRunError as error:
            print(f"engine and pyverbs: skipped, {error}")
            return
        try:
            built = running.share / "double.so"
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(built), str(DOUBLE), "-ldl"], check=True)
            running.run("", ["sh", "-c", SETUP]).check()
            argv = ["env", "LD_PRELOAD=/lab/double.so", "python3", "-c", INSIDE]
            for line in running.run("", argv, timeout_s=120).check().out.splitlines():
                name, posts, cost, grown = line.split()
                _say(f"engine and pyverbs, {name}", float(cost))
                print(f"  memory kept by {posts} requests: {grown} bytes")
        finally:
            running.stop()


def _can_compile() -> bool:
    argv = ["gcc", "-fsyntax-only", "-include", "infiniband/verbs.h", "-x", "c", "/dev/null"]
    return bool(shutil.which("gcc")) and not subprocess.run(argv, capture_output=True, check=False).returncode


def _say(what: str, cost_us: float) -> None:
    print(f"{what}: {cost_us:.4f} us per work request, {cost_us / LIMIT_US:.2f} of the limit", flush=True)


if __name__ == "__main__":
    engine()
    with_binding()
