"""`kvfabric lab ...` on the command line: what it refuses, and how it runs programs, without a VM."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from fabric.cli.main import _run
from labs import state
from tests.conftest import read_until

pytestmark = pytest.mark.unit


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "argv",
    [
        ["status"], ["exec", "leaf-01", "--", "true"], ["shell", "leaf-01"], ["capture", "leaf-01:Ethernet0"], ["heal"],
        ["impair", "leaf-01:Ethernet0", "--loss", "1"], ["break", "leaf-01"], ["down"],
    ],
)  # fmt: skip
def test_without_a_lab_every_verb_says_so(argv, nothing, capsys):
    assert _run(["lab", *argv]) == 2
    assert "no lab is running" in capsys.readouterr().err
    assert list(nothing.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["up", "lab", "--slice", "leaves=9"], "there are 2 leaves"),
        (["up", "nosuchsite"], "nosuchsite"),
        (["up", "lab", "--name", "Bad Name"], "lower case letters"),
        (["up", "lab", "--engine", "vmware"], "engine vmware: there is no such engine"),
        (["run", "lab", "--", "no-such-program"], "no-such-program is not a program"),
        (["exec", "leaf-01", "--", ""], "is empty: name a program"),
        (["impair", "leaf-01:Ethernet0"], "say at least one of"),
        (["impair", "leaf-01:Ethernet0", "--loss", "101"], "range"),
        (["impair", "leaf-01:Ethernet0", "--delay", "-1"], "range"),
        (["break", "leaf-01", "--how", "axe"], "axe"),
        (["capture", "leaf-01:Ethernet0", "--for", "-1"], "range"),
    ],
)
def test_bad_input_is_refused_in_words(argv, said, nothing, capsys):
    assert _run(["lab", *argv]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
    assert list(nothing.iterdir()) == []


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["exec", "leaf-02", "--", "true"], "has no node leaf-02; close to it: leaf-01"),
        (["shell", "x"], "has no node x; its nodes are leaf-01, spine-01"),
        (["capture", "leaf-01:Ethernet1"], "close to it: leaf-01:Ethernet0"),
        (["capture", "leaf-01:Ethernet8"], "far end is not in this lab"),
        (["capture", "leaf-01"], "say which of its ports: leaf-01:Ethernet0"),
        (["status", "--name", "other"], "not running; running: here"),
        (["up", "lab", "--name", "here"], "a lab of this name is running"),
    ],
)
def test_names_that_the_lab_does_not_have_are_refused(argv, said, monkeypatch, capsys):
    monkeypatch.setattr("labs.engines.choose", lambda _name: "uml")
    assert _run(["lab", *argv]) == 2
    assert said in capsys.readouterr().err


def test_the_list_of_no_labs_is_empty(nothing, capsys):
    assert _run(["lab", "list", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert _run(["lab", "list"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "no lab is running\n")


@pytest.mark.usefixtures("lab")
def test_a_lab_that_is_only_just_starting_is_listed(capsys):
    assert _run(["lab", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["here", "starting", "2"]


def test_down_of_a_dead_lab_tells_why_and_leaves_nothing(nothing, capsys):
    _, alive = state.create("one")
    os.close(alive)
    assert _run(["lab", "down"]) == 0
    assert "one was dead already: its supervisor was killed" in capsys.readouterr().err
    assert list(nothing.iterdir()) == []


def test_status_of_a_dead_lab_says_so(nothing, capsys):
    folder, alive = state.create("one")
    state.remove(folder)
    os.close(alive)
    state.note_death(folder, "the machine ended (exit -9)")
    assert _run(["lab", "status"]) == 3
    assert "lab one is dead: the machine ended (exit -9)" in capsys.readouterr().err
    assert list(nothing.iterdir()) == []


PROGRAM = """
import sys
from labs.client import attach
from labs.terminal import relay, relay_terminal
with attach() as lab:
    if sys.argv[1] == "tty":
        sys.exit(relay_terminal(lab.start("", ["bash", "--norc", "-i"], tty=True, paced=True)))
    sys.exit(relay(lab.start("", sys.argv[1:], paced=True)))
"""


def _relay(*argv):
    return [sys.executable, "-c", PROGRAM, *argv]


@pytest.mark.usefixtures("lab")
def test_a_mebibyte_through_a_pipe_and_back():
    data = os.urandom(1 << 20)
    done = subprocess.run(_relay("cat"), input=data, capture_output=True, check=False, timeout=240)
    assert (done.returncode, done.stdout) == (0, data)


@pytest.mark.usefixtures("lab")
def test_exit_codes_and_streams_are_kept_apart():
    done = subprocess.run(_relay("sh", "-c", "echo out; echo err >&2; exit 7"), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    done = subprocess.run(_relay("sh", "-c", "kill -9 $$"), capture_output=True, check=False)
    assert done.returncode == 128 + 9
    done = subprocess.run(_relay("no-such-program"), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (127, b"no-such-program: No such file or directory\n")
    for argv, said in ((("/etc/passwd",), b"/etc/passwd: Permission denied\n"), (("",), b"an empty name: ")):
        done = subprocess.run(_relay(*argv), capture_output=True, check=False)
        assert (done.returncode, done.stderr[: len(said)]) == (127, said)


@pytest.mark.usefixtures("lab")
def test_a_reader_that_has_seen_enough_is_no_error_and_ends_the_program(tmp_path):
    script = f"echo $$ > {tmp_path}/pid; while :; do echo y; done"
    # the lab of these tests has no nodes: the program runs in the machine itself
    tool = "from fabric.cli.main import main; from fabric.cli.verbs import lab; lab._node = lambda *_: ''; main()"
    argv = [sys.executable, "-c", tool, "lab", "exec", "leaf-01", "--", "sh", "-c", script]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(60) == 0, process.stderr.read()
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.usefixtures("lab")
def test_control_c_goes_to_the_program():
    script = "trap 'echo bye; exit 3' INT; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(_relay("bash", "-c", script), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == b"bye\n"
    assert process.wait(60) == 3


@pytest.mark.usefixtures("lab")
def test_a_shell_has_a_terminal_with_its_size_and_keys():
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, _relay("tty"))
    termios.tcsetwinsize(master, (33, 101))
    read_until(master, b"# ")
    os.write(master, b"tty && stty size; echo $((6*7))\r")
    seen = read_until(master, b"42")
    assert b"/dev/pts/" in seen
    assert b"33 101" in seen
    os.write(master, b"sh -c 'echo go-$((1+1)); exec sleep 60'\r")
    assert b"go-2" in read_until(master, b"go-2")
    os.write(master, b"\x03echo int-$?\r")
    assert b"int-130" in read_until(master, b"int-130")
    os.write(master, b"exit 5\r")
    read_until(master, b"\x00", 30)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    os.close(master)


def test_a_lab_that_goes_away_ends_the_program_with_words(lab):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(_relay("sh", "-c", "echo here; sleep 60"), **pipes)
    assert process.stdout.readline() == b"here\n"
    lab.send({"id": 0, "op": "stop"})
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"lab here has gone: stopped" in err
