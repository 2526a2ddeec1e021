"""The lab verbs as a user types them, on one small lab: programs, shell, capture, impairments, faults, LLDP."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from fabric.problem import CouldNotRunError
from labs import engines
from labs.client import attach
from tests.conftest import read_until

pytestmark = pytest.mark.lab

KVFABRIC = [sys.executable, "-c", "from fabric.cli.main import main; main()", "lab"]
PORT, LINK_FAR = "leaf-01:Ethernet256", "spine-01:Ethernet0"


@pytest.fixture(scope="module", autouse=True)
def lab(tmp_path_factory):
    """A lab that `lab up` started and left running."""
    patch = pytest.MonkeyPatch()
    root = Path(f"/run/kvverbs-{os.getpid()}") if os.geteuid() == 0 else tmp_path_factory.mktemp("s")
    patch.setenv("KVFABRIC_LAB_STATE", str(root))
    try:
        engines.choose("uml")
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    done = _lab("up", "lab", "--slice", "leaves=1,spines=1,gateways=1,servers=2", "--engine", "uml", "--name", "verbs")
    assert done.returncode == 0, done.stderr
    with attach("verbs") as running:
        yield running
    assert _lab("down").returncode == 0
    assert not list(root.iterdir())
    shutil.rmtree(root)
    patch.undo()


def _lab(*argv):
    return subprocess.run(
        [*KVFABRIC, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=400
    )


def test_status_is_the_plan(lab):
    done = _lab("status")
    assert done.returncode == 0, done.stdout
    assert "as planned" in done.stdout.splitlines()[0]
    data = json.loads(_lab("status", "--format", "json").stdout)
    assert data["plan_digest"] == lab.lab.plan_digest != ""
    assert data["site"] == "lab"


def test_lldp_sees_every_cable_under_the_names_of_the_plan(lab):
    assert lab.call("cabled", timeout_s=60)["missing"] == []
    said = json.loads(_lab("exec", "leaf-01", "--", "lldpcli", "-f", "json", "show", "neighbors", "details").stdout)
    [spine] = [entry["Ethernet256"] for entry in said["lldp"]["interface"] if "Ethernet256" in entry]
    assert "spine-01" in spine["chassis"]
    assert spine["port"]["id"] == {"type": "ifname", "value": "Ethernet0"}


def test_programs_that_a_gateway_has_are_found():
    done = _lab("exec", "gw-01", "--", "gatewayctl", "status")
    assert done.stdout.startswith("gw-01: "), done.stderr
    assert _lab("exec", "gw-01", "--", "no-such-program").returncode == 127


def test_a_mebibyte_each_way_through_the_serial_line():
    data = os.urandom(1 << 20)
    done = subprocess.run([*KVFABRIC, "exec", "leaf-01", "--", "cat"], input=data, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, data)
    assert _lab("exec", "leaf-01", "--", "true").returncode == 0


def test_programs_at_the_same_time_do_not_wait_for_each_other(lab):
    hog = lab.start("leaf-01", ["sleep", "600"])
    writer = threading.Thread(target=hog.write, args=(bytes(4 << 20),), daemon=True)
    writer.start()
    quick = [lab.start("compute-001", ["sleep", "1"]) for _ in range(8)]
    assert [process.wait(60).rc for process in quick] == [0] * 8
    assert hog.poll() is None
    assert writer.is_alive()
    hog.kill()
    writer.join(60)
    assert not writer.is_alive()


def test_a_killed_tool_takes_its_program_with_it(lab):
    tool = subprocess.Popen([*KVFABRIC, "exec", "leaf-01", "--", "sleep", "654"], stdin=subprocess.DEVNULL)
    there = ["pgrep", "-fx", "sleep 654"]
    deadline = time.monotonic() + 60
    while lab.run("leaf-01", there).rc and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab.run("leaf-01", there).rc == 0
    tool.kill()
    tool.wait()
    while lab.run("leaf-01", there).rc == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert lab.run("leaf-01", there).rc == 1


def test_a_shell_in_a_node_has_a_terminal():
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [*KVFABRIC, "shell", "leaf-01"])
    termios.tcsetwinsize(master, (40, 120))
    assert b"leaf-01" in read_until(master, b"# ")
    os.write(master, b"stty size; echo end-$((6*7))\r")
    assert b"40 120" in read_until(master, b"end-42")
    os.write(master, b"exit 3\r")
    read_until(master, b"\0")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    os.close(master)


def test_a_shell_reads_commands_from_a_pipe():
    done = subprocess.run([*KVFABRIC, "shell", "gw-01"], input=b"hostname\nexit 4\n", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (4, b"gw-01\n")


def test_capture_writes_what_tcpdump_reads(tmp_path):
    file = tmp_path / "spine.pcap"
    assert _lab("capture", LINK_FAR, "-c", "12", "-w", str(file)).returncode == 0
    with file.open("rb") as data:
        read = subprocess.run(
            [*KVFABRIC, "exec", "leaf-01", "--", "tcpdump", "-nr", "-"], stdin=data, capture_output=True, check=False
        )
    assert read.returncode == 0
    assert len(read.stdout.splitlines()) == 12


def test_capture_until_control_c_is_a_whole_file_for_others_too(tmp_path):
    file = tmp_path / "live.pcap"
    tool = subprocess.Popen([*KVFABRIC, "capture", PORT, "-c", "0", "-w", str(file)], stderr=subprocess.PIPE)
    _wait_for(lambda: file.exists() and file.stat().st_size > 1000)
    tool.send_signal(signal.SIGINT)
    assert tool.wait(60) == 0, tool.stderr.read()
    with RawPcapReader(str(file)) as packets:
        assert sum(1 for _ in packets) > 5


def test_a_capture_that_tcpdump_refuses_leaves_no_file(tmp_path):
    done = _lab("capture", PORT, "-w", str(tmp_path / "x.pcap"), "no", "such", "filter")
    assert (done.returncode, "syntax error" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_two_labs_side_by_side_are_told_apart(lab):
    small = ["--slice", "leaves=1,spines=0,gateways=0,servers=1", "--engine", "uml", "--name", "beside"]
    assert _lab("up", "lab", *small).returncode == 0
    try:
        rows = json.loads(_lab("list", "--format", "json").stdout)
        assert [(row["lab"], row["site"], row["engine"], row["nodes"]) for row in rows] == [
            ("beside", "lab", "uml", 2), ("verbs", "lab", "uml", len(lab.lab.nodes)),
        ]  # fmt: skip
        assert _lab("list").stdout.splitlines()[0].split() == ["lab", "site", "engine", "nodes", "since", "folder"]
        which = _lab("status")
        assert (which.returncode, "more than one is running: beside, verbs" in which.stderr) == (2, True)
        assert _lab("exec", "-n", "beside", "leaf-01", "--", "touch", "/tmp/here").returncode == 0
        assert _lab("exec", "-n", "verbs", "leaf-01", "--", "test", "-e", "/tmp/here").returncode == 1
        assert _lab("down").returncode == 2  # nobody stops the wrong one
    finally:
        assert _lab("down", "--name", "beside").returncode == 0
    assert _lab("status").returncode == 0


def test_capture_ends_in_time_and_filters():
    done = _lab("capture", PORT, "--for", "3", "udp", "port", "3784")
    assert done.returncode == 0
    packets = [line for line in done.stdout.splitlines() if re.match(r"\d\d:\d\d:", line)]
    assert packets
    assert all("3784" in line for line in packets)


def _rtt_ms(target):
    out = _lab("exec", "leaf-01", "--", "ping", "-n", "-c5", "-i0.2", target).stdout
    return float(re.search(r"= [\d.]+/([\d.]+)/", out).group(1))


def test_impair_delays_until_its_end(lab):
    link = next(k for k in lab.lab.links if {"leaf-01", "gw-01"} == {k.a.node, k.b.node})
    end = next(e for e in link.ends() if e.node == "gw-01")
    address = json.loads(lab.run("gw-01", ["ip", "-j", "-4", "addr", "show", "dev", end.interface]).out)[0]
    target = address["addr_info"][0]["local"]
    made = _lab("impair", f"gw-01:{end.interface}", "--delay", "40", "--for", "12", "--format", "json")
    assert (made.returncode, json.loads(made.stdout)["target"]) == (0, link.id)
    again = _lab("impair", link.id, "--loss", "1")  # the same link by another name
    assert (again.returncode, "impaired already" in again.stderr) == (2, True)
    assert _rtt_ms(target) >= 80
    _wait_for(lambda: lab.call("faults") == [])
    assert "netem" not in lab.run("gw-01", ["tc", "qdisc"]).out


def _wait_for(true, timeout_s=120):
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def _missing(lab):
    return "\n".join(lab.call("status")["missing"])


def test_break_silently_is_seen_by_bfd_only_and_heals(lab):
    assert _lab("break", PORT).returncode == 0
    _wait_for(lambda: "BFD" in _missing(lab))
    assert '"operstate":"UP"' in lab.run("leaf-01", ["ip", "-j", "link", "show", "Ethernet256"]).out
    assert _lab("status").returncode == 1
    assert "fault made here: leaf-01:" in _lab("status").stdout
    assert _lab("heal", LINK_FAR).stdout.endswith(": healed\n")  # by its other end
    assert lab.call("converge", timeout_s=180)["missing"] == []


def _routes(lab):
    return set(lab.run("compute-001", ["ip", "route", "show", "table", "all"]).out.splitlines())


@pytest.mark.parametrize(("target", "how"), [(PORT, "down"), ("spine-01", "daemons"), ("compute-001", "power")])
def test_break_in_every_way_and_heal(lab, target, how):
    routes = _routes(lab)
    assert _lab("break", target, "--how", how).returncode == 0
    if target != "compute-001":
        _wait_for(lambda: _missing(lab))
    else:
        assert lab.run("compute-001", ["ping", "-c1", "-W1", "10.1.0.0"]).rc != 0
    assert _lab("break", target).returncode == 2
    assert _lab("heal").returncode == 0
    assert lab.call("converge", timeout_s=180)["missing"] == []
    assert lab.call("cabled", timeout_s=90)["missing"] == []
    # a link-local address is used once the kernel has found that nobody else has it
    _wait_for(lambda: _routes(lab) >= routes, 20)
    assert _routes(lab) == routes


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["break", "leaf01"], "close to it: leaf-01"),
        (["break", PORT, "--how", "daemons"], "only a node can be broken by daemons"),
        (["impair", "leaf-01:Ethernet999", "--loss", "1"], "has no node, link or port"),
        (["heal", "leaf-01"], "leaf-01 has no fault"),
        (["up", "lab", "--name", "verbs"], "a lab of this name is running"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(argv, said):
    done = _lab(*argv)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
