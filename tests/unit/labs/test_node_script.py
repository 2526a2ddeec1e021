"""`node.sh`, which brings up a node in every engine: what it does with which file, against programs that only note."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import labs

pytestmark = pytest.mark.unit

SCRIPT = Path(labs.__file__).with_name("node.sh")
DAEMONS = ("mgmtd", "zebra", "staticd", "bfdd", "bgpd")


class Root:
    """A root folder with programs that note how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "etc/kvfabric"
        self.files.mkdir(parents=True)
        (folder / "proc/sys/net/ipv4/conf/all").mkdir(parents=True)
        (folder / "proc/sys/net/core").mkdir()
        (folder / "bin").mkdir()
        (folder / "usr/lib/frr").mkdir(parents=True)
        for name in ("ip", "nft", "vtysh", "haproxy", "rdma", "lldpd"):
            self.program(f"bin/{name}")
        for name in DAEMONS:
            self.program(f"usr/lib/frr/{name}")

    def program(self, path: str, text: str = "", code: int = 0) -> None:
        target = self.folder / path
        name = target.name
        target.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.folder}/calls\n{text}\nexit {code}\n')
        target.chmod(0o755)

    def run(self, step: str, **settings: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        environment = {**os.environ, "KV_ROOT": str(self.folder), "PATH": path, **settings}
        command = ["sh", str(SCRIPT), step]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)

    def calls(self, *names: str) -> list[str]:
        try:
            lines = (self.folder / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if line.split()[0] in names]


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path)


def started(root):
    return [line.split()[0] for line in root.calls(*DAEMONS)]


def test_a_server_without_routing_files_starts_no_routing_and_keeps_no_image_file(root):
    (root.folder / "etc/frr").mkdir()
    (root.folder / "etc/frr/frr.conf").write_text("! from the image\n")
    (root.files / "network.sh").write_text(f"echo network >> {root.folder}/calls\n")
    done = root.run("up")
    assert (done.returncode, done.stdout) == (0, "")
    assert root.calls("network") == ["network"]
    assert started(root) == []
    assert not (root.folder / "etc/frr/frr.conf").exists()


def test_daemons_are_those_of_the_file_in_their_order_with_their_options(root):
    (root.files / "frr.conf").write_text("hostname x\n")
    (root.files / "daemons").write_text('bgpd=yes\nbfdd=no\nzebra_options="  -A 127.0.0.1 -s 90000000"\n')
    assert root.run("up").returncode == 0
    assert started(root) == ["mgmtd", "zebra", "bgpd"]
    assert root.calls("zebra") == [f"zebra -d -A 127.0.0.1 -s 90000000 --log file:{root.folder}/var/log/frr/zebra.log"]
    assert root.calls("vtysh") == ["vtysh -b"]
    assert (root.folder / "etc/frr/vtysh.conf").read_text() == "service integrated-vtysh-config\n"


def test_without_a_daemons_file_a_router_gets_bgp_bfd_and_static_routes(root):
    (root.files / "frr.conf").write_text("hostname x\n")
    root.run("up")
    assert started(root) == list(DAEMONS)


def test_frr_without_mgmtd_is_fine_and_without_bgpd_is_not(root):
    (root.files / "frr.conf").write_text("hostname x\n")
    (root.folder / "usr/lib/frr/mgmtd").unlink()
    assert root.run("up").returncode == 0
    (root.folder / "usr/lib/frr/bgpd").unlink()
    done = root.run("up")
    assert done.returncode == 1
    assert "bgpd is not in this image" in done.stderr


def test_what_frr_refuses_is_a_complaint_and_what_is_harmless_is_not(root):
    (root.files / "frr.conf").write_text("hostname x\n")
    text = "echo 'line 7: % Unknown command: foo'; echo '% Graceful restart configuration changed, reset'"
    root.program("bin/vtysh", text)
    assert root.run("routing").stdout == "! frr.conf: line 7: % Unknown command: foo\n"
    root.program("bin/vtysh", "echo nothing known", 3)
    assert root.run("routing").stdout.startswith("! frr.conf: vtysh exit 3: nothing known")


def test_sysctls_of_the_namespace_are_written_and_those_of_the_machine_are_not(root):
    lines = ["# x=1", "net.ipv4.ip_forward = 1  # why", "-net.core.rmem_max=5", "kernel.panic=1", "net/ipv4/conf/all/a = 4 5", "net.no.such = 2"]  # fmt: skip
    (root.files / "sysctl.conf").write_text("\n".join(lines) + "\n")
    done = root.run("up")
    assert (root.folder / "proc/sys/net/ipv4/ip_forward").read_text() == "1\n"
    assert (root.folder / "proc/sys/net/ipv4/conf/all/a").read_text() == "4 5\n"
    assert not (root.folder / "proc/sys/net/core/rmem_max").exists()
    assert done.stdout == "! sysctl net/no/such=2 was refused\n"


