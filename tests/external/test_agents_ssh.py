"""The SSH agent against a real OpenSSH server: a probe's program runs there, moves blocks, and leaves nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from validators.agents.agent import SshAgent, run_program
from validators.devices.hosts import Host
from validators.rdma import probe
from validators.rdma.places import SshPlaces
from validators.results import State

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs /usr/sbin/sshd (openssh-server)"),
    pytest.mark.skipif(not shutil.which("ssh"), reason="needs ssh (openssh-client)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="sshd of a test logs in as root"),
]


def _key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An sshd of our own on 127.0.0.1 with its own host key, which a known_hosts file of ours names."""
    folder = tmp_path_factory.mktemp("sshd")
    host_key, key, stranger = (_key(folder / name) for name in ("host", "user", "stranger"))
    shutil.copy(f"{key}.pub", folder / "authorized")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile {folder}/pid\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/authorized\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n"
    )
    public = Path(f"{host_key}.pub").read_text().split()
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield {"port": port, "key": str(key), "stranger": str(stranger), "known": str(known)}
    process.terminate()
    process.wait(10)


def _agent(server, key: str = "key") -> SshAgent:
    options = ("-p", str(server["port"]), "-i", server[key], "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none")
    return SshAgent(
        "compute-001", "root@127.0.0.1", sys.executable, (*options, "-o", f"UserKnownHostsFile={server['known']}")
    )


def test_commands_run_there_with_their_input_and_exit_code(server) -> None:
    done = _agent(server).execute(["sh", "-c", "cat; echo 'a  b' >&2; exit 3"], b"in\0put", 20)
    assert (done.code, done.stdout, done.stderr) == (3, b"in\0put", b"a  b\n")


def test_a_program_goes_there_by_standard_input_and_comes_back_as_a_row(server) -> None:
    request = {"role": "serve", "backend": "nonsense", "open": {"address": "127.0.0.1"}, "listen": "x", "port": 0}
    row = run_program(_agent(server), ("validators.rdma.host",), "validators.rdma.host.main", request, 30)
    assert row["error"]["kind"] == "device"


def test_a_stranger_and_a_changed_host_are_refused_without_a_question(server, tmp_path: Path) -> None:
    with pytest.raises(CouldNotRunError, match="Permission denied"):
        _agent(server, "stranger").execute(["true"], b"", 20)
    other = {**server, "known": str(tmp_path / "known_hosts")}
    Path(other["known"]).write_text(
        Path(server["known"]).read_text().replace("AAAAC3NzaC1lZDI1NTE5AAAAI", "AAAAC3NzaC1lZDI1NTE5AAAAJ")
    )
    with pytest.raises(CouldNotRunError, match="ssh to root@"):
        _agent(other).execute(["true"], b"", 20)


def test_a_pair_of_a_site_is_probed_over_ssh_with_a_hosts_file(server, lab_plan, monkeypatch) -> None:
    """Both servers are this machine behind one sshd; the blocks go over TCP on the loopback."""
    from dataclasses import replace

    from validators.rdma import endpoints, question

    find = endpoints.find
    monkeypatch.setattr(
        question, "find", lambda plan, name: [replace(e, address="127.0.0.1") for e in find(plan, name)]
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr("validators.rdma.launch._FIRST_PORT", listener.getsockname()[1])
    hosts = {
        name: Host(name, "127.0.0.1", server["port"], "root", "", "linux", "linux", server["key"], server["known"])
        for name in ("compute-001", "compute-003")
    }
    asked = probe.Question("pair", "compute-001:be0-port0", "compute-003:be0-port0")
    results = probe.run(lab_plan, asked, probe.Ask(backend="tcp", repeats=2), SshPlaces(lab_plan, hosts=hosts))
    transfer = next(result for result in results if result.check == "rdma.transfer")
    assert transfer.state is State.PASS, transfer.text
    assert transfer.labels["transport"] == "TCP, no RDMA"
    assert {r.subject for r in results if r.check == "counters.path" and r.state is State.SKIPPED} >= {"leaf-01"}
