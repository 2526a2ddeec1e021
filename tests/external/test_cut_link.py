"""The cut of the link-lost scenario in a real kernel: the link goes down, and all that went with it comes back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from validators.rdma.host.serve import _CUT

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip (iproute2)"),
]
SPACE = "kvfabric-cut"
# policy routing as our servers have it: a table per port; another route in the main table; both families
SETUP = """
set -e
ip link add be0 type veth peer name leaf; ip link set lo up; ip link set leaf up; ip link set be0 up
ip address add 10.1.0.21/31 dev be0; ip address add 2001:db8::5/64 dev be0 nodad
ip route replace default via 10.1.0.20 dev be0 src 10.1.0.21 table 101
ip route add 10.9.0.0/16 via 10.1.0.20
ip -6 route add 2001:db8:9::/48 via 2001:db8::1
"""
SHOW = "ip -4 route show table all dev be0; ip -6 route show table all dev be0; ip address show dev be0 scope global"


def _inside(command: str) -> str:
    argv = ["ip", "netns", "exec", SPACE, "sh", "-c", command]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def space():
    subprocess.run(["ip", "netns", "delete", SPACE], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "add", SPACE], check=True)
    _inside(SETUP)
    yield
    subprocess.run(["ip", "netns", "delete", SPACE], check=True)


def _routes() -> list[str]:
    lines = _inside(SHOW).replace(" nodad", "").replace(" tentative", "").splitlines()
    return sorted(line.strip() for line in lines if "fe80" not in line and "lft" not in line)


def test_routes_of_every_table_and_addresses_come_back(space) -> None:
    before = _routes()
    assert any("table 101" in line for line in before)
    argv = ["ip", "netns", "exec", SPACE, sys.executable, "-c", _CUT, "be0", "0", "1.5"]
    cut = subprocess.Popen(argv)
    deadline = time.monotonic() + 20
    while "state UP" in _inside("ip link show be0") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any("table 101" in line for line in _routes()), "the cut takes the routes away, or this proves nothing"
    assert cut.wait(30) == 0
    while _routes() != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _routes() == before
