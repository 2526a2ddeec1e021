"""Nothing of a lab stays: after `down`, Ctrl-C, kill -9 of the tool or the supervisor, a crash of the VM, a full disk.

Every assertion looks at the process table, the mounts, the sockets and the files of this machine.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from traces import Footprint, mentioning, processes, wait_gone

from fabric.problem import CouldNotRunError
from labs import engines, state

pytestmark = pytest.mark.lab

SMALL = ["lab", "--slice", "leaves=1,spines=1,gateways=0,servers=1", "--name", "life", "--engine", "uml"]
KVFABRIC = [sys.executable, "-c", "from fabric.cli.main import main; main()"]


@pytest.fixture
def room(tmp_path, monkeypatch):
    """A state folder and a folder for temporary files of our own: what they hold at the end is what leaked."""
    try:
        engines.choose("uml")
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    # a name that neither a kernel's words nor mount options can hold
    root = Path(f"/run/kv life,{os.getpid()}") if os.geteuid() == 0 else tmp_path / "s ,"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(root))
    monkeypatch.setenv("TMPDIR", str(temporary))
    yield root
    left = mentioning(root) + list(temporary.iterdir())
    for path in state.running():
        _lab("down", "--name", path.name)
    shutil.rmtree(root, ignore_errors=True)
    assert left == []


def _lab(*argv):
    return subprocess.run([*KVFABRIC, "lab", *argv], capture_output=True, text=True, check=False, timeout=400)


def _start(*argv):
    """Start a tool in a process group of its own, as a shell does, so that Ctrl-C reaches what it starts too."""
    return subprocess.Popen(
        [*KVFABRIC, "lab", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def _wait_for_words(tool, words):
    said = ""
    while words not in said:
        line = tool.stderr.readline()
        assert line, said
        said += line


def _facts(root, timeout_s=90):
    """Wait for the lab's machine to be there; returns what the supervisor noted."""
    path, deadline = root / "life" / "facts.json", time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if path.exists() and "machine" in (facts := json.loads(path.read_text())):
            return facts
        time.sleep(0.02)
    raise AssertionError("the lab's machine did not start")


def _up(root):
    done = _lab("up", *SMALL)
    assert done.returncode == 0, done.stderr
    facts = _facts(root)
    print_ = Footprint.of(facts["supervisor"])
    assert len(print_.processes) > 3
    assert len(mentioning(root)) > 5
    return facts, print_


def test_down_leaves_nothing(room):
    _, before = _up(room)
    done = _lab("down")
    assert (done.returncode, done.stdout) == (0, "")
    assert mentioning(room) == []
    assert before.left() == []


def test_kill_of_the_supervisor_is_told_and_leaves_nothing(room):
    facts, before = _up(room)
    os.kill(facts["supervisor"], signal.SIGKILL)
    deadline = time.monotonic() + 30
    while before.left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert before.left() == []
    done = _lab("status")
    assert done.returncode == 3
    assert "lab life is dead: its supervisor was killed" in done.stderr
    assert mentioning(room) == []
    assert "no lab is running" in _lab("status").stderr


def test_a_crashed_vm_is_told_and_leaves_nothing(room):
    facts, before = _up(room)
    with_it = _start("exec", "leaf-01", "--", "sh", "-c", "echo here; sleep 600")
    assert with_it.stdout.readline() == "here\n"
    os.kill(facts["machine"], signal.SIGKILL)
    assert "the machine ended" in with_it.communicate(timeout=60)[1]
    assert with_it.returncode == 3
    deadline = time.monotonic() + 30
    while before.left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert before.left() == []
    assert [path.name for path in room.iterdir()] == ["life.died"]
    done = _lab("down")
    assert done.returncode == 0
    assert "life was dead already: the machine ended" in done.stderr
    assert mentioning(room) == []


@pytest.mark.parametrize(
    ("moment", "blow"),
    [
        ("plan", signal.SIGINT), ("boot", signal.SIGKILL), ("nodes", signal.SIGINT), ("converge", signal.SIGKILL),
        ("boot", signal.SIGTERM), ("nodes", signal.SIGHUP),
    ],
)  # fmt: skip
def test_up_cut_short_leaves_nothing(room, moment, blow):
    tool = _start("up", *SMALL)
    words = {"plan": "", "boot": "booting", "nodes": "building", "converge": "waiting for FRR"}[moment]
    if words:
        _wait_for_words(tool, words)
        before = Footprint.of(_facts(room)["supervisor"])
    else:
        before = None
        time.sleep(0.4)  # it is reading the site by now, or starting Python where the machine is slow
    os.killpg(tool.pid, blow)
    assert tool.wait(90) in {128 + blow, -blow}
    assert wait_gone(room, before) == []


