"""The whole probe between two processes of this machine, over TCP on the loopback and by copying in memory."""

from __future__ import annotations

import itertools
import os
import socket
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fabric.problem import InputError
from validators.agents.agent import LocalAgent, run_program
from validators.rdma import sets
from validators.rdma.endpoints import Endpoint, Wanted
from validators.rdma.host import chains
from validators.rdma.host.backend import QpSettings, TransferError
from validators.rdma.judge import Limits, judge
from validators.rdma.launch import Ask, Row, run_round
from validators.rdma.question import Question, check_groups, groups_of
from validators.rdma.whole import judge_whole, passes
from validators.results import State

pytestmark = pytest.mark.unit

IDENTITY = {"model": "m", "precision": "fp16", "kernel_config": "k", "generation": 3, "content": "abc"}
HERE = LocalAgent(python=sys.executable)


class Here:
    """Every device is this machine."""

    physical = False

    def __init__(self, agent=HERE) -> None:
        self.here = agent

    def agent(self, device: str):
        return self.here

    def reaches(self, device: str) -> bool:
        return True

    def dialect(self, device: str) -> str:
        return "linux"

    def rdma_device(self, end: Endpoint) -> str:
        return ""

    def abandon(self) -> None:
        self.left = True


def _end(server: str, leaf: str = "leaf-01", tenant: str = "acme", rail: int = 0) -> Endpoint:
    return Endpoint(server, "be0", "127.0.0.1", 400, tenant, "fabric", rail, leaf, "E1/1/1")


