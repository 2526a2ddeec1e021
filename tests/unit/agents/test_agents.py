"""Agents: a program arrives as a zip on standard input, runs, and leaves nothing."""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from validators.agents.agent import LabAgent, LocalAgent, SshAgent, run_program
from validators.agents.package import command, program_zip, stdin_bytes

pytestmark = pytest.mark.unit

PACKAGES = ("validators.rdma.host",)
MODULE = "validators.rdma.host.main"
REQUEST = {"role": "serve", "backend": "nonsense", "open": {"address": "127.0.0.1"}, "listen": "127.0.0.1", "port": 0}


def test_the_zip_holds_the_package_and_nothing_else_of_ours() -> None:
    names = zipfile.ZipFile(BytesIO(program_zip(PACKAGES))).namelist()
    assert "validators/rdma/host/main.py" in names
    assert "validators/__init__.py" in names
    assert all(name.startswith("validators/") for name in names)
    assert not [name for name in names if name.count("/") == 1 and not name.endswith("__init__.py")]
    assert program_zip(PACKAGES) == program_zip.__wrapped__(PACKAGES)


def test_a_program_runs_without_this_project_on_its_path() -> None:
    agent = LocalAgent(python=sys.executable, environment=(("PYTHONPATH", ""), ("PYTHONSAFEPATH", "1")))
    row = run_program(agent, PACKAGES, MODULE, REQUEST, 20)
    assert row["error"] == {"kind": "device", "text": "no back-end nonsense; there are pyverbs, ibverbs, tcp, fake"}


def test_what_cannot_run_says_why() -> None:
    with pytest.raises(CouldNotRunError, match="is not there"):
        run_program(LocalAgent(python="/no/python"), PACKAGES, MODULE, REQUEST, 20)
    with pytest.raises(CouldNotRunError, match="gave no row"):
        run_program(LocalAgent(python=sys.executable), PACKAGES, "validators.rdma.host.nothing", REQUEST, 20)
    with pytest.raises(CouldNotRunError, match="not done within"):
        LocalAgent().execute(["sleep", "5"], b"", 0.2)


def test_ssh_quotes_the_command_and_never_asks(tmp_path: Path, monkeypatch) -> None:
    fake = tmp_path / "ssh"
    fake.write_text('#!/bin/sh\necho "$@" > "$0.args"\nfor last; do :; done\nexec sh -c "$last"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    row = run_program(SshAgent("compute-001", "root@192.0.2.1"), PACKAGES, MODULE, REQUEST, 20)
    assert row["error"]["kind"] == "device"
    said = (tmp_path / "ssh.args").read_text()
    assert "BatchMode=yes" in said
    assert "root@192.0.2.1" in said
    fake.write_text("#!/bin/sh\necho refused >&2\nexit 255\n")
    with pytest.raises(CouldNotRunError, match="refused"):
        SshAgent("compute-001", "root@192.0.2.1").execute(["true"], b"", 5)


def test_a_lab_node_gets_its_input_from_the_shared_folder(tmp_path: Path) -> None:
    @dataclass
    class Done:
        rc: int
        stdout: bytes
        stderr: bytes

    class Lab:
        share = tmp_path

        def run(self, node: str, argv: list[str], stdin: bytes = b"", timeout_s: float = 60) -> Done:
            assert node == "compute-001"
            local = [str(tmp_path / word.removeprefix("/lab/")) if word.startswith("/lab/") else word for word in argv]
            done = LocalAgent().execute(local, stdin, timeout_s)
            return Done(done.code, done.stdout, done.stderr)

    row = run_program(LabAgent(Lab(), "compute-001"), PACKAGES, MODULE, REQUEST, 20)
    assert row["error"]["kind"] == "device"
    assert not list(tmp_path.iterdir())


def test_the_command_line_is_one_python_word() -> None:
    argv = command(MODULE)
    assert argv[:2] == ["python3", "-c"]
    length, rest = stdin_bytes(PACKAGES, {"a": 1}).split(b"\n", 1)
    assert rest[int(length) :] == b'{"a": 1}'
