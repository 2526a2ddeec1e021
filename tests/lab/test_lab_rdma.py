"""RDMA in the lab site: across leaves and not across tenants, its DSCP and ECN on the outer header, a spine lost."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.traffic import Reading, frr, packets_in, ping, wait_until

pytestmark = pytest.mark.lab

OWNER, READER, STRANGER = ("compute-003", "10.1.0.19"), ("compute-001", "10.1.0.3"), ("compute-002", "10.1.0.3")
TRAFFIC_CLASS = 26 << 2 | 0b10  # the plan's RoCE class: DSCP 26, ECT(0)
# the transport timer, 4.096 us x 2^18 = 1.1 s, six times, outlives the time in which BFD finds a loss
PATIENT = {"timeout": 18, "retry_cnt": 6}


def _read(lab: Any, owner: tuple[str, str], reader: tuple[str, str], **settings: int) -> dict[str, Any]:
    """One READ or a few."""
    reading = Reading(lab, owner, reader, **settings)
    reading.started()
    return reading.row()


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
    row = _read(lab, OWNER, READER, **PATIENT)
    assert (row["status"], row["same"]) == ("SUCCESS", True)
    # even when told all that a peer has to know: queue pair, address, key
    row = _read(lab, OWNER, STRANGER, timeout=14, retry_cnt=4)
    assert (row["status"], row["same"], row["reads"]) == ("RETRY_EXC_ERR", False, 0)


def test_dscp_and_ecn_are_on_the_outer_header_at_the_spine(lab):
    # VXLAN, and inside of it RoCEv2: the inner UDP destination port is 50 bytes further on than the outer ports
    roce = ["tcpdump", "-nn", "-v", "-l", "-i", "any", "-Q", "in", "udp dst port 4789 and udp[52:2] = 4791"]
    captures = {spine: lab.start(spine, roce) for spine in ("spine-01", "spine-02")}
    for capture in captures.values():
        capture.wait_for("listening on")
    row = _read(lab, OWNER, READER, traffic_class=TRAFFIC_CLASS, **PATIENT)
    time.sleep(1)
    said = "".join(capture.printed() for capture in captures.values())
    for capture in captures.values():
        capture.kill()
    assert row["status"] == "SUCCESS"
    seen = re.findall(r"IP \(tos (0x[0-9a-f]+)[^\n]*proto UDP \(17\), length \d+\)\n[^\n]*\.4789:", said)
    assert len(seen) >= 17  # a READ of 64 KiB is a request and sixteen packets
    assert set(seen) == {hex(TRAFFIC_CLASS)}


@dataclass
class Lost:
    spine: str
    port: str
    row: dict[str, Any]
    bfd: dict[str, Any]
    bgp: dict[str, Any]
    missing: list[str]
    reached: bool
    healed: list[str]


@pytest.fixture(scope="module")
def lost(lab: Any) -> Lost:
    """A spine is cut silently, the one that carries most, while an RDMA READ runs through it."""
    reading = Reading(lab, OWNER, READER, **PATIENT)
    reading.started()
    before = {spine: packets_in(lab, spine) for spine in ("spine-01", "spine-02")}
    time.sleep(1)
    spine = max(before, key=lambda name: packets_in(lab, name) - before[name])
    port = "Ethernet256" if spine == "spine-01" else "Ethernet264"

    def peer() -> dict[str, Any]:
        return next(p for p in frr(lab, "leaf-01", "show bfd peers") if p.get("interface") == port)

    def neighbor() -> dict[str, Any]:
        found: dict[str, Any] = frr(lab, "leaf-01", f"show bgp neighbors {port}")[port]
        return found

    lab.call("cut", target=spine, how="silent")
    try:
        assert wait_until(lambda: peer()["status"] == "down", 60)
        bfd = peer()
        assert wait_until(lambda: neighbor()["bgpState"] != "Established", 60)
        bgp = neighbor()
        time.sleep(3)
        row = reading.row()
        missing = lab.call("status")["missing"]
        reached = ping(lab, "compute-001", OWNER[1], "-I", READER[1])
    finally:
        healed = lab.call("heal")
    assert lab.call("converge", timeout_s=180)["missing"] == []
    return Lost(spine, port, row, bfd, bgp, missing, reached, healed)


def test_spine_loss_is_found_by_bfd(lost: Lost):
    assert lost.bfd["status"] == "down"
    assert lost.bfd["diagnostic"] == "control detection time expired"
    # it was BFD that ended the session, not the hold timer
    assert lost.bgp.get("lastNotificationReason") == "Cease/BFD Down", lost.bgp
    assert any("BFD" in text and "control detection time expired" in text for text in lost.missing)
    assert any(f"BGP l2VpnEvpn to {lost.port}" in text for text in lost.missing)
    assert lost.healed == [lost.spine]


def test_spine_loss_leaves_a_running_read_alive(lost: Lost):
    assert (lost.row["status"], lost.row["same"]) == ("SUCCESS", True)
    # it stood still while BFD found the loss, and went on: the cut was in its way
    assert lost.row["longest_s"] > 0.3
    assert lost.reached
