"""FRR's own sockets: what daemons answer is read whole, and who does not answer is left out."""

from __future__ import annotations

import socket
import threading

import pytest

from labs import vty

pytestmark = pytest.mark.unit

COMMANDS = {"bgp": ("bgpd", "show bgp"), "vni": ("zebra", "show vni"), "route": ("zebra", "show route")}
VNI = b'{"vni": 1}'


@pytest.fixture
def daemon(tmp_path):
    """Start a daemon that answers commands from a table, in the pieces it is given; one that is not there hangs up."""
    (tmp_path / "run" / "frr").mkdir(parents=True)
    servers = []

    def start(name: str, answers: dict[str, list[bytes]]) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(tmp_path / "run" / "frr" / f"{name}.vty"))
        server.listen()
        servers.append(server)

        def serve() -> None:
            client, _ = server.accept()
            with client:
                while heard := client.recv(4096):
                    command = heard.rstrip(b"\0").decode()
                    if command not in answers:
                        return
                    for piece in answers[command]:
                        client.sendall(piece)

        threading.Thread(target=serve, daemon=True).start()

    yield start
    for server in servers:
        server.close()


OK = [b"\0\0\0\0"]


def test_answers_are_joined_from_their_pieces(daemon, tmp_path):
    daemon("bgpd", {"enable": OK, "show bgp": [b'{"as":', b" 1}", b"\n\0\0", b"\0\0"]})
    daemon("zebra", {"enable": OK, "show vni": [VNI + b"\0\0\0\0"], "show route": [b"{}\0\0\0\0"]})
    assert vty.ask(tmp_path, COMMANDS) == {"bgp": {"as": 1}, "vni": {"vni": 1}, "route": {}}


def test_an_unknown_command_is_no_answer(daemon, tmp_path):
    daemon("zebra", {"enable": OK, "show vni": [b"% Unknown command\0\0\0\x02"], "show route": [b"{}\0\0\0\0"]})
    assert vty.ask(tmp_path, COMMANDS) == {"route": {}}


def test_a_daemon_that_ends_or_hangs_keeps_nothing_from_the_others(daemon, tmp_path):
    daemon("bgpd", {"enable": OK, "show bgp": [b'{"as": 1']})  # and no end
    daemon("zebra", {"enable": OK, "show vni": [VNI + b"\0\0\0\0"]})  # ends at the next
    assert vty.ask(tmp_path, COMMANDS, timeout_s=0.3) == {"vni": {"vni": 1}}


def test_no_daemon_no_answer(tmp_path):
    assert vty.ask(tmp_path, COMMANDS) == {}
