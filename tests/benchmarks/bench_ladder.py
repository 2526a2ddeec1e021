"""Ladder through a gateway in namespaces, against scapy's own sendp in the same run. Needs root, nft, 2 CPUs.

    taskset -c 0 python tests/benchmarks/bench_ladder.py

Prints ratios, so that a slow host shows as slow on both sides.
"""

from __future__ import annotations

import os
import sys
import time

from validators.connections.controller import AgentProcess
from validators.connections.ladder_judge import climb, judge_ladder, judge_step
from validators.connections.layout import address
from validators.connections.namespace import namespace
from validators.connections.passes import ladder_step
from validators.connections.rig import INSIDE, INSIDE_HOP, OUTSIDE, OUTSIDE_HOP, Rig
from validators.connections.search import Search
from validators.connections.step import StepObservation, StepSpec
from validators.connections.tuples import TupleSpace

SPACE = TupleSpace((address("10.1.1.1"), 64), (1024, 65000), (address("198.18.1.1"), 4), (1, 60000))


def scapy_rate(rig: Rig, count: int = 2000) -> float:
    """Return frames/s of scapy building each frame and sending the list with one sendp."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether
    from scapy.sendrecv import sendp

    with namespace(rig.inside):
        begun = time.perf_counter()
        frames = [
            Ether(src="02:00:00:00:00:08", dst="02:00:00:00:00:09")
            / IP(src="10.1.9.9", dst="198.18.9.9")
            / UDP(sport=1024 + i, dport=9)
            for i in range(count)
        ]
        sendp(frames, iface="tester", verbose=False)
        return count / (time.perf_counter() - begun)


def main() -> None:
    """Run all parts and print."""
    tester = ["taskset", "-c", "0"] if (os.cpu_count() or 1) > 1 else []
    with (
        Rig(own_cpu=True) as rig,
        AgentProcess("tester", tester, python=sys.executable) as agent,
        AgentProcess("gateway", rig.prefix(rig.gateway), python=sys.executable) as gateway,
    ):
        for name, space, net, hop in (("i", rig.inside, INSIDE, INSIDE_HOP), ("o", rig.outside, OUTSIDE, OUTSIDE_HOP)):
            agent.call(
                "open", name=name, interface="tester", netns=space, addresses=net, next_hop=hop, ring_megabytes=64
            )
        runs = iter(range(1, 200))

        def step(protocol: str, rate: float, count: int) -> StepObservation:
            gateway.call("forget", prefix="10.1.0.0/16")
            spec = StepSpec(protocol, count, rate, SPACE, run=next(runs), validate_per_s=min(rate, 80_000))
            return ladder_step(agent, agent, spec, gateway=gateway, inside="i", outside="o")

        for protocol, start in (("udp", 50_000), ("tcp", 15_000)):
            search = Search(start, 400_000, precision=0.1, most_steps=8)
            steps = climb(lambda rate, protocol=protocol: step(protocol, rate, 50_000), search)  # type: ignore[misc]
            print(protocol, judge_ladder("rig", steps, search).text)
            if protocol == "udp":
                slow = scapy_rate(rig)
                print(f"scapy sendp {slow:,.0f} frames/s; ratio {search.passed / slow:.0f}x")
        print(judge_step("concurrent", step("udp", 60_000, 200_000)).text)
        gateway.call("forget", prefix="10.1.0.0/16")


if __name__ == "__main__":
    main()
