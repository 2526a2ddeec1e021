"""What `lab impair`, `break` and `heal` print."""

from __future__ import annotations

import json
from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from fabric.cli.main import cli
from labs import model

pytestmark = pytest.mark.unit

LAB = model.Lab("x", (model.Node("leaf-01", "leaf"),), ())
FAULT = {"target": "leaf-01", "since": 1.5, "for_s": 10.0, "kind": "impair", "text": "loss 1%"}


class _Lab:
    name, lab = "x", LAB

    def __init__(self, answer):
        self.answer = answer

    def call(self, _function, **_arguments):
        return self.answer


def _run(monkeypatch, answer, *argv):
    monkeypatch.setattr("labs.client.attach", lambda _name="": nullcontext(_Lab(answer)))
    return CliRunner().invoke(cli, ["lab", *argv])


def test_a_fault_is_said_in_words_with_its_end(monkeypatch):
    assert _run(monkeypatch, FAULT, "impair", "leaf-01", "--loss", "1").output == "leaf-01: impair loss 1%, for 10 s\n"
    for_ever = {**FAULT, "kind": "break", "text": "silent", "for_s": 0.0}
    said = _run(monkeypatch, for_ever, "break", "leaf-01").output
    assert said == "leaf-01: break silent, until `kvfabric lab heal`\n"
    assert json.loads(_run(monkeypatch, FAULT, "break", "leaf-01", "--format", "json").output) == FAULT


def test_what_was_healed_is_said_and_nothing_is_said_to_be_nothing(monkeypatch):
    assert _run(monkeypatch, ["leaf-01"], "heal").stdout == "leaf-01: healed\n"
    nothing = _run(monkeypatch, [], "heal")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "no fault to heal\n")
