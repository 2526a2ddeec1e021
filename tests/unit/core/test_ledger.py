"""The ledger's promises, over any history of names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.allocation.ledger import Ledger, PoolExhaustedError
from fabric.problem import InputError

pytestmark = pytest.mark.unit

NAMES = st.lists(st.sampled_from([f"leaf-{n:02d}" for n in range(1, 30)]), unique=True, max_size=20)


@given(st.lists(NAMES, min_size=1, max_size=8))
def test_a_key_keeps_its_number_whatever_comes_and_goes(history: list[list[str]]) -> None:
    ledger = Ledger()
    given_before: dict[str, int] = {}
    for names in history:
        now = ledger.allocate("asn", names, 64)
        assert set(now) == set(names)
        assert len(set(now.values())) == len(now)
        for name in names:
            assert given_before.get(name, now[name]) == now[name]
        given_before |= now
    assert len(set(ledger.pools["asn"].values())) == len(ledger.pools["asn"])


@given(NAMES, st.randoms())
def test_order_of_asking_does_not_matter(names: list[str], random: object) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Ledger().allocate("p", names, 64) == Ledger().allocate("p", shuffled, 64)


@given(NAMES, NAMES)
def test_a_removed_name_gets_its_number_back(first: list[str], second: list[str]) -> None:
    ledger = Ledger()
    before = ledger.allocate("p", first, 64)
    ledger.allocate("p", second, 64)
    assert ledger.allocate("p", first, 64) == before


@given(NAMES.filter(bool), NAMES)
def test_renaming_keeps_the_number(names: list[str], others: list[str]) -> None:
    ledger = Ledger()
    before = ledger.allocate("p", names, 64)
    renamed = {f"new-{name}": name for name in names}
    ledger.allocate("p", [f"new-{name}" for name in names], 64, renamed)
    for name in names:
        assert ledger.pools["p"][f"new-{name}"] == before[name]
    after = ledger.allocate("p", [*(f"new-{name}" for name in names), *others], 64, renamed)
    assert len(set(after.values())) == len(after)


@given(NAMES, NAMES)
@settings(max_examples=40)
def test_text_round_trip(first: list[str], second: list[str]) -> None:
    ledger = Ledger()
    ledger.allocate("a", first, 64)
    ledger.allocate("b", second, 64)
    data = json.loads(ledger.to_text())
    again = Ledger(data["pools"], data["pins"])
    assert again.to_text() == ledger.to_text()
    assert again.changes_since(ledger) == []


def test_exhaustion_names_the_pool_and_its_holders() -> None:
    ledger = Ledger()
    ledger.allocate("leaf-asn", ["a", "b"], 3)
    ledger = ledger.copy()
    with pytest.raises(PoolExhaustedError) as caught:
        ledger.allocate("leaf-asn", ["c", "d"], 3)
    assert "leaf-asn" in str(caught.value)
    assert "held for removed names: a, b" in str(caught.value)
    assert caught.value.retired == ("a", "b")


def test_forgetting_gives_numbers_back() -> None:
    ledger = Ledger()
    ledger.allocate("p", ["a", "b"], 2)
    ledger = ledger.copy()
    ledger.allocate("p", ["a"], 2)
    assert ledger.retired() == {"p": ("b",)}
    assert ledger.forget_retired() == 1
    assert ledger.allocate("p", ["a", "c"], 2) == {"a": 0, "c": 1}


@pytest.mark.parametrize(
    "text",
    [
        "not json",
        "[]",
        '{"version": 9}',
        '{"version": 1, "pools": {"p": {"a": 1, "a": 2}}}',
        '{"version": 1, "pools": {"p": {"a": 1, "b": 1}}}',
        '{"version": 1, "pools": {"p": {"a": -1}}}',
        '{"version": 1, "pools": {"p": {"a": "x"}}}',
        '{"version": 1, "pools": {"p": {"a": true}}}',
        '{"version": 1, "pins": {"p": {"a": 1}}}',
    ],
)
def test_a_damaged_file_is_said_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Ledger.load(path)
    assert caught.value.problems[0].file == str(path)


def test_saving_is_atomic_and_silent_when_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger()
    ledger.allocate("p", ["a"], 2)
    assert ledger.save(path)
    assert not ledger.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.json"]
    assert Ledger.load(path).pools == {"p": {"a": 0}}
