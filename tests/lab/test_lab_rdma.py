"""RDMA in the lab site: across leaves and not across tenants, its DSCP and ECN on the outer header, a spine lost."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from fabric.build import load_plan
from tests.lab.traffic import frr, packets_in, ping, rdma_read, wait_until
from validators.rdma.places import LabPlaces
from validators.rdma.probe import run_pair
from validators.results import Result, State

pytestmark = pytest.mark.lab

OWNER, READER, STRANGER = ("compute-003", "10.1.0.19"), ("compute-001", "10.1.0.3"), ("compute-002", "10.1.0.3")
TOS = "0x6a"  # the plan's RoCE class: DSCP 26, ECT(0)


def _probe(lab: Any, **changes: Any) -> list[Result]:
    # the transport timer, 4.096 us x 2^18 = 1.1 s, six times, outlives the time in which BFD finds a loss
    asked = {
        "backend": "pyverbs",
        "groups": ((65_536, 16),),
        "qps": 4,
        "repeats": 3,
        "settings": {"timeout": 18},
        **changes,
    }
    ends = (f"{server}:be0-port0" for server, _ in (OWNER, READER))
    return run_pair(load_plan("lab"), LabPlaces(lab), *ends, **asked)


def _read_bw(lab: Any, client: str, port: int) -> Any:
    common = ["-F", "-m", "4096", "-s", "65536", "-n", "200", "-p", str(port)]
    server = lab.start("compute-003", ["timeout", "45", "ib_read_bw", "-d", "compute-003.be0-port0", *common])
    listening = ["ss", "-ltnH", f"sport = :{port}"]
    assert wait_until(lambda: lab.run("compute-003", listening).out.strip() or server.poll() is not None, 15)
    done = lab.run(client, ["timeout", "40", "ib_read_bw", "-d", f"{client}.be0-port0", *common, OWNER[1]])
    server.kill()
    return done


def test_perftest_reads_across_leaves_and_says_how_fast(lab):
    for port in range(18801, 18806):
        done = _read_bw(lab, "compute-001", port)
        assert done.rc == 0, done
        # it prints zeros when its clock cannot be measured on a busy machine, and says so
        if "Correlation coefficient" not in done.err:
            break
    figures = re.search(r"^\s*65536\s+200\s+([\d.]+)\s+([\d.]+)", done.out, re.MULTILINE)
    assert figures, done
    assert 0 < float(figures[2]) < 100_000, done


def test_perftest_reads_nothing_across_tenants(lab):
    assert _read_bw(lab, "compute-002", 18807).rc != 0


def test_pyverbs_reads_across_leaves_and_never_across_tenants(lab):
    assert rdma_read(lab, OWNER, READER, "same") == {"status": "SUCCESS", "same": True}
    # even when told all that a peer has to know: queue pair, address, key
    assert rdma_read(lab, OWNER, STRANGER, "other") == {"status": "RETRY_EXC_ERR", "same": False}


def test_dscp_and_ecn_are_on_the_outer_header_at_the_spine(lab):
    # VXLAN, and inside of it RoCEv2: the inner UDP destination port is 50 bytes further on than the outer ports
    roce = ["tcpdump", "-nn", "-v", "-l", "-i", "any", "-Q", "in", "udp dst port 4789 and udp[52:2] = 4791"]
    captures = {spine: lab.start(spine, ["timeout", "60", *roce]) for spine in ("spine-01", "spine-02")}
    for capture in captures.values():
        capture.wait_for("listening on")
    results = _probe(lab)
    time.sleep(1)
    said = "".join(capture.printed() for capture in captures.values())
    for capture in captures.values():
        capture.kill()
    assert {result.state for result in results} == {State.PASS}, [result.text for result in results]
    seen = re.findall(r"IP \(tos (0x[0-9a-f]+)[^\n]*proto UDP \(17\), length \d+\)\n[^\n]*\.4789:", said)
    assert len(seen) > 200
    assert set(seen) == {TOS}


@dataclass
class Lost:
    spine: str
    results: list[Result]
    bfd: dict[str, Any]
    bgp: dict[str, Any]
    found_after_s: float
    missing: list[str]
    reached: bool
    healed: list[str]


@pytest.fixture(scope="module")
def lost(lab: Any) -> Lost:
    """A spine is cut silently, the one that carries most, while an RDMA READ runs through it."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(_probe, lab, duration_s=9.0)
        before = {spine: packets_in(lab, spine) for spine in ("spine-01", "spine-02")}
        enough = 1000
        assert wait_until(lambda: max(packets_in(lab, s) - n for s, n in before.items()) > enough, 60)
        spine = max(before, key=lambda s: packets_in(lab, s) - before[s])
        port = "Ethernet256" if spine == "spine-01" else "Ethernet264"
        lab.call("cut", target=spine, how="silent")
        try:
            started = time.monotonic()

            def peer() -> dict[str, Any]:
                return next(p for p in frr(lab, "leaf-01", "show bfd peers") if p.get("interface") == port)

            assert wait_until(lambda: peer()["status"] != "up", 15)
            took = time.monotonic() - started
            bfd = peer()
            bgp = frr(lab, "leaf-01", f"show bgp neighbors {port}")[port]
            results = running.result()
            missing = lab.call("status")["missing"]
            reached = ping(lab, "compute-001", OWNER[1], "-I", READER[1])
        finally:
            healed = lab.call("heal")
    assert lab.call("converge", timeout_s=180)["missing"] == []
    return Lost(spine, results, bfd, bgp, took, missing, reached, healed)


def test_spine_loss_is_found_by_bfd(lost: Lost):
    assert lost.bfd["status"] == "down"
    assert lost.bfd["diagnostic"] == "control detection time expired"
    # 3 x 300 ms, and what a loaded machine adds; BGP's own hold timer is 9 s
    assert lost.found_after_s < 6
    assert "BFD" in lost.bgp["lastResetDueTo"]
    assert any("BFD" in text and "control detection time expired" in text for text in lost.missing)
    assert any("BGP" in text and "(BFD" in text for text in lost.missing)
    assert lost.healed == [lost.spine]


def test_spine_loss_leaves_a_running_read_alive(lost: Lost):
    read = next(result for result in lost.results if result.check == "rdma.probe")
    assert read.state is State.PASS, read.text
    assert lost.reached
