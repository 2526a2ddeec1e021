"""The counting table in a real kernel: 802.1Qbb frames made by scapy, and bytes of a class, counted at both ends."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess

import pytest

from validators.counters import pfc_frames, watch_table
from validators.counters.readings import BYTES, PAUSE, Key

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
