"""How marking is listened for on a device: by the very shell lines, with a tcpdump and a ping of the test's own."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from fabric.build import load_plan
from validators.check import Context, judged
from validators.devices.answers import Answer
from validators.journal_undo import UndoLog
from validators.rdma.check_marking import DscpPath
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
(MARKED,) = DscpPath.cases(PLAN)

_TCPDUMP = """\
echo "tcpdump: data link type LINUX_SLL2" >&2
sleep 0.3
echo "tcpdump: listening on any, link-type LINUX_SLL2" >&2
while [ ! -e {folder}/sent ]; do sleep 0.05; done
echo "12:00:00.1 Ethernet0 In  IP (tos 0x6a,ECT(0), ttl 62, id 1, proto UDP (17), length 1100)"
echo "12:00:00.2 Ethernet8 Out IP (tos 0x6a,ECT(0), ttl 61, id 1, proto UDP (17), length 1100)"
exec sleep 50
"""


class Shell:
    """Every device is a shell on this machine with the test's programs first."""

    name, physical, rounds = "shell", False, None

    def __init__(self, folder: Path, tcpdump: str) -> None:
        self.folder, self.files = folder, set[str]()
        for name, text in {"tcpdump": tcpdump, "ping": f"touch {folder}/sent; echo 10 packets transmitted"}.items():
            (folder / name).write_text(f"#!/bin/sh\n{text.format(folder=folder)}\n")
            (folder / name).chmod(0o755)

    def run(self, device: str, command: str, timeout_s: float = 30.0) -> Answer:
        # each node has a /tmp of its own
        own = command.replace("/tmp/kvfabric-tcpdump", f"{self.folder}/{device}")
        path = f"{self.folder}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-c", own], capture_output=True, text=True, timeout=timeout_s, env={"PATH": path}, check=False
        )
        return Answer(done.stdout, "" if done.returncode == 0 else f"exit {done.returncode}")

    def gather(self, asks: Any, sample: int = 0) -> dict[Any, Answer]:
        del asks, sample
        return {}

    def close(self) -> None:
        pass


def measured(tmp_path: Path, tcpdump: str) -> tuple[Any, float, list[str]]:
    devices = Shell(tmp_path, tcpdump)
    undo = UndoLog(tmp_path / "undo.jsonl", devices)
    started = time.monotonic()
    seen = DscpPath().collect(Context(PLAN, devices, undo), MARKED)
    undo.close()
    left = [path.name for path in tmp_path.iterdir() if "-01" in path.name or "-02" in path.name or "-003" in path.name]
    return judged(DscpPath(), PLAN, MARKED, seen), time.monotonic() - started, left


def test_what_was_heard_is_taken_when_the_packets_are_through(tmp_path: Path) -> None:
    result, seconds, left = measured(tmp_path, _TCPDUMP)
    assert result.state is State.PASS, result.text
    assert len(result.parts) == 5
    assert seconds < 20
    assert left == []


def test_a_tcpdump_that_does_not_start_is_an_error_with_its_words_and_not_waited_for(tmp_path: Path) -> None:
    result, seconds, left = measured(tmp_path, "echo 'tcpdump: you may not capture on any' >&2; exit 1")
    assert result.state is State.ERROR
    assert "you may not capture" in result.text
    assert seconds < 20
    assert left == []
