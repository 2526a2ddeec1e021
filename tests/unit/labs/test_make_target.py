"""`make test-lab` is a part of `make test`, run by the same command: it selects files and nothing else."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.unit


def _pytest_of(target: str) -> list[str]:
    """The last pytest command that a target would run."""
    if not shutil.which("make"):
        pytest.skip("no make here")
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "-m pytest" in line][-1].split()


def test_the_lab_suite_is_the_same_command_on_files_of_the_whole_one():
    whole, suite = _pytest_of("test"), _pytest_of("test-lab")
    assert suite[: len(whole)] == whole
    files = suite[len(whole) :]
    assert whole[-2:] == ["-m", "lab"]
    assert len(files) == len(set(files)) >= 8
    assert all("pytestmark = pytest.mark.lab" in (ROOT / file).read_text() for file in files)
