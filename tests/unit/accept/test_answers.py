"""Answers of devices: where JSON begins, and what is none."""

from __future__ import annotations

import pytest

from validators.devices.answers import UnreadableError, document

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("said", "found"),
    [('{"a": 1}', {"a": 1}), ("% warning\n[1]\nleaf-01# ", [1]), ('Last login: today\n{"a": []}\n', {"a": []})],
)
def test_what_a_shell_prints_around_json_is_left_out(said, found):
    assert document(said, "`show x`") == found


def test_a_document_that_must_be_an_object_does_not_begin_with_a_list():
    assert document('[warn] slow\n{"PORT": {}}', "CONFIG_DB", "{") == {"PORT": {}}


@pytest.mark.parametrize(
    ("said", "why"), [("Unknown command", "did not print JSON: 'Unknown command'"), ('{"a": ', "cut off or broken")]
)
def test_who_printed_no_json_is_named(said, why):
    with pytest.raises(UnreadableError, match=r"^`show x` ") as error:
        document(said, "`show x`")
    assert why in str(error.value)
