"""Real packets through a rendered nftables.conf, in network namespaces of their own.

Kernels without VRF devices can run this too: tunnels and VRFs are left out, a veth stands where a tenant's bridge is,
and plain policy routing does what the VRFs would. The whole path is the lab's business.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.gateway.served import served
from fabric.render import gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.external

OUTSIDE = "198.51.100.1"
SERVE = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall("{} {}\\n".format(*self.client_address).encode())
        while (d := self.request.recv(99)): self.request.sendall(d)
s = socketserver.ThreadingTCPServer(("0.0.0.0", int(sys.argv[1])), Echo)
s.daemon_threads = True
print("ready", flush=True)
s.serve_forever()
"""
ASK = """
import socket, sys
source, target, port = sys.argv[1:4]
s = socket.socket(); s.settimeout(1.5); s.bind((source, int(sys.argv[4])))
try:
    s.connect((target, int(port))); print(s.makefile().readline().strip())
except OSError as e: print("no:", type(e).__name__)
"""
HOLD = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 3, (sys.argv[3], 0)); s.makefile().readline()
print("open", flush=True)
for line in sys.stdin:
    s.sendall(b"x"); print(s.recv(9).decode(), flush=True)
"""
# one packet of an IP protocol, then the ICMP error that comes for it: type and code, or nothing
PROTOCOL = """
import socket, struct, sys
source, target, protocol, payload = sys.argv[1], sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
errors = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); errors.settimeout(1.5)
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol); s.bind((source, 0)); s.sendto(payload, (target, 0))
try:
    while True:
        packet = errors.recv(256); icmp = packet[(packet[0] & 15) * 4:]
        # the quoted header names the protocol that was sent
        if icmp[0] == 3 and icmp[8 + 9] == protocol: print(icmp[0], icmp[1]); break
