"""RDMA probe against perftest on the same Soft-RoCE devices, in the same run, in turns. Not a test: prints ratios.

    python tests/benchmarks/bench_rdma.py [--rounds 3]

Boots the embedded lab's machine without nodes, makes two network namespaces with a veth pair and Soft-RoCE, and ends it.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
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


def perftest(lab: Running, tool: str, size: int, iterations: int, port: int, qps: int) -> float:
    """Return Gb/s of a bandwidth tool, or microseconds (typical) of a latency tool."""
    latency = tool.endswith("lat")
    options = f"-s {size} -n {iterations} -p {port} -F -x 1 -m 4096"
    options += "" if latency else f" -q {qps} -t {DEPTH} --report_gbits"
    script = f"ip netns exec b {tool} -d rxeb {options} >/dev/null 2>&1 & sleep 0.7; "
    script += f"ip netns exec a {tool} -d rxea {options} 10.9.0.2; wait"
    lines = lab.run("", ["sh", "-c", script], timeout_s=60).out.splitlines()
    rows = [line.split() for line in lines if line.split()[:1] == [str(size)]]
    if not rows:
        raise SystemExit("\n".join(lines)[-800:])
    # bytes, iterations, peak, average, rate; and for latency: bytes, iterations, min, max, typical, ...
    return float(rows[0][4 if latency else 3])


def compare(lab: Running, rounds: int) -> None:
    port = 20000
    print(f"{'what':22}{'probe':>12}{'perftest':>12}{'ratio':>8}   of {rounds} rounds in turns")
    for verb, size, count in [
        (v, s, c) for s, c in ((1 << 20, 32), (65536, 256), (4096, 2048)) for v in ("read", "write")
    ]:
        ours, theirs = [], []
        for _ in range(rounds):
            port += 2
            row = probe(lab, verb, size, count, port, 6)
            ours.append(row["payload_gbps"])
            theirs.append(perftest(lab, f"ib_{verb}_bw", size, count * 6 // QPS, port + 1, QPS))
        mine, other = statistics.median(ours), statistics.median(theirs)
        print(f"{verb + ' ' + str(size) + ' B':22}{mine:>7.3f} Gb/s{other:>7.3f} Gb/s{mine / other:>8.2f}", flush=True)
    mine, other = [], []
    for _ in range(rounds):
        port += 2
        mine.append(probe(lab, "read", 64, 1, port, 1000)["completion_s"]["p50"] * 1e6)
        other.append(perftest(lab, "ib_read_lat", 64, 1000, port + 1, 1))
    a, b = statistics.median(mine), statistics.median(other)
    print(f"{'read 64 B latency':22}{a:>9.1f} us{b:>9.1f} us{a / b:>8.2f}")


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
