"""Sessions of netmiko's dell_sonic driver with a real sshd, behind which a program speaks bash and then sonic-cli."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external.sshd import Sshd, sshd
from tests.unit.accept import sonic_cli as said
from validators.devices.answers import Ask
from validators.devices.dialects import SONIC_CLI
from validators.devices.hosts import Host
from validators.devices.ssh import SshDevices

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs /usr/sbin/sshd (openssh-server)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd of a test logs in as root"),
]

# one line in, one answer and a prompt out; like klish it pages long answers until told not to
_DEVICE = """\
import json, sys, time

answers = json.load(open({answers!r}))
name, cli, length = "leaf-01", False, 24


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


say("Linux leaf-01 5.10.0-21-amd64\\n")
while True:
    say(f"{{name}}# " if cli else f"admin@{{name}}:~$ ")
    line = sys.stdin.readline()
    word = line.strip()
    if not line or (word == "exit" and not cli):
        break
    if not cli:
        cli = word == "sonic-cli"
    elif word == "terminal length 0":
        length = 0
    elif word.startswith("hostname "):
        name = word.split()[1]
    elif word == "wait":
        time.sleep(20)
    elif word == "drop":
        sys.exit(1)
    elif word in answers:
        lines = answers[word].splitlines()
        if length and len(lines) > length:
            say("\\n".join(lines[:length]) + "\\n--more--")
            sys.stdin.read(1)
        say(answers[word].rstrip("\\n") + "\\n")
    elif word:
        say("%Error: Invalid input detected at '^' marker.\\n")
"""
_ANSWERS = {
    "show version": said.VERSION,
    "show lldp neighbor": said.LLDP,
    "show bgp ipv4 unicast summary": said.BGP_IPV4,
    "show bgp l2vpn evpn summary": said.BGP_EVPN,
    "show interface transceiver dom": said.DOM,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    folder = tmp_path_factory.mktemp("sonic-cli")
    answers, program = folder / "answers.json", folder / "device.py"
    answers.write_text(json.dumps(_ANSWERS))
    program.write_text(_DEVICE.format(answers=str(answers)))
    with sshd(folder, f"exec {sys.executable} {program}") as running:
        yield running


@pytest.fixture
def leaf(server: Sshd) -> Iterator[SshDevices]:
    host = Host("leaf-01", "127.0.0.1", server.port, "root", "", "dell_sonic", SONIC_CLI, server.key)
    engine = SshDevices({"leaf-01": host}, timeout_s=10)
    yield engine
    engine.close()


def test_questions_are_asked_in_sonic_cli_and_long_answers_come_whole(leaf: SshDevices) -> None:
    answers = leaf.gather([Ask("leaf-01", name) for name in ("version", "lldp", "bgp", "optics", "config")])
    assert answers[Ask("leaf-01", "version")].text.split("\n") == said.VERSION.strip().split("\n")
    assert answers[Ask("leaf-01", "lldp")].text.strip() == said.LLDP.strip()
    assert answers[Ask("leaf-01", "optics")].text.strip() == said.DOM.strip()
    both = answers[Ask("leaf-01", "bgp")].text
    first, second = both.split("# show bgp l2vpn evpn summary\n")
    assert first.startswith("# show bgp ipv4 unicast summary\n")
    assert said.BGP_IPV4.strip() in first
    assert said.BGP_EVPN.strip() in second
    assert answers[Ask("leaf-01", "config")].error == "not asked: sonic-cli has no command for 'config'"


def test_a_command_that_the_shell_refuses_is_an_error(leaf: SshDevices) -> None:
    answer = leaf.run("leaf-01", "show interface status")
    assert answer.error == "`show interface status`: %Error: Invalid input detected at '^' marker."


def test_a_changed_prompt_does_not_matter(leaf: SshDevices) -> None:
    assert leaf.run("leaf-01", "hostname renamed").ok
    answer = leaf.run("leaf-01", "show version")
    assert answer.text.strip() == said.VERSION.strip()


def test_a_slow_device_is_given_up_and_answers_the_next_question(leaf: SshDevices) -> None:
    assert "no end of the answer within 1.5 s" in leaf.run("leaf-01", "wait", timeout_s=1.5).error
    assert leaf.run("leaf-01", "show version").ok


def test_a_dropped_session_is_made_once_more(leaf: SshDevices) -> None:
    assert leaf.run("leaf-01", "show version").ok
    leaf._sessions["leaf-01"].remote_conn.transport.close()
    assert leaf.run("leaf-01", "show version").text.strip() == said.VERSION.strip()


def test_a_device_that_ends_the_session_is_an_error_and_comes_back(leaf: SshDevices) -> None:
    assert not leaf.run("leaf-01", "drop", timeout_s=4).ok
    assert leaf.run("leaf-01", "show version").ok
