"""The page of a check says every input that a catalog may give it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fabric.cli.main import cli
from validators.check_inputs import about_inputs, inputs_of
from validators.check_registry import all_checks

pytestmark = pytest.mark.unit


def _explained(check, *more):
    return CliRunner().invoke(cli, ["catalog", "--explain", check, *more], standalone_mode=False).stdout


@pytest.mark.parametrize("check", all_checks())
def test_every_input_is_on_the_page_of_its_check(check):
    model = all_checks()[check].Inputs
    assert [one.name for one in inputs_of(all_checks()[check])] == list(model.model_fields)
    assert about_inputs(all_checks()[check])
    page = _explained(check)
    assert page.index("\nInputs:\n") < page.index("\nExample:\n")
    for name in model.model_fields:
        assert f"\n    {name} " in page


def test_kinds_limits_and_defaults_are_in_words():
    words = {one.name: (one.kind, one.words) for one in inputs_of(all_checks()["gateway-failover"])}
    assert words == {
        "tenant": ("text", "must be given"),
        "ways": ("list: one of process, link, silent, node, power", "default process"),
        "within_ms": ("number, above 0", "default 5000"),
        "flows": ("whole number, at least 1, at most 100", "default 4"),
    }
    others = {one.name: one.words for check in ("link-flaps", "roce-watermarks", "device-command") for one in
              inputs_of(all_checks()[check])}  # fmt: skip
    assert (others["most_since_boot"], others["pool"], others["lacks"]) == ("no limit", "default true", "default none")


def test_the_same_as_data():
    inputs = json.loads(_explained("link-flaps", "--format", "json"))["inputs"]
    assert inputs[1] == {
        "name": "window_s",
        "kind": "number, at least 0, at most 3600",
        "default": 3.0,
        "required": False,
    }
