"""Runs and records that are made up, for tests of reports."""

from __future__ import annotations

from validators.journal_records import Record, RunInfo
from validators.report.model import Run
from validators.results import Result, State

INFO = RunInfo(
    "r",
    "lab",
    "distributed",
    "p" * 64,
    "c" * 64,
    "simulated",
    "2026-01-01T00:00:00Z",
    finished="2026-01-01T00:01:38Z",
    seed=7,
    versions={"frr": "8.4.4"},
)


def record(case, state=State.PASS, *parts, **more):
    return Record(case, "cabling", Result("cabling", case, state, f"text of {case}", parts=parts, **more))


def run(*records, topology=None):
    return Run(INFO, records, topology or {})


def part(subject, state=State.PASS, check="tenant-matrix"):
    return Result(check, subject, state, f"text of {subject}")