@pytest.fixture(autouse=True)
def free_port(monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr("validators.rdma.launch._FIRST_PORT", listener.getsockname()[1])


def _row(backend: str, scenario: str, verb: str = "read", **kw) -> Row:
    kw = {"groups": ((4096, 60), (65_536, 4)), "repeats": 3, "deadline_s": 20.0, **kw}
    ask = Ask(backend=backend, scenario=scenario, verb=verb, identity=dict(IDENTITY), qps=2, **kw)
    return run_round([sets.Flow(_end("owner"), _end("reader"))], ask, Here())[0]


@pytest.mark.parametrize(("backend", "verb"), list(itertools.product(["fake", "tcp"], ["read", "write"])))
def test_transfer_is_measured_and_its_content_checked(backend: str, verb: str) -> None:
    row = _row(backend, "transfer", verb)
    result = judge(None, row, None, Limits())
    assert result.state is State.PASS, result.text
    assert [check["counts"]["ok"] for check in row.drive["content"]] == [64, 64]
    assert {m.name for m in result.measurements} >= {"rate", "preparation p50", "posting p99", "completion p99.9"}
    assert result.labels["transport"] in {"TCP, no RDMA", "copy in memory, no network"}
    assert (row.drive["left_open"], row.serve["left_open"]) == (0, 0)


def _two(second_address: str = "127.0.0.1") -> list[Row]:
    ask = Ask(backend="tcp", groups=((4096, 30),), repeats=3, qps=1, identity=dict(IDENTITY), deadline_s=20.0)
    flows = [sets.Flow(_end("a"), _end("b")), sets.Flow(_end("c"), replace(_end("d"), address=second_address))]
    return run_round(flows, ask, Here())


@pytest.fixture
def own_names(monkeypatch) -> None:
    """Names that tell our files from those of tests that run beside us."""
    names = (SimpleNamespace(hex=f"test-{os.getpid()}-{number}") for number in itertools.count())
    monkeypatch.setattr("validators.rdma.launch.uuid.uuid4", lambda: next(names))


def test_flows_of_a_round_start_together_and_leave_no_file(own_names) -> None:
    rows = _two()
    assert [row.drive["transfers"] for row in rows] == [3, 3]
    assert abs(rows[0].drive["began"] - rows[1].drive["began"]) < 1.0
    assert not list(Path("/tmp").glob(f"kvfabric-test-{os.getpid()}-*"))
    whole = judge_whole(Question("bisection"), Ask(), rows, [judge(None, row, None, Limits()) for row in rows], "")
    assert whole.state is State.PASS, whole.text
    rows[1].drive["late_s"] = 60.0
    origins = {figure.name: figure.origin for figure in whole.measurements}
    assert (origins["sum of flows"], origins["ceiling of one reader"]) == ("measured", "computed")
    assert judge_whole(Question("bisection"), Ask(), rows, [], "").state is State.ERROR
    passed = [judge(None, row, None, Limits()) for row in rows]
    in_lab = judge_whole(Question("bisection"), Ask(), rows, passed, "", physical=False)
    assert in_lab.state is State.PASS
    assert "did not run together" in in_lab.text


def test_a_flow_that_fails_early_does_not_hold_the_others(own_names) -> None:
    rows = _two("192.0.2.1")
    assert rows[0].drive["transfers"] == 3
    assert rows[1].drive["error"]["kind"] == "device"
    assert rows[1].serve["error"]["text"] == "the other end ended before it was connected"
    assert not list(Path("/tmp").glob(f"kvfabric-test-{os.getpid()}-*")), "nothing of it is left"


def test_an_end_that_cannot_be_called_is_not_waited_for() -> None:
    flow = sets.Flow(replace(_end("owner"), address="192.0.2.1"), _end("reader"))
    ask = Ask(backend="tcp", groups=((4096, 3),), repeats=1, identity=dict(IDENTITY), deadline_s=40.0)
    row = run_round([flow], ask, Here())[0]
    assert row.serve["error"]["kind"] == "device"
    assert row.drive["error"]["text"] == "the other end ended before it was connected"
    assert judge(None, row, None, Limits()).state is State.FAIL


def test_what_runs_is_ended_when_nobody_waits_for_it(monkeypatch) -> None:
    places = Here()
    monkeypatch.setattr("validators.rdma.launch.start_together", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    ask = Ask(backend="tcp", groups=((4096, 3),), repeats=1, identity=dict(IDENTITY), deadline_s=3.0)
    with pytest.raises(KeyboardInterrupt):
        run_round([sets.Flow(_end("a"), _end("b")), sets.Flow(_end("c"), _end("d"))], ask, places)
    assert places.left


def test_a_restore_counts_all_passes_against_its_deadline() -> None:
    rows = _two()
    question = Question("restore", restore_bytes=3 * 4096 * 30, deadline_s=60.0)
    ask = Ask(groups=((4096, 30),))
    assert passes(question, ask, rows[0].flow, [row.flow for row in rows]) == 3
    parts = [judge(None, row, None, Limits()) for row in rows]
    assert judge_whole(question, ask, rows, parts, "ietf:inference-1.4").state is State.PASS
    late = judge_whole(replace(question, deadline_s=1e-9), ask, rows, parts, "")
    assert late.state is State.FAIL
    assert "2 of 2 missed the deadline" in late.text


@pytest.mark.parametrize(("backend", "verb"), [("fake", "read"), ("tcp", "read"), ("tcp", "write")])
def test_foreign_guessed_and_revoked_keys_open_nothing(backend: str, verb: str) -> None:
    result = judge(None, _row(backend, "access", verb), None, Limits())
    assert result.state is State.PASS, result.text
    texts = " ".join(part.text for part in result.parts)
    assert "revoked key: refused" in texts
    assert "other tenant's protection domain: refused" in texts
    assert "key of another session: refused" in texts
    assert "right key: SUCCESS" in texts


def test_stale_and_foreign_blocks_are_named() -> None:
    result = judge(None, _row("fake", "stale"), None, Limits())
    assert result.state is State.PASS, result.text
    assert any("64 stale generation" in part.text for part in result.parts)


def test_a_dead_peer_is_seen_in_time() -> None:
    row = _row("tcp", "peer-dies", settings={"timeout": 12})
    result = judge(None, row, None, Limits())
    assert result.state is State.PASS, result.text
    assert row.serve["signal"] == 14
    assert row.drive["left_open"] == 0


def test_a_missing_device_is_an_error_not_a_pass() -> None:
    result = judge(None, _row("auto", "transfer"), None, Limits())
    assert result.state is State.ERROR
    assert "--backend tcp" in str(result.evidence)


def test_a_host_that_does_not_answer_is_an_error_row() -> None:
    ask = Ask(backend="fake", identity=dict(IDENTITY), deadline_s=2.0)
    rows = run_round([sets.Flow(_end("a"), _end("b"))], ask, Here(LocalAgent(python="/no/such/python")))
    assert judge(None, rows[0], None, Limits()).state is State.ERROR


def test_a_program_that_hangs_is_killed_and_says_so() -> None:
    request = {"role": "serve", "backend": "fake", "open": {"address": "127.0.0.1"}, "listen": "127.0.0.1", "port": 0}
    row = run_program(
        HERE, ("validators.rdma.host",), "validators.rdma.host.main", {**request, "deadline_s": 1.0}, timeout_s=15
    )
    assert row["error"]["kind"] == "hung"


def _judged(**changes) -> State:
    row = _good_row()
    for name, value in changes.items():
        row.drive[name] = value
    return judge(None, row, Wanted(4096, 106, 3, "kv"), Limits(no_retransmissions=True)).state


def _good_row() -> Row:
    forced = {"mtu": 4096, "traffic_class": 106, "hop_limit": 64, "max_rd_atomic": 16, "timeout": 14, "retry_cnt": 6}
    counts = {"ok": 5, "damaged": 0, "stale generation": 0}
    times = dict.fromkeys(("count", "min", "p50", "p95", "p99", "p99.9", "max"), 0.01)
    counters = {"local": {"hw.packet_seq_err": 1}, "remote": {}}
    drive = {
        "scenario": "transfer", "payload_gbps": 100.0, "content": [{"counts": counts}], "wanted": dict(forced),
        "in_force": {"local": [forced], "remote": [dict(forced)]}, "counters": {"before": counters, "after": counters},
        "completion_s": times, "posting_s": times, "preparation_s": dict(times), "backend": "pyverbs", "transfers": 5, "bytes": 1 << 20,
        "completions": [0.01], "late_s": 0.0, "left_open": 0, "peer_left_open": 0,
    }  # fmt: skip
    return Row(sets.Flow(_end("a"), _end("b")), drive, {"role": "serve", "ended": "bye", "left_open": 0})


def test_a_good_row_passes_and_each_fault_fails() -> None:
    assert _judged() is State.PASS
    assert _judged(content=[{"counts": {"ok": 4, "stale generation": 1}}]) is State.FAIL
    assert _judged(content=[]) is State.FAIL
    wrong = {**_good_row().drive["in_force"]["local"][0], "traffic_class": 0}
    assert _judged(in_force={"local": [wrong], "remote": []}) is State.FAIL
    assert _judged(in_force={"local": [], "remote": []}) is State.ERROR
    assert _judged(left_open=1) is State.FAIL
    grown = {"before": {"local": {"hw.packet_seq_err": 1}, "remote": {}}}
    grown["after"] = {"local": {"hw.packet_seq_err": 3}, "remote": {}}
    assert _judged(counters=grown) is State.FAIL
    nothing: dict = {"before": {"local": {}, "remote": {}}, "after": {"local": {}, "remote": {}}}
    assert _judged(counters=nothing) is State.ERROR


def test_rate_and_tail_limits() -> None:
    row = _good_row()
    assert judge(None, row, None, Limits(least_share=0.9)).state is State.FAIL
    assert judge(None, row, None, Limits(least_share=0.2)).state is State.PASS
    assert judge(None, row, None, Limits(most_p99_ms=1.0)).state is State.FAIL


def test_coupon_collector_counts() -> None:
    assert [sets.flows_to_cover(n) for n in (2, 4, 8, 16, 32)] == [8, 21, 51, 115, 255]


def test_sets_of_flows(lab_plan) -> None:
    ends = [_end(f"s{n}", leaf=f"leaf-{n // 2}") for n in range(8)]
    rounds = sets.matrix(ends)
    flows = [flow for part in rounds for flow in part]
    assert len({flow.name for flow in flows}) == len(flows) == 8 * 7
    assert all(max(Counter(f.reader.name for f in part).values()) == 1 for part in rounds)
    across = sets.bisection(ends)
    assert len(across) == 4
    assert all({f.owner.leaf, f.reader.leaf} & {"leaf-0", "leaf-1"} != {f.owner.leaf, f.reader.leaf} for f in across)
    assert len(sets.incast(ends, ends[0], 7)) == 7
    with pytest.raises(InputError):
        sets.incast(ends, ends[0], 8)
    covering = [flow for part in sets.cover(ends, paths=2) for flow in part]
    assert sum(map(len, sets.cover(ends, paths=2, qps=4))) == len(covering) / 4
    assert min(Counter((f.owner.leaf, f.reader.leaf) for f in covering).values()) == 8
    filled = sets.restore(lab_plan, ends[:2], ends[2:])
    assert Counter(flow.owner.name for flow in filled) == {"s0:be0": 3, "s1:be0": 3}
    with pytest.raises(InputError):
        sets.pair(lab_plan, [_end("a")], [_end("b", tenant="globex")])
    assert sets.pair(lab_plan, [_end("a", tenant="storage")], [_end("b")]), "a peer may be read"


def test_pieces_are_cut_and_checked() -> None:
    from fabric.kv.model import load_model
    from fabric.kv.size import piece_plan

    plan = piece_plan(load_model("llama-3.1-70b"), 2048, tp=8)
    groups, note = groups_of(plan, 1 << 20)
    assert groups == ((4096, 256),)
    assert note.startswith("256 of 20480 pieces")
    with pytest.raises(InputError):
        check_groups([(60, 1)])


def test_windows_keep_order_and_deadlines() -> None:
    waiting: list[int] = []
    most = 0

    def post(chain: int) -> None:
        nonlocal most
        waiting.append(chain)
        most = max(most, len(waiting))

    def poll() -> list[tuple[int, str]]:
        return [(waiting.pop(0), "")] if waiting else []

    times = chains.run_window(50, 8, post, poll, 5.0)
    assert (times.posts, times.completions, most) == (50, 50, 8)
    with pytest.raises(TransferError, match="did not come"):
        chains.run_window(3, 2, lambda _c: None, list, 0.05)
    with pytest.raises(TransferError) as caught:
        chains.run_window(3, 2, lambda _c: None, lambda: [(0, "RETRY_EXC_ERR")], 1.0)
    assert caught.value.status == "RETRY_EXC_ERR"
    assert chains.chain_length(64, 8, 64) == 4
    assert chains.chain_slices(5, 2) == [(0, 2), (2, 4), (4, 5)]
    assert round(QpSettings(timeout=14, retry_cnt=7).detection_s, 2) == 2.15
