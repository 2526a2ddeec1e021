"""The counting table in a real kernel: 802.1Qbb frames made by scapy, and bytes of a class, counted at both ends."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from validators.agents.agent import LocalAgent
from validators.counters import pfc_frames, watch_table
from validators.counters.proof import Frames, prove_counting
from validators.counters.readings import BYTES, PAUSE, Key
from validators.results import State

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft (nftables)"),
]
SPACE = "kvfabric-table"
SEND = """
import socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind((sys.argv[1], 0))
for line in sys.stdin:
    raw.send(bytes.fromhex(line))
"""


def _inside(command: str, stdin: str = "") -> str:
    argv = ["ip", "netns", "exec", SPACE, "sh", "-c", command]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def link():
    subprocess.run(["ip", "netns", "delete", SPACE], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "add", SPACE], check=True)
    _inside("ip link add near type veth peer name far; ip link set near up; ip link set far up")
    yield
    subprocess.run(["ip", "netns", "delete", SPACE], check=True)


def _send(frames: list[bytes]) -> None:
    _inside(f"python3 -c '{SEND}' near", "".join(frame.hex() + "\n" for frame in frames))


def test_pause_resume_and_class_are_counted_on_both_ends(link) -> None:
    _inside(watch_table.install(["near", "far"], {3: [26], 6: [48]}))
    source = "02:00:00:00:00:01"
    pause, resume = pfc_frames.craft(source, {3: 65535}), pfc_frames.craft(source, {3: 0, 4: 7})
    other = pause[:14] + b"\x00\x01" + pause[16:]  # a global pause frame (802.3x) is no PFC frame
    packet = b"\x45\x68" + (20).to_bytes(2) + bytes(4) + b"\x40\x11" + bytes(2) + socket.inet_aton("192.0.2.1") * 2
    marked = bytes(6) + bytes(6) + b"\x08\x00" + packet
    _send([pause] * 9 + [resume] * 2 + [other] * 5 + [marked] * 3)
    found = {key: value for key, value in watch_table.parse(_inside(watch_table.read())).items() if value}
    for port, way in (("near", "tx"), ("far", "rx")):
        assert found.pop(Key(port, PAUSE, way, 3)) == 9
        assert found.pop(Key(port, PAUSE, way, 4)) == 2
        assert found.pop(Key(port, watch_table.RESUME, way, 3)) == 2
        assert found.pop(Key(port, BYTES, way, 3)) >= 60
        assert found.pop(Key(port, "packets", way, 3)) == 3
    assert not found


def test_the_table_can_be_put_twice_and_leaves_nothing(link) -> None:
    for _ in range(2):
        _inside(watch_table.install(["near"], {3: [26]}))
    _inside(watch_table.remove())
    _inside(watch_table.remove())
    assert _inside("nft list ruleset") == ""


NEAR, FAR = "kvfabric-near", "kvfabric-far"


@pytest.fixture
def cable(lab_plan):
    """A server's link of the lab site, its ends in a namespace each."""
    link = lab_plan.link_at["compute-001", "be0-port0"]
    ends = {"compute-001": NEAR, link.far("compute-001").device: FAR}
    for space in (NEAR, FAR):
        subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "add", space], check=True)
    far = link.far("compute-001").interface
    argv = ["ip", "link", "add", "be0-port0", "netns", NEAR, "type", "veth", "peer", "name", far, "netns", FAR]
    subprocess.run(argv, check=True)
    for space, port in ((NEAR, "be0-port0"), (FAR, far)):
        subprocess.run(["ip", "-n", space, "link", "set", port, "up"], check=True)
    yield link, lambda device: LocalAgent(device, ends[device], sys.executable)
    for space in (NEAR, FAR):
        subprocess.run(["ip", "netns", "delete", space], check=True)


def test_the_counting_path_is_proved_from_end_to_end(cable, lab_plan) -> None:
    link, agent_of = cable
    result = prove_counting(lab_plan, link, "compute-001", agent_of, Frames({3: 20, 4: 5}, {3: 2}))
    assert result.state is State.PASS, result.text
    assert result.labels["tenant"] == "acme"
    assert {m.name: m.value for m in result.measurements} == {
        "pause frames priority 3": 20,
        "pause frames priority 4": 5,
    }
    done = agent_of("compute-001").execute(["nft", "list", "ruleset"], b"", 20)
    assert done.stdout == b""


def test_a_link_that_loses_pause_frames_is_found(cable, lab_plan) -> None:
    link, agent_of = cable
    far = link.far("compute-001")
    lose = f'table netdev lose {{ chain in {{ type filter hook ingress device "{far.interface}" priority -500; ether type 0x8808 @nh,0,16 0x0101 limit rate over 1/minute burst 9 packets drop; }}; }}'
    agent_of(far.device).execute(["nft", lose], b"", 20)
    result = prove_counting(lab_plan, link, "compute-001", agent_of, Frames({3: 20}, {3: 2}))
    assert result.state is State.FAIL
    assert f"{far.interface} rx pause frames priority 3" in result.text
    gone = prove_counting(
        lab_plan, link, "compute-001", lambda device: LocalAgent(device, "no-such-space"), Frames({3: 1}, {})
    )
    assert gone.state is State.ERROR
