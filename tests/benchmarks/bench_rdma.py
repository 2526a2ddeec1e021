"""RDMA probe against perftest on the same Soft-RoCE devices, in the same run, in turns. Not a test: prints ratios.

    python tests/benchmarks/bench_rdma.py [--rounds 3]

Boots the embedded lab's machine without nodes, makes two network namespaces with a veth pair and Soft-RoCE, and ends it.

perftest measures the frequency of the processor's counter against a clock that is coarse in that machine, and prints 0,
inf or nan when that fails. Latencies are therefore asked for in cycles, and the frequency is measured here, on the host.
Rates cannot be asked for in cycles: impossible ones (not finite, not above 0, or so low that the transfer would have
taken longer than the whole program did) are thrown away, said at the end, and asked for again.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import mmap
import os
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.launch import launch
from labs.model import Lab
from validators.agents.agent import LabAgent, run_program
from validators.rdma.launch import MODULE, PACKAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labs.client import Running

QPS, DEPTH = 2, 64
_TRIES = 6
BUILD = """
set -e
ip netns add a; ip netns add b
ip link add va type veth peer name vb
ip link set va netns a mtu 9000; ip link set vb netns b mtu 9000
ip -n a addr add 10.9.0.1/24 dev va; ip -n b addr add 10.9.0.2/24 dev vb
for n in a b; do ip -n $n link set lo up; ip -n $n link set v$n up; done
ip netns exec a rdma link add rxea type rxe netdev va
ip netns exec b rdma link add rxeb type rxe netdev vb
ip netns exec a ping -c1 -W2 10.9.0.2 >/dev/null
"""


@dataclass
class Machine:
    """The lab's machine as a place for agents."""

    lab: Running

    @property
    def share(self) -> Path:
        """Folder that the machine sees as /lab."""
        return self.lab.share

    def run(self, node: str, argv: Sequence[str], stdin: bytes = b"", timeout_s: float = 60) -> Any:
        """Run in the machine itself; the namespace is in the agent's prefix."""
        del node
        return self.lab.run("", argv, stdin=stdin, timeout_s=timeout_s)


def agent(lab: Running, namespace: str) -> LabAgent:
    return LabAgent(Machine(lab), namespace, prefix=("ip", "netns", "exec", namespace))


def probe(lab: Running, verb: str, size: int, count: int, port: int, repeats: int) -> dict[str, Any]:
    """Return the driving row of our probe."""
    common = {"backend": "pyverbs", "port": port, "deadline_s": 60}
    passive = {**common, "role": "serve", "open": {"address": "10.9.0.2"}, "listen": "10.9.0.2"}
    identity = {"model": "bench", "precision": "fp16", "kernel_config": "k", "generation": 1, "content": "x"}
    active = {
        **common, "role": "drive", "open": {"address": "10.9.0.1"}, "peer": "10.9.0.2", "scenario": "transfer", "verb": verb,
        "workload": {"groups": [[size, count]]}, "identity": identity, "repeats": repeats,
        "qps": 1 if count == 1 else QPS, "depth": DEPTH,
    }  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        serve = pool.submit(run_program, agent(lab, "b"), PACKAGES, MODULE, passive, 90)
        row = pool.submit(run_program, agent(lab, "a"), PACKAGES, MODULE, active, 90).result()
        serve.result()
    if "error" in row:
        raise SystemExit(str(row["error"]))
    return row


