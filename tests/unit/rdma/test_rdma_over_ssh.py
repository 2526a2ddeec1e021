"""`kvfabric probe rdma` over SSH with a bad hosts file, hosts that refuse or babble, and words that make no sense."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric.cli.main import main
from fabric.problem import CouldNotRunError
from validators.agents.agent import Sessions, SshAgent, run_program
from validators.rdma.launch import MODULE, PACKAGES

pytestmark = pytest.mark.unit

PAIR = ("--from", "compute-001:be0-port0", "--to", "compute-003:be0-port0")
GOOD = "compute-001: {hostname: 192.0.2.1, username: root}\ncompute-003: {hostname: 192.0.2.3, username: root}\n"
# the real ones' words, in place of ssh
SSH = """#!/bin/sh
for last; do :; done
echo "$@" >> "$0.args"
case "$FAKE_SSH" in
  denied) echo 'root@192.0.2.1: Permission denied (publickey,password).' >&2; exit 255;;
  refused) echo 'ssh: connect to host 192.0.2.1 port 22: Connection refused' >&2; exit 255;;
  silent) exit 255;;
  no-python) cat >/dev/null; echo 'sh: 1: python3: not found' >&2; exit 127;;
  nothing) cat >/dev/null;;
  list) cat >/dev/null; echo '[1]';;
  nan) cat >/dev/null; echo '{"role": "drive", "scenario": NaN}';;
  other-row) cat >/dev/null; echo '{"error": "x"}';;
  greets) echo 'Welcome!'; sh -c "$last"; echo 'Good bye';;
  hangs) sleep 300;;
