"""`kvfabric kv` end to end: tables, JSON, exit codes."""

from __future__ import annotations

import json

import pytest

from fabric.cli.main import main

pytestmark = pytest.mark.unit


def _run(capsys, *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["kv", *argv])
    out = capsys.readouterr()
    return int(caught.value.code or 0), out.out, out.err


def test_models_lists_bytes_per_token(capsys) -> None:
    code, out, _ = _run(capsys, "models")
    assert code == 0
    assert "327680" in out
    code, out, _ = _run(capsys, "models", "--format", "json")
    assert {row["model"]: row["per_token_written"] for row in json.loads(out)}["deepseek-v3"] == 70_272


def test_size_shows_formula_both_units_and_pieces(capsys) -> None:
    code, out, _ = _run(capsys, "size", "--model", "llama-3.1-70b", "--tokens", "61000", "--tp", "8")
    assert code == 0
    assert "2 x 80 layers x 8 KV heads x 128 dim x 2 B = 327680 B per token" in out
    assert "19.99" in out
    assert "18.62" in out
    assert "610080" in out
    code, out, _ = _run(
        capsys, "size", "--layers", "80", "--kv-heads", "8", "--head-dim", "128", "--tokens", "1", "--format", "json"
    )
    assert json.loads(out)["exact"]["bytes"] == 327_680


@pytest.mark.parametrize(
    "argv",
    [
        ("size", "--tokens", "10"),
        ("size", "--model", "nope", "--tokens", "10"),
        ("size", "--model", "llama-3.1-8b", "--layers", "3", "--tokens", "10"),
        ("size", "--layers", "3", "--tokens", "10"),
        ("size", "--model", "llama-3.1-8b", "--tokens", "10", "--dtype", "fp99"),
        ("size", "--model", "llama-3.1-8b", "--tokens", "0"),
        ("move", "--model", "llama-3.1-8b"),
        ("move", "--model", "llama-3.1-8b", "--tokens", "10", "--efficiency", "2"),
    ],
)
def test_bad_input_exits_2_without_a_traceback(capsys, argv: tuple[str, ...]) -> None:
    code, out, err = _run(capsys, *argv)
    assert code == 2
    assert not out
    assert "Traceback" not in err


def test_move_records_and_replays(capsys, tmp_path) -> None:
    record = str(tmp_path / "d.jsonl")
    code, out, _ = _run(
        capsys, "move", "--model", "llama-3.1-70b", "--tokens", "61000", "--tp", "8", "--record", record
    )
    assert code == 0
    assert "50 GB/s one way" in out
    assert "choice     move" in out
    code, out, _ = _run(capsys, "move", "--replay", record)
    assert "0 differ" in out
    code, out, _ = _run(capsys, "move", "--replay", record, "--line-gbps", "1")
    assert "1 differ" in out
    code, out, _ = _run(capsys, "move", "--replay", record, "--format", "json")
    assert json.loads(out)[0]["recorded"]["choice"] == "move"


def test_benefit_of_the_published_case_and_of_sets(capsys) -> None:
    code, out, _ = _run(capsys, "benefit")
    assert code == 0
    assert "not worth it for outputs longer than 49 tokens" in out
    code, out, _ = _run(capsys, "benefit", "--model", "llama-3.1-70b", "--requests", "50")
    assert "one big tenant" in out
    assert "session stickiness" in out
    code, out, _ = _run(capsys, "benefit", "--model", "deepseek-v3", "--requests", "20", "--format", "json")
    data = json.loads(out)
    assert data["case"]["longest_worth"] == 49
    assert len(data["placements"]) == 5
