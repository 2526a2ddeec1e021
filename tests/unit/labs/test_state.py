"""Folders of labs: alive, dead, swept, told once."""

from __future__ import annotations

import os

import pytest

from fabric.problem import CouldNotRunError, InputError
from labs import state
from labs.model import Lab

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path))
    return tmp_path


def test_a_lab_lives_as_long_as_its_lock(root):
    folder, alive = state.create("one")
    assert state.find() == state.find("one") == folder
    with pytest.raises(InputError, match="of this name is running"):
        state.create("one")
    os.close(alive)
    with pytest.raises(CouldNotRunError, match="lab one is dead: its supervisor was killed"):
        state.find("one")
    assert list(root.iterdir()) == []
    with pytest.raises(InputError, match="no lab is running"):
        state.find("one")


def test_a_death_is_told_once_and_to_whom_it_concerns(root):
    folder, alive = state.create("one")
    state.remove(folder)
    os.close(alive)
    state.note_death(folder, "the machine ended")
    _, other = state.create("other")
    assert state.find().name == "other"
    assert state.deaths("other") == {}
    assert state.deaths("one") == {"one": "the machine ended"}
    assert state.deaths() == {}
    os.close(other)


def test_a_new_lab_of_the_name_makes_an_old_death_forgotten(root):
    state.note_death(root / "one", "long ago")
    _, alive = state.create("one")
    assert state.deaths() == {}
    os.close(alive)


def test_a_removal_that_was_cut_short_is_no_lab(root):
    (root / ".gone-one-17").mkdir()
    assert state.running() == []
    assert state.deaths() == {}
    assert list(root.iterdir()) == []


def test_more_than_one_lab_must_be_named(monkeypatch):
    handles = [state.create(name)[1] for name in ("one", "two")]
    with pytest.raises(InputError, match="more than one is running: one, two"):
        state.find()
    with pytest.raises(InputError, match="not running; running: one, two"):
        state.find("three")
    monkeypatch.setenv("KVFABRIC_LAB", "two")
    assert state.find().name == "two"
    for handle in handles:
        os.close(handle)


@pytest.mark.parametrize("name", ["", "Upper", "has space", "../escape", "x" * 40])
def test_a_name_that_cannot_be_a_folder_is_refused(name):
    with pytest.raises(InputError, match="lower case letters"):
        state.create(name)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_damaged_facts_are_no_facts_and_a_damaged_lab_says_so(tmp_path, text):
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "facts.json").write_text(text)
    assert state.facts_of(tmp_path / "junk") == {}
    with pytest.raises(CouldNotRunError, match="lab junk is dead"):
        state.find()
    with pytest.raises(CouldNotRunError, match="damaged"):
        Lab.from_json(text)