esac
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with an `ssh` that does what FAKE_SSH says, and a good hosts file beside it."""
    (tmp_path / "ssh").write_text(SSH)
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "hosts.yaml").write_text(GOOD)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["probe", "rdma", "lab", *argv])
    out = capsys.readouterr()
    return int(caught.value.code or 0), out.out, out.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "hosts.yaml:1: error: hosts.yaml: holds no device"),
        ("\udcff", "hosts.yaml:1: error: hosts.yaml: is not UTF-8 text"),
        ("compute-001: {hostname: [}", "hosts.yaml:1: error"),
        (GOOD + "nobody: {hostname: x}\n", "hosts.yaml:3: error: nobody: is not a device of the plan"),
        (GOOD + GOOD, "hosts.yaml:3: error: compute-001: is given already in line 1"),
        (GOOD.replace("username: root", "port: ssh", 1), "hosts.yaml:1: error: compute-001: port must be a number"),
        (GOOD.replace("username: root", "data: {key_file: /no/key}", 1), "there is no file /no/key"),
        (GOOD.replace("username: root", "data: {known_hosts: /no/kh}", 1), "there is no file /no/kh"),
        (GOOD.splitlines()[0], "compute-003: is not among the devices that can be reached"),
    ],
)
def test_a_bad_hosts_file_is_named_with_its_line(
    capsys: pytest.CaptureFixture[str], ssh: Path, text: str | None, said: str
) -> None:
    path = ssh / "hosts.yaml"
    path.unlink() if text is None else path.write_bytes(text.encode(errors="surrogateescape"))
    code, _, err = _run(capsys, *PAIR, "--hosts", str(path))
    assert (code, said in err) == (2, True), err
    assert not (ssh / "ssh.args").exists()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("denied", "Permission denied (publickey,password). (this logs in with a key"),
        ("refused", "Connection refused"),
        ("silent", ": it said nothing"),
        ("no-python", "python3: not found (the probe needs python3 on the host)"),
        ("nothing", "the probe gave no row (exit 0): and said nothing"),
        ("list", "the probe gave no row"),
        ("nan", "the probe gave no row"),
        ("other-row", "what came back is no row of this probe"),
    ],
)
def test_a_host_that_cannot_serve_is_an_error_that_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ssh: Path, how: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_SSH", how)
    code, out, err = _run(capsys, *PAIR, "--hosts", str(ssh / "hosts.yaml"), "--no-counters")
    assert code == 3, err
    assert said in out
    code, out, _ = _run(capsys, *PAIR, "--hosts", str(ssh / "hosts.yaml"), "--format", "json")
    assert (code, json.loads(out)[0]["state"]) == (3, "error")


def test_a_row_is_found_between_what_a_login_shell_says(monkeypatch: pytest.MonkeyPatch, ssh: Path) -> None:
    monkeypatch.setenv("FAKE_SSH", "greets")
    request = {"role": "serve", "backend": "nonsense", "open": {"address": "127.0.0.1"}, "listen": "x", "port": 0}
    row = run_program(SshAgent("compute-001", "root@192.0.2.1"), PACKAGES, MODULE, request, 60)
    assert "no back-end nonsense" in row["error"]["text"]


def test_without_a_place_it_is_said_where_it_goes_and_what_to_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ssh: Path
) -> None:
    monkeypatch.setenv("FAKE_SSH", "refused")
    code, out, err = _run(capsys, *PAIR, "--no-counters")
    assert (code, (ssh / "ssh.args").exists()) == (3, True)
    assert "no --lab and no --hosts: servers of the real site are asked over SSH" in err.splitlines()[0]
    assert "give --lab NAME, or --hosts FILE" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--from", "compute-001", "--to", "compute-001"), "is both where blocks lie and where they go"),
        (("--from", "compute-999", "--to", "compute-001"), "has no RDMA port"),
        (("--from", "compute-001"), "needs --to"),
        ((*PAIR, "--class", "nope"), "its lossless classes: kv"),
        ((*PAIR, "--tenant", "nope"), "tenants: acme, globex, storage"),
        ((*PAIR, "--model", "nope"), "there is no such model"),
        ((*PAIR, "--model", "llama-3.1-8b", "--tokens", "0"), "--tokens"),
        ((*PAIR, "--model", "llama-3.1-8b", "--tokens", "9" * 30), "1000000000"),
        ((*PAIR, "--piece", "-8"), "--piece"),
        ((*PAIR, "--piece", "nan"), "--piece"),
        ((*PAIR, "--pieces", "99999999"), "more than --max-bytes 67108864"),
        ((*PAIR, "--pieces", "9" * 30), "--pieces"),
        ((*PAIR, "--repeats", "9" * 30), "--repeats"),
        ((*PAIR, "--lab", "x"), "one way to reach servers is enough"),
        ((*PAIR, "--ssh-user", "root"), "leave --ssh-user out"),
        (("--set", "restore", "--pool", "compute-001", "--readers", "compute-003", "--size", "NaN"), "size NaN"),
        (("--set", "restore", "--pool", "compute-001", "--readers", "compute-003", "--size", "0GB"), "size 0GB"),
        (("--set", "incast", "--to", "compute-001", "--count", "99"), "fix: --count"),
    ],
)
def test_words_that_make_no_sense_ask_no_host(
    capsys: pytest.CaptureFixture[str], ssh: Path, argv: tuple[str, ...], said: str
) -> None:
    code, _, err = _run(capsys, *argv, "--hosts", str(ssh / "hosts.yaml"))
    assert (code, said in err) == (2, True), err
    assert not (ssh / "ssh.args").exists()


@pytest.mark.parametrize("more", [(), ("--no-counters",)])
def test_sigterm_ends_the_sessions_and_what_they_started(ssh: Path, more: tuple[str, ...]) -> None:
    tool = [sys.executable, "-c", "from fabric.cli.main import main; main()", "probe", "rdma", "lab", *PAIR, *more]
    environment = {**os.environ, "FAKE_SSH": "hangs"}
    argv = [*tool, "--hosts", str(ssh / "hosts.yaml")]
    process = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (ssh / "ssh.args").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    # a session that hangs would hold it for half a minute and more
    assert process.wait(25) == 143
    assert "ended by SIGTERM" in process.communicate()[1]


def test_sessions_can_be_ended_from_another_thread_and_others_may_begin(
    ssh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    monkeypatch.setenv("FAKE_SSH", "hangs")
    sessions = Sessions()
    agent = SshAgent("compute-001", "root@192.0.2.1", sessions=sessions)

    def end() -> None:
        while not (ssh / "ssh.args").exists():
            time.sleep(0.02)
        sessions.end()

    thread = threading.Thread(target=end)
    thread.start()
    done = agent.execute(["true"], b"", 60)
    thread.join()
    assert done.code == -signal.SIGKILL
    monkeypatch.setenv("FAKE_SSH", "refused")
    with pytest.raises(CouldNotRunError, match="Connection refused"):
        agent.execute(["true"], b"", 60)
