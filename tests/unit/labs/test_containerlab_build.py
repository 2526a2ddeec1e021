"""The containerlab engine without Docker: versions, recipes, what it says when something is not there."""

from __future__ import annotations

import pytest

from fabric.problem import CouldNotRunError
from labs.containerlab import binary, build, oneshot
from labs.machine import Machine

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "version"),
    [("go version go1.26.8 linux/amd64", (1, 26)), ("go version devel go1.25-abc", (1, 25)), ("gcc 12", (0, 0))],
)
def test_the_version_of_go_is_read(text, version):
    assert binary.go_version(text) == version


def test_an_old_go_is_named_with_what_is_needed(tmp_path, monkeypatch):
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert "Go 1.24 or newer" in binary.go_lacks()
    assert "go1.19.8" in binary.go_lacks()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "no `go` on the PATH" in binary.go_lacks()


def test_parts_that_are_not_built_are_named_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = build.lacks()
    assert len(found) == 5
    assert all("kvfabric lab build --engine containerlab" in text for text in found)


def test_a_build_that_fails_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\n[ "$1" = version ] && echo go version go1.26.0 && exit\necho no such module >&2\nexit 3\n'
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(CouldNotRunError, match="no such module"):
        binary.build()
    assert binary.cached() is None
    assert [path.name for path in (tmp_path / "cache/kvfabric").iterdir()] == [".containerlab.lock"]


def _machine(answers: list[bytes]) -> Machine:
    import socket

    ours, theirs = socket.socketpair()
    for answer in answers:
        theirs.sendall(answer)
    theirs.shutdown(socket.SHUT_WR)
    machine = Machine(None, ours)
    machine.far = theirs
    return machine


def test_a_program_in_a_machine_of_its_own_is_followed_to_its_end():
    said = []
    exchange = [b'{"op":"ready"}\n', b'{"id":1,"op":"out","fd":1,"data":"b25lCnR3bwo="}\n{"id":1,"op":"exit","rc":0}\n']
    oneshot.run(_machine(exchange), ["true"], 5, said.append)
    assert said == ["one", "two"]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([b'{"op":"ready"}\n', b'{"id":1,"op":"exit","rc":2}\n'], "exit 2"),
        ([b'{"op":"ready"}\n'], "ended before"),
        ([b'{"op":"out"}\n'], "before it was ready"),
    ],
)
def test_a_machine_that_fails_says_how(answers, words):
    with pytest.raises(CouldNotRunError, match=words):
        oneshot.run(_machine(answers), ["true"], 5, print)
