"""A machine that is ended has no process left, also none that its own first process had."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

# in a process of its own: who ends a machine becomes the parent of what it leaves
_END = """
import os, socket, subprocess
from labs.machine import Machine
ours, theirs = socket.socketpair()
command = ["sh", "-c", "for n in $(seq 20); do sleep 300 & done; echo $!; wait"]
process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
last = int(process.stdout.readline())
Machine(process, ours).kill()
for gone in (lambda: os.killpg(process.pid, 0), lambda: os.kill(last, 0)):
    try:
        gone()
    except ProcessLookupError:
        print("gone")
"""


def test_no_process_of_a_machine_is_left_when_it_was_ended() -> None:
    done = subprocess.run([sys.executable, "-c", _END], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("gone\ngone\n", "")
