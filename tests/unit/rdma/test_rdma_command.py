"""`kvfabric probe rdma` from options to text, JSON and exit code, over TCP on the loopback."""

from __future__ import annotations

import dataclasses
import json
import socket
import sys

import pytest

from fabric.cli.main import main
from validators.agents.agent import LocalAgent

pytestmark = pytest.mark.unit

PAIR = ("lab", "--from", "compute-001:be0-port0", "--to", "compute-003:be0-port0", "--no-counters", "--backend", "tcp")


@pytest.fixture(autouse=True)
def loopback(monkeypatch) -> None:
    """Every server is this machine, every address the loopback's."""
    from validators.rdma import endpoints, places, question

    here = LocalAgent(python=sys.executable)
    monkeypatch.setattr(places.SshPlaces, "agent", lambda *_: here)
    find = endpoints.find
    local = lambda plan, name: [dataclasses.replace(e, address="127.0.0.1") for e in find(plan, name)]  # noqa: E731
    monkeypatch.setattr(question, "find", local)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr("validators.rdma.launch._FIRST_PORT", listener.getsockname()[1])


def _run(capsys, *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["probe", "rdma", *argv])
    out = capsys.readouterr()
    return int(caught.value.code or 0), out.out, out.err


def test_a_model_workload_passes_and_the_fallback_is_said(capsys) -> None:
    argv = (*PAIR, "--model", "llama-3.1-8b", "--tokens", "512", "--repeats", "3", "--prefill-tokens-per-s", "1e9")
    code, out, err = _run(capsys, *argv)
    assert code == 0, out + err
    assert (
        "PASS  rdma.transfer compute-001:be0-port0 -> compute-003:be0-port0 [TCP, no RDMA] (ietf:inference-1.1)" in out
    )
    assert "recompute: a rank's cache takes" in out
    assert "layer-b16-tp8: all 2048 pieces" in err


def test_json_has_labels_settings_and_evidence(capsys) -> None:
    code, out, _ = _run(capsys, *PAIR, "--verb", "write", "--repeats", "2", "--format", "json")
    assert code == 0
    row, counters = json.loads(out)
    assert counters["state"] == "skipped"
    assert row["labels"]["tenant"] == "acme"
    assert row["labels"]["priority"] == "3"
    assert row["evidence"]["drive"]["wanted"]["traffic_class"] == 26 * 4 + 2
    assert row["evidence"]["drive"]["in_force"]["local"][0]["dscp"] == 26


def test_a_limit_that_is_not_met_exits_1(capsys) -> None:
    code, out, _ = _run(capsys, *PAIR, "--repeats", "2", "--least-share", "0.99")
    assert code == 1
    assert "wanted 99%" in out


@pytest.mark.parametrize(
    "argv",
    [
        ("lab", "--from", "nobody", "--to", "compute-003"),
        ("lab", "--from", "compute-001", "--to", "compute-002"),
        (*PAIR, "--piece", "60"),
        (*PAIR, "--scenario", "link-lost"),
        ("no-such-site",),
    ],
)
def test_bad_input_exits_2(capsys, argv: tuple[str, ...]) -> None:
    code, out, err = _run(capsys, *argv)
    assert code == 2
    assert "Traceback" not in out + err


def test_no_rdma_device_exits_3(capsys) -> None:
    code, out, _ = _run(capsys, *PAIR[:-1], "pyverbs", "--repeats", "1")
    assert code == 3
    assert "missing" in out or "peer" in out


def test_counters_that_cannot_be_read_are_named_errors(capsys) -> None:
    argv = [word for word in PAIR if word != "--no-counters"]
    code, out, _ = _run(capsys, *argv, "--repeats", "2")
    assert code == 3
    assert "PASS  rdma.transfer" in out
    assert "ERROR counters.path leaf-01" in out
    assert "SKIPPED counters.path compute-001" in out


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("lab", "--lab", "x", "--from", "leaf-01:Ethernet999"), "is no port with a cable"),
        (("lab", "--lab", "no-such-lab", "--from", "compute-001:be0-port0"), "no-such-lab"),
        (("lab", "--from", "compute-001:be0-port0"), "no lab is running"),
    ],
)
def test_pause_frames_need_a_lab_and_a_cable(capsys, monkeypatch, tmp_path, argv: tuple[str, ...], text: str) -> None:
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        main(["probe", "pfc", *argv])
    out = capsys.readouterr()
    assert int(caught.value.code or 0) in {2, 3}
    assert text in out.out + out.err
    assert "Traceback" not in out.out + out.err
