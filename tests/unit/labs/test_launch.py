"""Starting a lab that cannot start: the reason reaches the person in words, and nothing stays."""

from __future__ import annotations

from collections import namedtuple

import pytest

from fabric.cli.main import _run
from fabric.problem import CouldNotRunError
from labs import launch
from labs.model import Lab
from labs.uml import machine as uml

pytestmark = pytest.mark.unit


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """The engine that was asked for is taken, and the labs' folder is this one."""
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path / "s"))
    monkeypatch.setattr("labs.engines.choose", lambda name: name)
    monkeypatch.setattr("labs.native.machine.limits", list)
    return tmp_path / "s"


def test_why_the_machine_cannot_start_is_said_though_its_folder_has_gone(chosen, capsys):
    assert _run(["lab", "up", "lab", "--engine", "native", "--rdma", "exclusive"]) == 3
    err = capsys.readouterr().err
    assert "could not run: lab lab did not start: engine native runs with the RDMA mode that this host has" in err
    assert "Traceback" not in err
    assert list(chosen.iterdir()) == []


def test_files_that_cannot_be_written_name_the_place_and_another(chosen):
    def full(_folder):
        raise OSError(28, "No space left on device")

    with pytest.raises(CouldNotRunError) as caught:
        launch.launch(Lab("x", (), ()), full, "native")
    text = f"lab x cannot keep its files, {chosen}: No space left on device; KVFABRIC_LAB_STATE names another place"
    assert str(caught.value).startswith(text)
    assert list(chosen.iterdir()) == []


def test_a_machine_that_is_silent_is_no_file_error(tmp_path):
    with pytest.raises(CouldNotRunError, match="does not answer within 60 s: is this host very busy"), launch._room_in(tmp_path):  # fmt: skip
        raise TimeoutError("true in the machine")


@pytest.mark.parametrize(("free_mb", "wanted", "given"), [(8192, 4096, 4096), (1024, 4096, 992), (600, 512, 512)])
def test_a_vm_gets_what_it_wants_or_what_there_is(monkeypatch, free_mb, wanted, given):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(uml.shutil, "disk_usage", lambda _place: usage(0, 0, free_mb << 20))
    assert uml.memory_mb(wanted) == given


def test_a_vm_without_room_is_refused_with_what_to_do(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(uml.shutil, "disk_usage", lambda _place: usage(0, 0, 64 << 20))
    with pytest.raises(CouldNotRunError) as caught:
        uml.memory_mb(4096)
    assert "/dev/shm, which has 64 MB free" in str(caught.value)
    assert "docker run --shm-size" in str(caught.value)


def test_a_user_without_a_home_has_no_bytecode_but_a_lab(monkeypatch, tmp_path):
    home = tmp_path / "home"
    home.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert uml._bytecode(tmp_path) == "/proc/self/cwd/pycache"
    assert (tmp_path / "pycache").is_dir()
    assert not (tmp_path / "pycache").is_symlink()


def test_what_a_vm_is_told_has_no_letter_that_its_words_cannot_hold(tmp_path):
    odd = tmp_path / "my code, 'here'"
    odd.mkdir()
    (tmp_path / "chain").symlink_to(odd)
    assert uml.seen(tmp_path, "code", tmp_path / "chain") == "/proc/self/cwd/code"
    assert (tmp_path / "code").readlink() == odd.resolve()
