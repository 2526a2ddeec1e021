"""The difference of two runs: what got worse comes first, and asking more is no loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.report.runs import record, run
from validators.journal_records import Record
from validators.report.difference import compare, plain_names
from validators.results import NEEDS_PERMISSION, Measurement, Result, State

pytestmark = pytest.mark.unit


def test_the_difference_says_what_got_worse_first():
    def measured(value):
        return (Measurement("bw", value, "Gb/s", 3, 2.0), Measurement("gap", 500 - value, "ms"))

    before = run(
        record("same"),
        record("breaks"),
        record("mends", State.FAIL),
        record("gone"),
        record("m", measurements=measured(370)),
    )
    after = run(record("same"), record("breaks", State.FAIL), record("mends"), record("m", measurements=measured(200)))
    changes = compare(before, after)
    assert [c.kind for c in changes] == ["worse", "slower", "slower", "gone", "better"]
    assert "370 -> 200 Gb/s (-46%)" in changes[1].text
    assert compare(before, before) == []
    assert not compare(run(record("m", measurements=measured(370))), run(record("m", measurements=measured(372))))


def test_the_difference_tells_another_catalog_from_what_did_not_run():
    """A case with other inputs is compared with itself; what is not covered any more is said."""
    part = (Result("ladder", "step", State.PASS, ""),)
    before = run(record("ladder:acme#11111111", State.PASS, *part), record("idle:acme#1", State.SKIPPED))
    after = run(
        record("ladder:acme#22222222", State.FAIL, *part),
        Record("idle:acme#1", "gateways", Result("idle", "acme", State.SKIPPED, NEEDS_PERMISSION)),
    )
    assert [(c.kind, c.case, c.text) for c in compare(before, after)] == [
        ("worse", "ladder:acme#22222222", "new: fail: text of ladder:acme#22222222"),
        ("other", "coverage", "only now without: disruptive checks skipped: 1 (idle)"),
        ("other", "coverage", "no longer without: skipped: 1 (cabling)"),
        ("other", "ladder:acme#22222222", "asked with other inputs than in the baseline"),
    ]
    two = run(record("ladder:acme#2"), record("ladder:acme#3"))
    assert [c.kind for c in compare(run(record("ladder:acme#1")), two)] == ["gone", "new", "new"]


def test_a_case_that_one_run_skipped_is_one_difference_and_asking_more_is_no_loss():
    parts = [Result("nat", f"row {n}", State.PASS, "") for n in range(3)]
    asked = run(record("nat:acme#11111111", State.PASS, *parts))
    skipped = run(record("nat:acme#11111111", State.SKIPPED))
    named = [(c.kind, c.case) for c in compare(asked, skipped) if c.case != "coverage"]
    assert named == [("worse", "nat:acme#11111111")]
    assert [c.kind for c in compare(skipped, asked) if c.case != "coverage"] == ["better"]
    assert [(c.kind, c.case) for c in compare(asked, run(record("x")))] == [("gone", "nat:acme#11111111"), ("new", "x")]
    lost = run(record("nat:acme#11111111", State.PASS, *parts[:2]))
    assert [(c.kind, c.case) for c in compare(asked, lost)] == [("gone", "nat:acme#11111111/row 2")]


def test_figures_of_a_lab_move_and_are_neither_slower_nor_faster():
    ran = [run(record("m", measurements=(Measurement("bw", value, "Gb/s"),))) for value in (300, 100)]
    assert [c.kind for c in compare(*ran)] == ["slower"]
    labs = [replace(one, info=replace(one.info, ports="virtual")) for one in ran]
    assert [(c.kind, c.text) for c in compare(*labs)] == [("other", "bw: 300 -> 100 Gb/s (-67%), in a lab")]


def test_cases_are_named_without_digest_where_that_is_plain():
    cases = ["nat:acme#11111111/row", "bgp:leaf#22222222", "bgp:leaf#33333333", "plan"]
    assert list(plain_names(cases).values()) == ["nat:acme/row", "bgp:leaf#22222222", "bgp:leaf#33333333", "plan"]