def test_a_vm_that_crashes_while_nodes_start_is_told_at_once_and_leaves_nothing(room):
    tool = _start("up", *SMALL)
    _wait_for_words(tool, "building")
    facts = _facts(room)
    before = Footprint.of(facts["supervisor"])
    os.kill(facts["machine"], signal.SIGKILL)
    said = tool.communicate(timeout=60)[1]
    assert (tool.returncode, "the machine ended (exit -9)" in said) == (3, True), said
    assert wait_gone(room, before) == []
    assert list(room.iterdir()) == []  # who started it knows: no note for the next command


def test_two_that_start_the_same_lab_at_once_get_one_and_two_that_stop_it_none(room):
    both = [_start("up", *SMALL) for _ in range(2)]
    said = [tool.communicate(timeout=120)[1] for tool in both]
    assert sorted(tool.returncode for tool in both) == [0, 2], said
    assert "a lab of this name is running" in said[0 if both[0].returncode else 1]
    before = Footprint.of(_facts(room)["supervisor"])
    assert _lab("status").returncode == 0
    both = [_start("down") for _ in range(2)]
    said = [tool.communicate(timeout=60)[1] for tool in both]
    assert sorted(tool.returncode for tool in both) in ([0, 0], [0, 2]), said  # who comes too late finds no lab
    assert not any("Traceback" in text for text in said)
    assert wait_gone(room, before) == []


def _with_little_room(place, size, script):
    """Run a script with a small file system at `place`, in a mount namespace that ends with it."""
    apart = ["unshare", "--mount", "--propagation", "private", *(["--map-root-user"] if os.geteuid() else [])]
    mount = f"mount -t tmpfs -o size={size} small {shlex.quote(str(place))} || exit 99; {script}"
    return subprocess.run([*apart, "sh", "-c", mount], capture_output=True, text=True, check=False, timeout=200)


# a page more at a time: the disk is full when files are written, when the supervisor starts, when the machine is there
@pytest.mark.parametrize("size", ["16k", "64k", "72k", "80k"])
def test_a_full_disk_is_told_and_leaves_nothing(room, size):
    room.mkdir(exist_ok=True)
    up = shlex.join([*KVFABRIC, "lab", "up", *SMALL])
    down = shlex.join([*KVFABRIC, "lab", "down"])
    # the last size may do, some day: then there is a lab to stop
    script = f"{up}; code=$?; [ $code != 0 ] || {down}; ls -A {shlex.quote(str(room))}; exit $code"
    done = _with_little_room(room, size, script)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert (done.returncode, "No space left on device" in done.stderr) in {(3, True), (0, False)}, done.stderr
    assert size != "16k" or (done.returncode, str(room) in done.stderr) == (3, True)
    assert wait_gone(room) == []


def test_a_vm_gets_no_more_memory_than_there_is_room_for(room):
    up = shlex.join([*KVFABRIC, "lab", "run", *SMALL, "--", *KVFABRIC, "lab", "exec", "leaf-01", "--", "free", "-m"])
    done = _with_little_room("/dev/shm", "64m", f"{up}; code=$?; ls -A /dev/shm; exit $code")
    assert (done.returncode, done.stdout) == (3, "")
    assert "a VM's memory is a file in /dev/shm, which has 64 MB free" in done.stderr
    done = _with_little_room("/dev/shm", "700m", f"{up}; code=$?; ls -A /dev/shm; exit $code")
    assert done.returncode == 0, done.stderr
    [total] = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("Mem:")]
    assert 500 < total < 700
    assert done.stdout.splitlines()[-1].startswith("Swap:")  # nothing in /dev/shm


def _sleepers(mark):
    found = []
    for pid in processes():
        try:
            if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:2] == ["sleep", mark]:
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_run_cut_short_leaves_nothing(room, blow):
    mark = f"6{os.getpid()}"
    tool = _start("run", *SMALL, "--", "sleep", mark)
    deadline = time.monotonic() + 300
    while not _sleepers(mark) and time.monotonic() < deadline and tool.poll() is None:
        time.sleep(0.1)
    before = Footprint.of(_facts(room)["supervisor"])
    assert len(before.processes) > 3
    tool.send_signal(blow)
    tool.wait(90)
    assert wait_gone(room, before) == []
    deadline = time.monotonic() + 30
    while _sleepers(mark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _sleepers(mark) == []


def test_run_takes_results_out_and_leaves_nothing_else(room, tmp_path):
    out = tmp_path / "out"
    inside = (
        f"{sys.executable} -c 'from fabric.cli.main import main; main()' "
        "lab exec leaf-01 -- sh -c 'hostname > /lab/results/who'; exit 5"
    )
    done = _lab("run", *SMALL, "--results", str(out), "--", "sh", "-c", inside)
    assert done.returncode == 5, done.stderr
    assert mentioning(room) == []
    assert (out / "who").read_text() == "leaf-01\n"
    assert json.loads((out / "status.json").read_text())["missing"] == []
    assert (out / "logs" / "leaf-01" / "frr" / "bgpd.log").is_file()
