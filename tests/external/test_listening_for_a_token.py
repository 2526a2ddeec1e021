"""Requests with a token, sent by a real ping and heard by the real listener on a host that is reached over SSH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.external.sshd import sshd
from validators.devices.hosts import Host
from validators.devices.listening import heard, listen, new_file
from validators.devices.ssh import SshDevices
from validators.tenants.arrivals import Heard, listener, send, send_to_itself

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs /usr/sbin/sshd (openssh-server)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd of a test logs in as root, and only root hears packets"),
    pytest.mark.skipif(shutil.which("ping") is None, reason="needs ping"),
]


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[SshDevices]:
    with sshd(tmp_path, "PS1='host:~$ ' ENV= exec sh -i") as server:
        host = Host("host", "127.0.0.1", server.port, "root", "", "linux", "linux", server.key, server.known_hosts)
        found = SshDevices({"host": host}, timeout_s=20)
        yield found
        found.close()


@pytest.mark.parametrize(("sent", "expected"), [("0badcafe", Heard(2)), ("0badcaff", Heard(0)), ("", Heard(0))])
def test_only_the_token_is_heard(devices: SshDevices, sent: str, expected: Heard) -> None:
    token, file = "0badcafe", new_file()
    assert listen(devices, "host", file, listener(token)).ok
    if sent:
        assert "2 packets transmitted, 2 received" in devices.run("host", send("127.0.0.2", sent, 2)).text
    answer = heard(devices, "host", file, send_to_itself("127.0.0.1", token))
    assert answer.ok, answer
    assert Heard.of(answer.to_dict()) == expected, answer.text
    assert not Path(file).exists()


def test_a_listener_that_does_not_hear_its_own_server_is_not_believed(devices: SshDevices) -> None:
    file = new_file()
    assert listen(devices, "host", file, listener("0badcafe")).ok
    answer = heard(devices, "host", file, send_to_itself("127.0.0.1", "0badcaff"))
    assert Heard.of(answer.to_dict()).deaf == "it did not hear what the server sent to itself"