class Perftest:
    """perftest's tools on the two devices, and how many of their figures were impossible."""

    def __init__(self, lab: Running) -> None:
        self.lab, self.discarded, self.mhz = lab, 0, counter_mhz()

    def rate(self, verb: str, size: int, iterations: int, port: int) -> float:
        """Return Gb/s of ib_read_bw or ib_write_bw; `iterations` are of each queue pair."""
        for attempt in range(_TRIES):
            start = time.perf_counter()
            cells = self._run(
                f"ib_{verb}_bw", f"-s {size} -n {iterations} -q {QPS} -t {DEPTH} --report_gbits", size, port + attempt
            )
            took_s = time.perf_counter() - start
            gbps = float(cells[3])  # bytes, iterations, peak, average, rate
            if math.isfinite(gbps) and gbps > 0 and 8e-9 * size * iterations * QPS / gbps < took_s:
                return gbps
            self.discarded += 1
        raise SystemExit(f"ib_{verb}_bw gave no possible rate in {_TRIES} runs; its last was {gbps} Gb/s")

    def latency(self, size: int, iterations: int, port: int) -> float:
        """Return the typical latency of ib_read_lat in microseconds."""
        cells = self._run("ib_read_lat", f"-s {size} -n {iterations} -C", size, port)
        return float(cells[4]) / self.mhz  # bytes, iterations, least, most, typical, ... in cycles

    def _run(self, tool: str, options: str, size: int, port: int) -> list[str]:
        options += f" -p {port} -F -x 1 -m 4096"
        script = f"ip netns exec b {tool} -d rxeb {options} >/dev/null 2>&1 & "
        script += f"until ip netns exec b ss -ltnH 'sport = :{port}' | grep -q .; do sleep 0.1; done; "
        script += f"ip netns exec a {tool} -d rxea {options} 10.9.0.2; wait"
        lines = self.lab.run("", ["sh", "-c", script], timeout_s=60).out.splitlines()
        rows = [line.split() for line in lines if line.split()[:1] == [str(size)]]
        if not rows:
            raise SystemExit("\n".join(lines)[-800:])
        return rows[0]


def counter_mhz(lasting_s: float = 0.2) -> float:
    """Return the frequency of the processor's time stamp counter, which a machine in user mode shares with its host."""
    # rdtsc; shl rdx, 32; or rax, rdx; ret
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f31 48c1e220 4809d0 c3"))
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    began, start = time.perf_counter_ns(), read()
    time.sleep(lasting_s)
    ended, end = time.perf_counter_ns(), read()
    return (end - start) * 1e3 / (ended - began)


def compare(lab: Running, rounds: int) -> None:
    port = 20000
    tools = Perftest(lab)
    print(f"{os.cpu_count()} processors, load {_load()}, counter {tools.mhz:.0f} MHz")
    print(
        f"{'what':22}{'probe':>12}{'perftest':>12}{'ratio':>8}   medians of {rounds} rounds in turns, each round's ratio"
    )
    for verb, size, count in [
        (v, s, c) for s, c in ((1 << 20, 32), (65536, 256), (4096, 2048)) for v in ("read", "write")
    ]:
        ours, theirs = [], []
        for number in range(rounds):
            port += 1 + _TRIES
            # who is first takes turns too
            for mine in (True, False) if number % 2 else (False, True):
                if mine:
                    ours.append(probe(lab, verb, size, count, port, 6)["payload_gbps"])
                else:
                    theirs.append(tools.rate(verb, size, count * 6 // QPS, port + 1))
        _line(f"{verb} {size} B", ours, theirs, "Gb/s")
    mine, other, clock = [], [], []
    for _ in range(rounds):
        port += 1 + _TRIES
        row = probe(lab, "read", 64, 1, port, 1000)
        mine.append(row["completion_s"]["p50"] * 1e6)
        clock.append(row["clock_cost_s"] * 1e6)
        other.append(tools.latency(64, 1000, port + 1))
    _line("read 64 B latency", mine, other, "us")
    print(f"of the probe's, {statistics.median(clock):.1f} us for reading the clock are taken off; load {_load()}")
    if tools.discarded:
        print(f"{tools.discarded} impossible rates of perftest were thrown away and asked for again")


def _line(what: str, ours: list[float], theirs: list[float], unit: str) -> None:
    """Print medians, and the median of the ratios of each round: what else the machine did then slowed both."""
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    a, b = statistics.median(ours), statistics.median(theirs)
    each = " ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"{what:22}{a:>7.3f} {unit:4}{b:>7.3f} {unit:4}{statistics.median(ratios):>8.2f}   {each}", flush=True)


def _load() -> str:
    return " ".join(f"{one:.1f}" for one in os.getloadavg())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    started = launch(Lab("bench-rdma", (), ()), Path(tempfile.mkdtemp()), engine="uml")
    try:
        started.running.run("", ["sh", "-c", BUILD]).check()
        compare(started.running, rounds)
    finally:
        started.running.stop()


if __name__ == "__main__":
    main()
