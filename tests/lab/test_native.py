"""Engine `native` by its one command on a host whose kernel has it all, as on a laptop; that host is a VM (`host`)."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from fabric.problem import CouldNotRunError
from labs.native import machine as native
from tests.lab import host as hosts
from tests.lab.host import KVFABRIC, Host, new

pytestmark = pytest.mark.lab

SLICE = ("--slice", "leaves=2,spines=1,gateways=1,servers=3")
SMALL = ("--slice", "leaves=1,spines=1,gateways=0,servers=1")
PORT = "leaf-01:Ethernet256"


@pytest.fixture(scope="module")
def host():
    try:
        made = hosts.start()
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    yield made
    made.vm.stop()


@pytest.fixture(autouse=True)
def nothing_left(host: Host):
    """Every test ends as it began; a lab that a failed one left is not the next one's."""
    before = host.look()
    yield
    # of a supervisor that was killed the kernel kills the machine, in a moment
    _until(lambda: new(before, host.look()) == [], 10)
    left = new(before, host.look())
    host.lab("down")
    assert left == []


def _missing(host: Host) -> list[str]:
    return json.loads(host.lab("status", "--format", "json").out)["missing"]


def _until(true, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not true() and time.monotonic() < deadline:
        time.sleep(0.5)
    return true()


def test_up_use_break_heal_and_down(host: Host):
    before = host.look()
    up = host.lab("up", "lab", "--engine", "native", *SLICE)
    assert (up.rc, up.out) == (0, ""), up.err
    assert "engine native: booting" in up.err
    assert "lacks" not in up.err  # this kernel has all, and none of it is told to be missing
    assert any("bgpd" in line for line in new(before, host.look()))

    status = host.lab("status")
    assert (status.rc, status.out.splitlines()[0].endswith(": as planned")) == (0, True), status.out
    assert "DOWN" not in status.out  # neighbours outside of the slice are nobody's fault
    data = json.loads(host.lab("status", "--format", "json").out)
    assert {row["node"] for row in data["routers"]} >= {"leaf-01", "leaf-02", "spine-01", "gw-01"}

    ping = ("ping", "-c2", "-i0.2", "-W2", "-M", "do", "-s", "9008", "-I", "10.1.0.3", "10.1.0.19")
    far = host.lab("exec", "compute-001", "--", *ping)
    assert far.rc == 0, far.out + far.err
    assert host.lab("exec", "gw-01", "--", "gatewayctl", "status").rc == 0
    assert "compute-001.be0-port0" in host.lab("exec", "compute-001", "--", "rdma", "link").out
    assert host.lab("capture", PORT, "-c", "2").rc == 0

    assert host.lab("break", PORT).rc == 0
    assert _until(lambda: any("BFD to Ethernet256" in text for text in _missing(host)))
    assert host.lab("exec", "compute-001", "--", *ping).rc != 0
    assert len(json.loads(host.lab("heal", "--format", "json").out)) == 1
    assert _until(lambda: _missing(host) == [])
    assert host.lab("exec", "compute-001", "--", *ping).rc == 0
    assert host.lab("impair", PORT, "--delay", "5", "--for", "1").rc == 0
    assert _until(lambda: "netem" not in host.lab("exec", "leaf-01", "--", "tc", "qdisc").out)

    down = host.lab("down")
    assert (down.rc, down.out) == (0, ""), down.err


def test_the_engine_of_such_a_host_is_native_and_a_killed_supervisor_leaves_nothing(host: Host):
    # labs are kept in a folder whose name mount options cannot hold
    folder = "/run/kv labs,1"
    lab = ("env", f"KVFABRIC_LAB_STATE={folder}", *KVFABRIC, "lab")
    for last in (False, True):
        # the second time at once: nothing of the first holds a name that it needs
        up = host.run(*lab, "up", "lab", *SMALL)
        assert (up.rc, "engine native" in up.err) == (0, True), up.err
        assert last or host.run(*lab, "down").rc == 0
    host.run("pkill", "-9", "-f", "labs.supervisor").check()
    told = host.run(*lab, "status")
    assert told.rc == 3
    assert "lab lab is dead: its supervisor was killed" in told.err
    host.run("rmdir", folder).check()


def test_two_labs_on_one_kernel_have_one_set_of_rdma_devices_and_the_second_is_told(host: Host):
    assert host.lab("up", "lab", *SMALL, "--name", "first").rc == 0
    second = host.lab("up", "lab", *SMALL, "--name", "second")
    assert second.rc == 1
    text = "compute-001: no Soft-RoCE on be0-port0: another lab of this kernel has a device compute-001.be0-port0"
    assert text in second.err
    first, second = (host.lab("status", "--format", "json", "--name", name) for name in ("first", "second"))
    assert (first.rc, json.loads(first.out)["missing"]) == (0, [])
    lacks = [f"compute-001: RDMA device compute-001.be{i}-port0 is of another lab of this kernel" for i in (0, 1)]
    assert (second.rc, json.loads(second.out)["missing"]) == (1, lacks)
    assert [host.lab("down", "--name", name).rc for name in ("second", "first")] == [0, 0]


# the first word of the phase in which the tool is hit
@pytest.mark.parametrize(("moment", "blow"), [("booting", "INT"), ("building", "KILL"), ("waiting", "TERM")])
def test_up_cut_short_leaves_nothing(host: Host, moment, blow):
    script = """
    said=/tmp/said; "$@" 2>$said & tool=$!
    for n in $(seq 600); do grep -q "$0" $said && break; sleep 0.05; done
    kill -$BLOW $tool; wait $tool; echo $?; rm $said
    for n in $(seq 200); do pgrep -f 'labs[.]supervisor' >/dev/null || exit 0; sleep 0.1; done; exit 1
    """
    # a shell's background job ignores Ctrl-C, which a terminal's does not
    tool = ("env", "--default-signal=INT", *KVFABRIC, "lab", "up", "lab", *SMALL)
    done = host.sh(script.replace("$BLOW", blow), moment, *tool)
    assert done.rc == 0, done.err
    assert done.out.split() == [{"INT": "130", "KILL": "137", "TERM": "143"}[blow]]


def test_the_kernel_of_this_machine_is_used_or_refused_with_what_each_lack_disables(tmp_path, monkeypatch):
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path / "s"))
    done = subprocess.run([*KVFABRIC, "lab", "up", "lab", "--engine", "native", "--slice", "leaves=9"], capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 2  # what is wrong with the question comes first
    if os.geteuid():
        assert native.lacks() == ["it makes namespaces and devices: run it as root"]
        return
    vrf = subprocess.run(["unshare", "--net", "ip", "link", "add", "v", "type", "vrf", "table", "9"], check=False)
    lacks = native.lacks()
    assert any("VRF devices (NET_VRF): no tenant VRFs" in text for text in lacks) == bool(vrf.returncode)
    if not lacks:
        return  # a laptop: the other tests of this file say how it goes there
    done = subprocess.run(
        [*KVFABRIC, "lab", "up", "lab", "--engine", "native"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert [line.strip() for line in done.stderr.splitlines() if "lacks" in line] == lacks
    assert "fix: `--engine uml`" in done.stderr
    assert list(tmp_path.rglob("*")) == []


def test_a_host_where_no_namespace_can_be_made_is_told_so_and_its_kernel_not_blamed(host: Host):
    host.sh("cat /proc/sys/user/max_net_namespaces > /tmp/most; echo 0 > /proc/sys/user/max_net_namespaces").check()
    try:
        done = host.lab("up", "lab", "--engine", "native")
    finally:
        host.sh("cat /tmp/most > /proc/sys/user/max_net_namespaces; rm /tmp/most").check()
    assert done.rc == 3
    assert "no namespace can be made here" in done.err
    assert "this kernel lacks" not in done.err
