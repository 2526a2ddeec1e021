"""Block identity: each verdict for its own cause, with numpy and without."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validators.rdma.host import stamp
from validators.rdma.host.memory import Buffer
from validators.rdma.host.stats import jain, percentile, summary
from validators.rdma.host.workload import Workload

pytestmark = pytest.mark.unit

MINE = stamp.Identity("llama", "fp16", "layer-b16-tp8", generation=7, content="prefix")


@pytest.fixture(params=["numpy", "crc32"])
def kind(request, monkeypatch) -> int:
    if request.param == "crc32":
        monkeypatch.setattr(stamp, "_numpy", lambda: pytest.fail("numpy is loaded though it is not needed"))
    return stamp.checksum_kind(request.param == "numpy")


def _verdicts(written: stamp.Identity, expected: stamp.Identity, kind: int, size: int = 512, count: int = 5) -> dict:
    memory = memoryview(bytearray(size * count))
    stamp.fill(memory, [(0, size, count, 0)], written, kind)
    counts, _ = stamp.check(memory, [(0, size, count, 0)], expected, kind)
    return {verdict: n for verdict, n in counts.items() if n}


def test_own_blocks_are_ok(kind: int) -> None:
    assert _verdicts(MINE, MINE, kind) == {"ok": 5}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"generation": 6}, "stale generation"),
        ({"precision": "fp8"}, "wrong name space"),
        ({"model": "other"}, "wrong name space"),
        ({"kernel_config": "contiguous-b16-tp8"}, "wrong name space"),
        ({"content": "another prefix"}, "wrong block"),
        ({"content": "", "session": "s1"}, "wrong block"),
        ({"first_position": 3}, "wrong block"),
    ],
)
def test_each_cause_has_its_verdict(kind: int, change: dict, verdict: str) -> None:
    assert _verdicts(dataclasses.replace(MINE, **change), MINE, kind) == {verdict: 5}


def test_private_suffix_of_a_session(kind: int) -> None:
    private = dataclasses.replace(MINE, content="", session="s1")
    assert _verdicts(private, private, kind) == {"ok": 5}


@settings(max_examples=60, deadline=None)
@given(byte=st.integers(0, 511), bit=st.integers(0, 7), vector=st.booleans())
def test_any_flipped_bit_is_seen(byte: int, bit: int, vector: bool) -> None:
    memory = memoryview(bytearray(1024))
    kind = stamp.checksum_kind(vector)
    stamp.fill(memory, [(0, 512, 2, 0)], MINE, kind)
    memory[512 + byte] ^= 1 << bit
    counts, bad = stamp.check(memory, [(0, 512, 2, 0)], MINE, kind)
    assert counts["ok"] == 1
    assert counts["damaged"] == 1
    assert bad == [(1, "damaged")]


def test_swapped_pieces_swapped_words_and_old_payload_are_seen(kind: int) -> None:
    memory = memoryview(bytearray(1024))
    stamp.fill(memory, [(0, 512, 2, 0)], MINE, kind)
    first, second = bytes(memory[:512]), bytes(memory[512:])
    memory[:512], memory[512:] = second, first
    assert stamp.check(memory, [(0, 512, 2, 0)], MINE, kind)[0]["wrong block"] == 2
    memory[:512], memory[512:] = first, second
    memory[64:72], memory[72:80] = first[72:80], first[64:72]
    assert stamp.check(memory, [(0, 512, 2, 0)], MINE, kind)[0]["damaged"] == 1
    other = memoryview(bytearray(1024))
    stamp.fill(other, [(0, 512, 2, 0)], dataclasses.replace(MINE, generation=6), kind)
    memory[:512], memory[512:] = first, second
    memory[64:512] = other[64:512]
    assert stamp.check(memory, [(0, 512, 2, 0)], MINE, kind)[0]["damaged"] == 1


def test_what_was_not_written_is_missing(kind: int) -> None:
    memory = memoryview(bytearray(1024))
    stamp.fill(memory, [(0, 512, 1, 0)], MINE, kind)
    assert stamp.check(memory, [(0, 512, 2, 0)], MINE, kind)[0] == {
        "ok": 1, "damaged": 0, "stale generation": 0, "wrong name space": 0, "wrong block": 0, "not written": 1,
    }  # fmt: skip


def test_a_missing_first_block_says_nothing_about_the_others(kind: int) -> None:
    memory = memoryview(bytearray(1024))
    stamp.fill(memory, [(0, 512, 2, 0)], MINE, kind)
    memory[:512] = bytes(512)
    counts, bad = stamp.check(memory, [(0, 512, 2, 0)], MINE, kind)
    assert (counts["ok"], bad) == (1, [(0, "not written")])


def test_numpy_is_loaded_for_much_only() -> None:
    assert stamp.checksum_kind(True, 1 << 20) == stamp.checksum_kind(False)
    assert stamp.checksum_kind(True, 1 << 30) != stamp.checksum_kind(False)


@given(
    groups=st.lists(st.tuples(st.sampled_from([64, 512, 4096]), st.integers(1, 40)), min_size=1, max_size=3),
    scatter=st.booleans(),
    owner_is_local=st.booleans(),
)
def test_a_workload_moves_every_block_to_its_place(groups, scatter: bool, owner_is_local: bool) -> None:
    work = Workload(tuple(groups), scatter)
    owner, reader = bytearray(work.total), bytearray(work.total)
    stamp.fill(memoryview(owner), work.owner_runs(), MINE, 1)
    for piece in work.pieces(owner_is_local):
        here, there = (piece.local, piece.remote) if owner_is_local else (piece.remote, piece.local)
        reader[there : there + piece.size] = owner[here : here + piece.size]
    assert stamp.check(memoryview(reader), work.receiver_runs(), MINE, 1)[0]["ok"] == work.count


def test_percentiles_and_fairness() -> None:
    assert percentile([3, 1, 2], 50) == 2
    assert summary(list(range(1, 1001)))["p99.9"] == 999
    assert summary([]) == {"count": 0}
    assert jain([5, 5, 5]) == pytest.approx(1.0)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)


def test_memory_is_seen_clear_or_not() -> None:
    buffer = Buffer(3 << 20)
    assert buffer.is_clear()
    buffer.map[2 << 20] = 1
    assert not buffer.is_clear()
    buffer.clear()
    assert buffer.is_clear()
    buffer.close()