def test_programs_go_on_the_path(root):
    (root.files / "gatewayctl").write_text("#!/usr/bin/env python3\n")
    (root.files / "notes").write_text("words\n")
    root.run("up")
    placed = sorted(path.name for path in (root.folder / "usr/local/sbin").iterdir())
    assert placed == ["gatewayctl"]
    assert os.access(root.folder / "usr/local/sbin/gatewayctl", os.X_OK)


@pytest.mark.parametrize(
    ("name", "program", "words"),
    [
        ("network.sh", "", "network.sh failed (exit 4): no such port"),
        ("nftables.conf", "bin/nft", "nftables.conf was refused: no such port"),
        ("haproxy.cfg", "bin/haproxy", "haproxy did not start: no such port"),
        ("frr.conf", "usr/lib/frr/zebra", "zebra -A 127.0.0.1 did not start (exit 4)"),
    ],
)
def test_a_part_that_fails_makes_the_node_useless_and_says_so(root, name, program, words):
    fails = "echo no such port >&2; exit 4\n"
    (root.files / name).write_text(fails)
    if program:
        root.program(program, fails)
    done = root.run("up")
    assert done.returncode == 1
    assert words in done.stderr


def test_a_soft_roce_device_that_cannot_be_is_a_complaint(root):
    root.program("bin/rdma", "echo no rxe >&2", 1)
    assert "! no Soft-RoCE on be0: no rxe" in root.run("up", KV_RDMA="be0").stdout
    root.program("bin/rdma", '[ "$1" = dev ] && exit 0; echo Too many open files in system >&2', 1)
    assert "! no Soft-RoCE on be0: another lab of this kernel has a device" in root.run("up", KV_RDMA="be0").stdout


def test_a_container_s_way_out_is_taken_away(root):
    root.run("up", KV_MANAGEMENT="eth0")
    assert root.calls("ip")[:2] == ["ip route del default dev eth0", "ip -6 route del default dev eth0"]


@pytest.mark.parametrize(("settings", "left"), [({"KV_MANAGEMENT": "eth0"}, False), ({}, True)])
def test_a_container_keeps_no_device_file_of_a_neighbour(root, settings, left):
    # other nodes share one folder of device files
    other = root.folder / "dev/infiniband/uverbs0"
    other.parent.mkdir(parents=True)
    other.touch()
    root.run("up", **settings)
    assert other.exists() is left


def test_no_files_at_all_is_an_error(root):
    root.files.rmdir()
    assert (root.run("up").returncode, root.run("dance").returncode) == (1, 1)


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_other_shells_do_the_same(root, shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    (root.files / "sysctl.conf").write_text("net.ipv4.ip_forward = 1\nnet.no.such = 2\n")
    environment = {**os.environ, "KV_ROOT": str(root.folder), "PATH": f"{root.folder}/bin:{os.environ['PATH']}"}
    command = [shell, *(["sh"] if shell == "busybox" else []), str(SCRIPT), "up"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "! sysctl net/no/such=2 was refused\n")


def test_ports_that_are_not_there_are_made_dark_in_one_go_and_get_no_rdma(root):
    root.program("bin/ip", f"cat >> {root.folder}/batch")
    root.run("up", KV_PORTS="lo kv-x0 kv-x1", KV_RDMA="kv-x0")
    assert root.calls("ip") == ["ip -batch -"]
    assert (root.folder / "batch").read_text() == "".join(
        f"link add {port} mtu 9216 type dummy\nlink set {port} carrier off\n" for port in ("kv-x0", "kv-x1")
    )
    assert root.calls("rdma") == []


def test_lldp_speaks_the_names_of_the_plan_on_cables_only(root):
    assert root.run("lldp", KV_PORTS="Ethernet0 Ethernet8").returncode == 0
    text = (root.folder / "run/lldpd.conf").read_text()
    assert f"system hostname {os.uname().nodename}" in text
    assert "interface pattern Ethernet0,Ethernet8" in text
    assert "portidsubtype ifname" in text
    root.run("up", KV_PORTS="lo kv-x0")
    assert "interface pattern lo\n" in (root.folder / "run/lldpd.conf").read_text()
    wait_for(lambda: len(root.calls("lldpd")) == 2)
    assert root.calls("lldpd") == [f"lldpd -O {root.folder}/run/lldpd.conf"] * 2


def test_a_node_without_cables_or_without_lldpd_starts_none(root):
    assert root.run("lldp").returncode == 0
    assert not (root.folder / "run/lldpd.conf").exists()


def wait_for(happened):
    for _ in range(100):
        if happened():
            return
        time.sleep(0.05)
