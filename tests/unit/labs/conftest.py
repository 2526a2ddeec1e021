"""A lab without nodes whose machine is this one: the real supervisor and agent, so that tests need no VM."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

import pytest

from labs import state
from labs.client import Running
from labs.machine import Machine, code_folder
from labs.model import End, Lab, Link, Node
from labs.supervisor import Supervisor

NODES = (Node("leaf-01", "leaf", dark=("Ethernet8",)), Node("spine-01", "spine"))
LINKS = (Link("leaf-01--spine-01", End("leaf-01", "Ethernet0"), End("spine-01", "Ethernet4")),)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A supervisor and an agent of this machine, of which only the names of nodes exist."""
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path))
    folder, alive = state.create("here")
    (folder / "share" / "lab.json").write_text(Lab("here", NODES, LINKS).to_json())
    ours, theirs = socket.socketpair()
    agent = subprocess.Popen(
        [sys.executable, "-m", "labs.agent", str(theirs.fileno())], pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": str(code_folder())}, start_new_session=True,
    )  # fmt: skip
    theirs.close()
    lease_read, lease_write = os.pipe()
    supervisor = Supervisor(folder, Machine(agent, ours), lease_read)
    thread = threading.Thread(target=supervisor.serve)
    thread.start()
    running = Running(folder)
    running.client_bytes = lambda: max(len(client.pending) for client in supervisor.clients)
    yield running
    os.close(lease_write)
    thread.join(60)
    assert not thread.is_alive()
    agent.kill()
    agent.wait()
    ours.close()
    os.close(alive)
    running.close()