except TimeoutError: print("silence")
"""


class Rig:
    """The gateway with two tenants that have the same addresses, and the outside."""

    def __init__(self, plan: Plan, name: str, folder: Path) -> None:
        self.plan, self.name = plan, name
        self.prefix = f"kvgw{os.getpid()}-"
        self.tenants = {item.tenant.name: item for item in served(plan, plan.gateways[name])}
        self.rules = folder / "nftables.conf"
        self.rules.write_text(gateway.render(plan, name)["nftables.conf"])

    def ns(self, node: str) -> str:
        return self.prefix + node

    def ip(self, node: str, *words: str) -> None:
        subprocess.run(["ip", "-n", self.ns(node), *words], check=True, capture_output=True)

    def run(self, node: str, *argv: str) -> str:
        command = ["ip", "netns", "exec", self.ns(node), *argv]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout

    def ask(self, node: str, target: str, port: int, source: str, source_port: int = 0) -> str:
        return self.run(node, "python3", "-c", ASK, source, target, str(port), str(source_port)).strip()

    def start(self, node: str, code: str, *argv: str) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", self.ns(node), "python3", "-c", code, *argv]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout
        assert process.stdout.readline()
        return process

    def up(self) -> None:
        for node in ("gw", "out", *self.tenants):
            subprocess.run(["ip", "netns", "add", self.ns(node)], check=True)
            self.ip(node, "link", "set", "lo", "up")
        link = self.plan.links[self.plan.gateways[self.name].externals[0]]
        near, far = link.a.address, link.b.address
        self._cable("gw", "ex0", near, "out", far)
        self.ip("out", "addr", "add", f"{OUTSIDE}/32", "dev", "lo")
        self.ip("out", "route", "add", "203.0.113.0/24", "via", near.partition("/")[0])
        for name, item in self.tenants.items():
            self._cable("gw", item.bridge, "169.254.1.0/31", name, "169.254.1.1/31")
            for server in self.plan.servers.values():
                for service in server.services:
                    if service.tenant == name:
                        self.ip(name, "addr", "add", f"{service.address}/32", "dev", "lo")
            self.ip(name, "route", "add", "default", "via", "169.254.1.0")
            table = str(item.table)
            self.ip("gw", "route", "add", "10.1.0.0/24", "via", "169.254.1.1", "dev", item.bridge, "table", table)
            self.ip("gw", "route", "add", "default", "via", far.partition("/")[0], "dev", "ex0", "table", table)
            self.ip("gw", "rule", "add", "pref", "500", "iif", "ex0", "fwmark", str(item.number), "lookup", table)
            self.ip("gw", "rule", "add", "pref", "600", "iif", item.bridge, "lookup", table)
            # a VRF takes the gateway's own ICMP answers back to who they are for; here the mark does
            self.ip("gw", "rule", "add", "pref", "700", "iif", "lo", "fwmark", str(item.number), "lookup", table)
        self.run("gw", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.fwmark_reflect=1")
        settings = gateway.render(self.plan, self.name)["sysctl.conf"].splitlines()
        timers = [line.replace(" ", "") for line in settings if line.startswith("net.netfilter") and "timeout" in line]
        self.run("gw", "sysctl", "-qw", *timers)
        done = subprocess.run(
            ["ip", "netns", "exec", self.ns("gw"), "nft", "-f", str(self.rules)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def _cable(self, node: str, port: str, address: str, other: str, far: str) -> None:
        command = ["ip", "link", "add", port, "netns", self.ns(node), "type", "veth", "peer", "name", "eth0", "netns"]
        subprocess.run([*command, self.ns(other)], check=True)
        for where, name, text in ((node, port, address), (other, "eth0", far)):
            self.ip(where, "addr", "add", text, "dev", name)
            self.ip(where, "link", "set", name, "up")

    def down(self) -> None:
        for node in ("gw", "out", *self.tenants):
            subprocess.run(["ip", "netns", "del", self.ns(node)], check=False, capture_output=True)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if not all(map(shutil.which, ("ip", "nft", "conntrack", "sysctl"))):
        pytest.skip("needs ip, nft, conntrack and sysctl")
    found = Rig(load_plan("lab"), "gw-01", tmp_path_factory.mktemp("nat"))
    processes: list[subprocess.Popen[str]] = []
    try:
        found.up()
        for node, port in (("out", 80), ("acme", 8443), ("acme", 22), ("globex", 8443)):
            processes.append(found.start(node, SERVE, str(port)))
        yield found
    finally:
        for process in processes:
            process.kill()
            process.wait()
        found.down()


@contextmanager
def _held(rig: Rig, node: str, target: str, port: int, source: str) -> Iterator[subprocess.Popen[str]]:
    process = rig.start(node, HOLD, target, str(port), source)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _echo(process: subprocess.Popen[str]) -> str:
    assert process.stdin
    assert process.stdout
    process.stdin.write("go\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_tenants_with_one_address_leave_as_their_own_share(rig: Rig) -> None:
    acme = rig.ask("acme", OUTSIDE, 80, "10.1.0.1", 40_000).split()
    globex = rig.ask("globex", OUTSIDE, 80, "10.1.0.1", 40_000).split()
    assert acme[0] in {f"203.0.113.{n}" for n in range(4)}
    assert globex[0] in {f"203.0.113.{n}" for n in range(12, 16)}
    assert acme[1] == globex[1] == "40000"


def test_forwarded_ports_reach_their_host_and_show_the_client(rig: Rig) -> None:
    assert rig.ask("out", "203.0.113.20", 443, OUTSIDE, 41_000) == f"{OUTSIDE} 41000"
    assert rig.ask("out", "203.0.113.20", 2222, OUTSIDE, 41_001) == f"{OUTSIDE} 41001"


@pytest.mark.parametrize(("address", "port"), [("203.0.113.20", 8443), ("203.0.113.0", 8443), ("203.0.113.8", 8443)])
def test_what_is_not_declared_is_not_reached(rig: Rig, address: str, port: int) -> None:
    assert rig.ask("out", address, port, OUTSIDE).startswith("no:")


def test_static_works_both_ways_and_keeps_no_state(rig: Rig) -> None:
    rig.run("gw", "conntrack", "-F")
    assert rig.ask("out", "203.0.113.30", 8443, OUTSIDE, 42_000) == f"{OUTSIDE} 42000"
    assert rig.ask("acme", OUTSIDE, 80, "10.1.0.17", 42_001) == "203.0.113.30 42001"
    assert "10.1.0.17" not in rig.run("gw", "conntrack", "-L")


def test_hosts_reach_a_public_address_of_their_own_tenant(rig: Rig) -> None:
    assert rig.ask("acme", "203.0.113.20", 443, "10.1.0.17").startswith("203.0.113.")


def test_private_space_does_not_leave(rig: Rig) -> None:
    assert rig.ask("acme", "10.200.0.1", 80, "10.1.0.1").startswith("no:")
    counter = rig.run("gw", "nft", "list", "counter", "ip", "kvfabric", "drop.private.acme")
    assert "packets 0" not in counter


def test_idle_timeout_is_the_exposures(rig: Rig) -> None:
    with (
        _held(rig, "out", "203.0.113.20", 443, OUTSIDE),
        _held(rig, "acme", OUTSIDE, 80, "10.1.0.1"),
    ):
        flows = [
            line.split()
            for line in rig.run("gw", "conntrack", "-L", "-p", "tcp", "--state", "ESTABLISHED").splitlines()
        ]
    left = {words[5].removeprefix("dst="): int(words[2]) for words in flows if words[0] == "tcp"}
    assert 590 < left["203.0.113.20"] <= 600
    assert 110 < left[OUTSIDE] <= 120


def test_a_drained_tenant_keeps_its_flows_and_gets_no_new_one(rig: Rig) -> None:
    zone = rig.tenants["acme"].number
    with _held(rig, "acme", OUTSIDE, 80, "10.1.0.1") as flow:
        rig.run("gw", "nft", "add", "element", "ip", "kvfabric", "drained", f"{{ {zone} }}")
        try:
            assert rig.ask("acme", OUTSIDE, 80, "10.1.0.1").startswith("no:")
            assert _echo(flow) == "x"
            assert not rig.ask("globex", OUTSIDE, 80, "10.1.0.1").startswith("no:")
        finally:
            rig.run("gw", "nft", "flush", "set", "ip", "kvfabric", "drained")
    assert not rig.ask("acme", OUTSIDE, 80, "10.1.0.1").startswith("no:")


def test_loading_the_file_again_keeps_flows(rig: Rig) -> None:
    with _held(rig, "acme", OUTSIDE, 80, "10.1.0.1") as flow:
        rig.run("gw", "nft", "-f", str(rig.rules))
        assert _echo(flow) == "x"
        # its own 120 s are gone with the old table; it gets the gateway's longest, not the kernel's five days
        (entry,) = rig.run("gw", "conntrack", "-L", "-p", "tcp", "--state", "ESTABLISHED").splitlines()
        assert 120 < int(entry.split()[2]) <= 600


def test_a_flow_of_another_gateway_is_reset_at_once(rig: Rig) -> None:
    with _held(rig, "acme", OUTSIDE, 80, "10.1.0.1") as flow:
        rig.run("gw", "conntrack", "-F")
        assert _echo(flow) == ""


def _packets(rig: Rig, counter: str) -> int:
    words = rig.run("gw", "nft", "list", "counter", "ip", "kvfabric", counter).split()
    return int(words[words.index("packets") + 1])


# with its CRC32c: conntrack finds one without invalid
SCTP_INIT = "9c4000500000000065c5d467" + "0100001400000001000010000001000100000001"


@pytest.mark.parametrize(
    ("protocol", "payload"),
    [(50, "000010000000000100" * 2), (47, "0000080045000000"), (132, SCTP_INIT), (89, "00" * 24)],
    ids=["esp", "gre", "sctp", "ospf"],
)
def test_a_protocol_without_ports_is_counted_and_answered(rig: Rig, protocol: int, payload: str) -> None:
    denied, new = _packets(rig, "denied.acme"), _packets(rig, "new.acme.masquerade")
    assert rig.run("acme", "python3", "-c", PROTOCOL, "10.1.0.1", OUTSIDE, str(protocol), payload).strip() == "3 2"
    assert _packets(rig, "denied.acme") == denied + 1
    assert _packets(rig, "new.acme.masquerade") == new, "it is no new connection"
    assert rig.run("gw", "conntrack", "-L", "-p", str(protocol)) == "", "and takes no room in the flow table"


FLOOD = """
import socket, sys
errors = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); errors.settimeout(0.5)
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 47); s.bind((sys.argv[1], 0))
for n in range(3000): s.sendto(bytes(8), (sys.argv[2], 0))
answers = 0
try:
    while errors.recv(256): answers += 1
except TimeoutError: print(answers)
"""


def test_a_flood_is_counted_whole_and_answered_a_little(rig: Rig) -> None:
    denied = _packets(rig, "denied.acme")
    answers = int(rig.run("acme", "python3", "-c", FLOOD, "10.1.0.1", OUTSIDE))
    assert _packets(rig, "denied.acme") == denied + 3000
    assert 1 <= answers < 300


def test_an_icmp_query_other_than_echo_is_counted(rig: Rig) -> None:
    denied = _packets(rig, "denied.acme")
    timestamp = "0d00f2ff" + "0000" * 8
    assert rig.run("acme", "python3", "-c", PROTOCOL, "10.1.0.1", OUTSIDE, "1", timestamp).strip() == "silence"
    assert _packets(rig, "denied.acme") == denied + 1
