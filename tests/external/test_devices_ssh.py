"""SSH sessions against a real OpenSSH server: right and wrong keys, slow, dropped and renamed devices."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.external.sshd import sshd
from validators.devices.answers import Ask
from validators.devices.dialects import LINUX
from validators.devices.hosts import Host
from validators.devices.ssh import SshDevices

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs /usr/sbin/sshd (openssh-server)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd of a test logs in as root"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Every session gets a plain sh: a device whose prompt can change under the session, and that can end it."""
    with sshd(tmp_path_factory.mktemp("sshd"), "PS1='leaf:~$ ' ENV= exec sh -i") as running:
        yield {"port": running.port, "key": running.key, "stranger": running.stranger}


def host(server, name, **other):
    fields = {"port": server["port"], "key_file": server["key"], "password": ""} | other
    return Host(name, "127.0.0.1", fields["port"], "root", fields["password"], "linux", LINUX, fields["key_file"])


@pytest.fixture
def devices(server):
    """Two good devices, one that refuses, one where nobody listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = closed.getsockname()[1]
        hosts = {
            "good-1": host(server, "good-1"),
            "good-2": host(server, "good-2"),
            "refused": host(server, "refused", key_file=server["stranger"]),
            "dead": host(server, "dead", port=dead),
        }
        engine = SshDevices(hosts, timeout_s=8)
        yield engine
        engine.close()


def test_one_bad_device_never_stops_the_others(devices):
    asks = [Ask(name, "clock") for name in devices.hosts] + [Ask("stranger", "clock")]
    answers = devices.gather(asks)
    assert set(answers) == set(asks)
    assert abs(int(answers[Ask("good-1", "clock")].text) - time.time()) < 60
    assert answers[Ask("good-2", "clock")].ok
    assert "refused user name, password or key" in answers[Ask("refused", "clock")].error
    dead = devices.hosts["dead"]
    assert answers[Ask("dead", "clock")].error == f"no answer from root@127.0.0.1:{dead.port}: Connection refused"
    assert answers[Ask("stranger", "clock")].error == "not in the hosts file"


def test_a_slow_device_is_given_up_and_answers_the_next_question(devices):
    slow = devices.run("good-1", "sleep 20", timeout_s=1.5)
    assert "no end of the answer within 1.5 s" in slow.error
    assert slow.seconds < 8
    assert devices.run("good-1", "echo again").text.strip() == "again"


def test_a_dropped_session_is_made_once_more(devices):
    assert devices.run("good-1", "echo one").ok
    devices._sessions["good-1"].remote_conn.transport.close()
    assert devices.run("good-1", "echo two").text.strip() == "two"


def test_a_device_that_ends_the_session_is_an_error_and_comes_back(devices):
    assert not devices.run("good-1", "kill -9 $$", timeout_s=4).ok
    assert devices.run("good-1", "echo back").text.strip() == "back"


def test_a_changed_prompt_does_not_matter(devices):
    assert devices.run("good-1", "PS1='renamed-by-config> '").ok
    assert devices.run("good-1", "echo still here").text.strip() == "still here"


def test_a_command_that_fails_says_why(devices):
    answer = devices.run("good-1", "ls /no/such/folder")
    assert answer.error.startswith("exit 2:")
    assert "No such file" in answer.error


def test_long_output_arrives_whole(devices):
    answer = devices.run("good-1", "seq 1 20000")
    assert answer.text.split() == [str(n) for n in range(1, 20001)]


def test_a_wrong_password_is_said_without_the_password(server):
    engine = SshDevices({"leaf": host(server, "leaf", key_file="", password="open-sesame")}, timeout_s=6)
    answer = engine.run("leaf", "true")
    assert "refused user name, password or key" in answer.error
    assert "open-sesame" not in answer.error
    assert sys.modules["netmiko"]
