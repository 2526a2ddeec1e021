"""Where what labs boot is kept: root's builds are everybody's, a user's own go first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labs.uml import cache

pytestmark = pytest.mark.unit


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The folder of all and a user's home, both empty."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache, "_OF_ALL", tmp_path / "all")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return tmp_path / "all", tmp_path / "home" / ".cache" / "kvfabric"


def _made(place, *names):
    for name in names:
        (place / name).mkdir(parents=True)


def test_root_builds_for_everybody_and_a_user_for_himself(places, monkeypatch):
    of_all, own = places
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache.cache_dir() == of_all
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cache.cache_dir() == own


def test_a_user_boots_what_root_built_unless_there_is_his_own(places, monkeypatch):
    of_all, own = places
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cache.newest("root-*") is None
    _made(of_all, "root-9", "root-10")
    assert cache.newest("root-*") == of_all / "root-10"
    _made(own, "root-2")
    assert cache.newest("root-*") == own / "root-2"


def test_a_place_that_was_named_is_the_only_one(places, tmp_path, monkeypatch):
    _made(places[0], "root-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "named"))
    assert cache.cache_dir() == tmp_path / "named" / "kvfabric"
    assert cache.newest("root-*") is None
