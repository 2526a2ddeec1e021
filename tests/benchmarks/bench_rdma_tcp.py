"""The probe's TCP back-end against Mooncake's transfer_engine_bench over TCP, in turns. Not a test: prints ratios.

    pip install mooncake-transfer-engine-non-cuda      in any environment; or name its bench with --mooncake PATH
    python tests/benchmarks/bench_rdma_tcp.py [--mooncake PATH] [--rounds 3]

Both ends of both run in one network namespace of this machine, over its loopback. Mooncake has one thread per task with
`batch` requests each; the probe has one stream per thread. Both count payload one way, GB = 10^9 bytes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from validators.agents.agent import LocalAgent, run_program
from validators.rdma.launch import MODULE, PACKAGES

SPACE = "kvfabric-bench-tcp"
THREADS = 4
BYTES = 32 << 20
_LISTENING = re.compile(r"listening on (\S+:\d+)")
_RATE = re.compile(r"throughput ([\d.]+) GB/s")


def probe(verb: str, size: int, port: int, seconds: float) -> float:
    """Return GB/s of our TCP back-end."""
    agent = LocalAgent(namespace=SPACE, python=sys.executable)
    common = {"backend": "tcp", "port": port, "deadline_s": 60}
    passive = {**common, "role": "serve", "open": {"address": "127.0.0.1"}, "listen": "127.0.0.1"}
    identity = {"model": "bench", "precision": "fp16", "kernel_config": "k", "generation": 1, "content": "x"}
    active = {
        **common, "role": "drive", "open": {"address": "127.0.0.1"}, "peer": "127.0.0.1", "scenario": "transfer",
        "verb": verb, "workload": {"groups": [[size, BYTES // size]]}, "identity": identity, "repeats": 3,
        "duration_s": seconds, "qps": THREADS, "depth": 64,
    }  # fmt: skip
    with ThreadPoolExecutor(2) as pool:
        serve = pool.submit(run_program, agent, PACKAGES, MODULE, passive, 90)
        row: dict[str, Any] = pool.submit(run_program, agent, PACKAGES, MODULE, active, 90).result()
        serve.result()
    if "error" in row:
        raise SystemExit(str(row["error"]))
    return float(row["payload_gbps"]) / 8


def mooncake(bench: str, verb: str, size: int, seconds: int) -> float:
    """Return GB/s of Mooncake's bench, or raise SystemExit with what it said."""
    inside = ["ip", "netns", "exec", SPACE, bench]
    common = ["--metadata_server=P2PHANDSHAKE", "--protocol=tcp", "--local_server_name=127.0.0.1", "--auto_discovery=false",
              "--buffer_size=268435456", f"--block_size={size}"]  # fmt: skip
    environment = {**os.environ, "GLOG_logtostderr": "1"}
    with tempfile.TemporaryFile("w+") as log:
        target = subprocess.Popen([*inside, *common, "--mode=target"], stdout=log, stderr=log, env=environment)
        try:
            segment = _segment(target, log)
            argv = [
                *common,
                "--mode=initiator",
                f"--segment_id={segment}",
                f"--operation={verb}",
                f"--threads={THREADS}",
            ]
            argv += [f"--batch_size={max(1, min(128, (8 << 20) // size))}", f"--duration={seconds}"]
            done = subprocess.run(
                [*inside, *argv], capture_output=True, text=True, timeout=60, check=False, env=environment
            )
        finally:
            target.kill()
            target.wait()
    said = done.stdout + done.stderr
    if not (found := _RATE.search(said)):
        raise SystemExit(f"transfer_engine_bench gave no rate (exit {done.returncode}): {said[-800:]}")
    return float(found[1])


def _segment(target: subprocess.Popen, log: Any) -> str:
    deadline = time.monotonic() + 20
    said = ""
    while time.monotonic() < deadline and target.poll() is None:
        log.seek(0)
        said = log.read()
        if found := _LISTENING.search(said):
            time.sleep(0.5)
            return found[1]
        time.sleep(0.1)
    raise SystemExit(f"transfer_engine_bench did not start as a target: {said[-800:]}")


def find_bench(named: str) -> str:
    """Return the bench: the named one, one on the PATH, or one beside this interpreter; empty when there is none."""
    beside = Path(sys.executable).with_name("transfer_engine_bench")
    return named or shutil.which("transfer_engine_bench") or (str(beside) if beside.exists() else "")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mooncake", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    asked = parser.parse_args()
    bench = find_bench(asked.mooncake)
    if os.geteuid():
        print("skipped: network namespaces need root")
        return
    if not bench:
        print(
            "skipped: no transfer_engine_bench here (pip install mooncake-transfer-engine-non-cuda, or --mooncake PATH)"
        )
        return
    subprocess.run(["ip", "netns", "add", SPACE], check=True)
    try:
        subprocess.run(["ip", "-n", SPACE, "link", "set", "lo", "up"], check=True)
        compare(bench, asked.rounds, asked.seconds)
    finally:
        subprocess.run(["ip", "netns", "delete", SPACE], check=False)


def compare(bench: str, rounds: int, seconds: int) -> None:
    print(f"{'what':20}{'probe':>13}{'mooncake':>13}{'ratio':>8}   {THREADS} streams, {rounds} rounds in turns")
    port = 21000
    for size in (65_536, 1 << 20):
        for verb in ("read", "write"):
            ours, theirs = [], []
            for _ in range(rounds):
                port += 1
                ours.append(probe(verb, size, port, seconds))
                theirs.append(mooncake(bench, verb, size, seconds))
            mine, other = statistics.median(ours), statistics.median(theirs)
            print(
                f"{verb + ' ' + str(size) + ' B':20}{mine:>8.3f} GB/s{other:>8.3f} GB/s{mine / other:>8.2f}", flush=True
            )


if __name__ == "__main__":
    main()
