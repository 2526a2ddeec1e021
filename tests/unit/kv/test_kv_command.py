"""`kvfabric kv` end to end: tables, JSON, exit codes."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

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
        ("move", "--model", "llama-3.1-8b", "--tokens", "10", "--efficiency", "nan"),
        ("move", "--model", "llama-3.1-8b", "--tokens", "10", "--line-gbps", "inf"),
        ("move", "--model", "llama-3.1-8b", "--tokens", "10", "--block-tokens", "9" * 30),
        ("move", "--model", "llama-3.1-8b", "--tokens", "9" * 400),
        ("size", "--model", "llama-3.1-8b", "--tokens", "9" * 400),
        ("size", "--layers", "9" * 400, "--kv-heads", "1", "--head-dim", "1", "--tokens", "1"),
        ("models", "--tokens", "9" * 400),
        ("benefit", "--ttft-split", "nan"),
        ("benefit", "--tpot-split", "inf"),
        ("benefit", "--requests", "9" * 30, "--model", "llama-3.1-8b"),
        ("restore", "lab", "--nodes", "1", "--size", "9" * 400 + "GB"),
        ("restore", "lab", "--nodes", "1", "--size", "1GB", "--window", "9" * 400 + "s"),
        ("restore", "lab", "--nodes", "1", "--size", "1GB", "--arrivals", "even", "--over", "9" * 30 + "s"),
        ("restore", "lab", "--nodes", "1", "--size", "1GB", "--pool", "nope"),
        ("restore", "lab", "--nodes", "9" * 30, "--size", "1GB"),
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
    assert re.search(r"^T_recompute .* ms at .*\nchoice +move$", out, re.MULTILINE)
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


def test_a_record_stands_by_itself_without_the_model_file(capsys, tmp_path) -> None:
    config, record = tmp_path / "config.json", tmp_path / "d.jsonl"
    config.write_text('{"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512, "_name_or_path": "mine"}')
    assert _run(capsys, "move", "--config", str(config), "--tokens", "5000", "--record", str(record))[0] == 0
    config.unlink()
    code, out, _ = _run(capsys, "move", "--replay", str(record))
    assert code == 0
    assert "1 decisions, 0 differ" in out


@pytest.mark.parametrize(
    ("old", "new"),
    [('"tokens": 5000', '"tokens": NaN'), ('"ports": 1', '"ports": "x"'), ('"count": 32', '"count": -1')],
)
def test_a_spoilt_record_is_named_by_line(capsys, tmp_path, old: str, new: str) -> None:
    record = tmp_path / "d.jsonl"
    _run(capsys, "move", "--model", "llama-3.1-8b", "--tokens", "5000", "--record", str(record))
    assert old in record.read_text()
    record.write_text(record.read_text().replace(old, new))
    code, out, err = _run(capsys, "move", "--replay", str(record))
    assert code == 2
    assert "d.jsonl:1" in err
    assert not out


@pytest.mark.parametrize(
    "text",
    [
        "arrival_s,input_tokens,output_tokens\nnan,10,10\n",
        "arrival_s,input_tokens,output_tokens\n1,10," + "9" * 40 + "\n",
        "\udcff\udcfe",
    ],
)
def test_bad_traces(capsys, tmp_path, text: str) -> None:
    trace = tmp_path / "t.csv"
    trace.write_bytes(text.encode("utf-8", "surrogateescape"))
    code, _, err = _run(capsys, "benefit", "--model", "llama-3.1-8b", "--trace", str(trace))
    assert code == 2
    assert "t.csv" in err


@pytest.mark.parametrize("spoilt", ['"num_hidden_layers": 1e400', '"kv_lora_rank": "x"', '"head_dim": [1]'])
def test_bad_config_numbers(capsys, tmp_path, spoilt: str) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"num_hidden_layers": 4, "num_attention_heads": 8, "hidden_size": 512, ' + spoilt + "}")
    code, _, err = _run(capsys, "size", "--config", str(config), "--tokens", "10")
    assert code == 2
    assert "config.json" in err


@pytest.mark.parametrize(
    "argv",
    [
        ("move", "--model", "llama-3.1-70b", "--tokens", "61000", "--tp", "8"),
        ("move", "--model", "llama-3.1-70b", "--tokens", "1"),
        ("benefit",),
        ("benefit", "--model", "llama-3.1-8b", "--requests", "20"),
        ("restore", "xoc-64", "--nodes", "2", "--size", "1GB"),
    ],
)
@pytest.mark.parametrize("kind", ["html", "svg"])
def test_plots_are_whole_and_say_their_model(capsys, tmp_path, argv: tuple[str, ...], kind: str) -> None:
    path = tmp_path / f"p.{kind}"
    code, out, _ = _run(capsys, *argv, "--plot", str(path))
    assert code == 0
    assert "Model: " in out
    assert "Left out: " in out
    text = path.read_text()
    assert not re.search(r"\bnan\b|\binf\b", text)
    if kind == "svg":
        assert ElementTree.fromstring(text).tag.endswith("svg")
    else:
        assert "<svg" in text
        assert "Left out" in text


@pytest.mark.parametrize(
    "argv",
    [
        ("move", "--model", "llama-3.1-70b", "--tokens", "10"),
        ("benefit",),
        ("size", "--model", "llama-3.1-70b", "--tokens", "10"),
        ("restore", "xoc-64", "--nodes", "2", "--size", "1GB"),
    ],
)
def test_json_says_its_model_too(capsys, argv: tuple[str, ...]) -> None:
    data = json.loads(_run(capsys, *argv, "--format", "json")[1])
    assert data.get("method") or data["model"]
    assert data["left_out"]


@pytest.mark.parametrize(("data", "said"), [(b"\xff\xfe", "not UTF-8"), (b"", "holds no decision")])
def test_a_file_that_is_no_record_is_refused(capsys, tmp_path, data: bytes, said: str) -> None:
    (tmp_path / "d.jsonl").write_bytes(data)
    code, out, err = _run(capsys, "move", "--replay", str(tmp_path / "d.jsonl"))
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("move", "--model", "llama-3.1-8b", "--tokens", "10", "--mtu", "1500"), "256, 512, 1024, 2048, 4096"),
        (("restore", "xoc-64", "--nodes", "1", "--size", "1GB", "--pool-ports", "999"), "8 ports"),
        (("restore", "xoc-64", "--nodes", "1", "--size", "1GB", "--over", "nonsense"), "nonsense"),
    ],
)
def test_what_is_not_there_is_not_taken_for_less(capsys, words: tuple[str, ...], said: str) -> None:
    code, out, err = _run(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("name", "text", "words", "said"),
    [
        ("t.csv", "arrival_s,input_tokens,output_tokens\n0,1\n", ("benefit", "--model", "llama-3.1-8b", "--trace"),
         "t.csv:2: error: request: output_tokens is no whole number: ''"),
        ("t.csv", "arrival_s,input_tokens,output_tokens\n0,x,1\n", ("benefit", "--model", "llama-3.1-8b", "--trace"),
         "input_tokens is no whole number: 'x'"),
        ("c.json", '{"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "layer_types": [{}, []]}',
         ("size", "--tokens", "1", "--config"), "no layer of it keeps keys and values"),
        ("c.json", "[]", ("size", "--tokens", "1", "--config"), "c.json:1: error: c.json: is not a JSON object"),
        ("c.json", "{}", ("size", "--tokens", "1", "--config"), "none of num_hidden_layers"),
    ],
)  # fmt: skip
def test_odd_files_are_refused_with_a_fix(tmp_path, capsys, name, text, words, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit) as caught:
        main(["kv", *words, str(tmp_path / name)])
    err = capsys.readouterr().err
    assert (caught.value.code, said in err, "fix: " in err) == (2, True, True), err


def test_a_record_of_which_a_number_is_none_is_refused_with_its_line(tmp_path, capsys):
    record = tmp_path / "r.jsonl"
    _run(capsys, "move", "--tokens", "9", "--model", "llama-3.1-8b", "--record", str(record))
    decision = json.loads(record.read_text())
    for change in ({"move_s": []}, {"choice": "x"}, {"request": 5}, {"terms": {**decision["terms"], "wire_s": None}}):
        record.write_text(json.dumps(decision | change) + "\n")
        code, _, err = _run(capsys, "move", "--replay", str(record))
        assert (code, "r.jsonl:1: error" in err, "fix: " in err) == (2, True, True), err
