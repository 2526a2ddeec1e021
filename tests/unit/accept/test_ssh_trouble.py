"""Devices that cannot be logged in to: one line with user, address, port and reason, and never a traceback."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.conftest import run_cli
from validators.check import NotJudgedError
from validators.devices.answers import Answer, Ask, unreached
from validators.devices.hosts import Host
from validators.devices.ssh import SshDevices

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def far_end() -> Iterator[tuple[int, dict[str, bytes]]]:
    """A port that takes connections, sends what `say` holds, and ends them."""
    say = {"first": b""}
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                connection.sendall(say["first"])

    threading.Thread(target=serve, daemon=True).start()
    yield listening.getsockname()[1], say
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


@pytest.mark.parametrize(
    ("greeting", "reasons"),
    [
        (b"", ("connected, but no SSH greeting came",)),
        (b"HTTP/1.0 400 Bad\r\n\r\n", ("connected, but no SSH greeting came",)),
        # which of the two it is depends on what the far end had read when it closed
        (b"SSH-2.0-x\r\n", ("connected, and the far end ended it", "Connection reset by peer")),
    ],
)
def test_what_is_no_ssh_server_is_one_line(
    far_end: tuple[int, dict[str, bytes]], greeting: bytes, reasons: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    port, say = far_end
    say["first"] = greeting
    engine = SshDevices({"leaf": Host("leaf", "127.0.0.1", port, "admin", "x", "linux", "linux")}, timeout_s=5)
    answer = engine.run("leaf", "true")
    assert answer.error in {f"no answer from admin@127.0.0.1:{port}: {reason}" for reason in reasons}
    assert not answer.reached
    assert capfd.readouterr().err == ""


def test_nobody_listens_and_a_name_that_is_none() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        hosts = {
            "dead": Host("dead", "127.0.0.1", port, "admin", "x", "linux", "linux"),
            "v6": Host("v6", "::1", port, "admin", "x", "linux", "linux"),
            "no-key": Host("no-key", "127.0.0.1", port, "admin", "", "linux", "linux", "/no/such/key"),
        }
        engine = SshDevices(hosts, timeout_s=5)
        assert engine.run("dead", "true").error == f"no answer from admin@127.0.0.1:{port}: Connection refused"
        assert engine.run("v6", "true").error.startswith(f"no answer from admin@[::1]:{port}: ")
        assert "key_file does not exist" in engine.run("no-key", "true").error


def test_accept_names_the_device_once_with_its_address(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        (tmp_path / "hosts.yaml").write_text(f"fe-leaf-01: {{hostname: 127.0.0.1, port: {port}, username: netops}}\n")
        words = ("--check", "device-answers,port-mtu", "--limit", "fe-leaf-01", "--keep-going", "--out", str(tmp_path))
        done = run_cli("accept", "minimal", "--hosts", str(tmp_path / "hosts.yaml"), *words)
    assert done.returncode == 3
    why = f"fe-leaf-01: no answer from netops@127.0.0.1:{port}: Connection refused  [fe-leaf-01]"
    said = [line for line in done.stderr.splitlines() if "fe-leaf-01" in line]
    assert said == [f"  ! device-answers {why}", f"  ! port-mtu {why}"]


def test_a_case_of_several_devices_says_which_gave_no_answer() -> None:
    result = NotJudgedError("leaf-01: no answer to 'routes': exit 1", device="leaf-01").result("paths", "acme")
    assert (result.text, result.place) == ("leaf-01: no answer to 'routes': exit 1", "leaf-01")


def test_a_device_that_is_not_reached_is_tried_once_for_all_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = SshDevices({"leaf": Host("leaf", "192.0.2.1", 22, "admin", "x", "linux", "linux")})
    tried: list[str] = []

    def refused(device: str, command: str, limit: float) -> Answer:
        tried.append(command)
        return unreached("admin@192.0.2.1:22", "timed out")

    monkeypatch.setattr(engine, "_attempt", refused)
    asks = [Ask("leaf", question) for question in ("bgp", "bfd", "links")]
    assert {answer.error for answer in engine.gather(asks).values()} == {"no answer from admin@192.0.2.1:22: timed out"}
    assert len(tried) == 1
    engine.close()
    assert {answer.error for answer in engine.gather(asks).values()} == {"no answer"}
