"""Our max-min rates and transfer times against those of SimGrid, which nobody here wrote."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabric.analysis.flows.maxmin import NO_LINK, max_min
from fabric.analysis.flows.network import Network
from fabric.analysis.flows.restore import GBPS_TO_BYTES, play
from fabric.analysis.flows.traffic import hashed_rates, pairs_of
from fabric.build import load_plan

pytestmark = pytest.mark.external

_PLAYER = Path(__file__).parent / "simgrid_flows.py"
_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module", autouse=True)
def _simgrid() -> None:
    if (
        not shutil.which(_PYTHON)
        or subprocess.run([_PYTHON, "-c", "import simgrid"], check=False, capture_output=True).returncode
    ):
        pytest.skip("SimGrid is not installed for the system's Python (Debian: python3-simgrid)")


def simgrid(paths: np.ndarray, capacity: np.ndarray, size: int, probe: float) -> dict[str, Any]:
    case = {"paths": paths.tolist(), "capacity": capacity.tolist(), "size": size, "probe": probe}
    done = subprocess.run(
        [_PYTHON, str(_PLAYER)], check=False, input=json.dumps(case), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[:2000]
    return json.loads(done.stdout)


@pytest.mark.parametrize(("flows", "seed"), [(1, 0), (7, 1), (60, 2), (200, 3)])
def test_rates_of_random_flows(flows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    capacity = rng.integers(1, 20, 16) * 100.0
    paths = np.full((flows, 4), NO_LINK)
    for row in paths:
        hops = int(rng.integers(1, 5))
        row[:hops] = rng.choice(len(capacity), hops, replace=False)
    theirs = simgrid(paths, capacity, 10_000_000, 1.0)
    np.testing.assert_allclose(max_min(paths, capacity), theirs["rates"], rtol=1e-6)


def test_rates_of_hashed_flows_on_a_planned_fabric() -> None:
    network = Network(load_plan("xoc-128"), "backend")
    source, target = (np.array(side) for side in zip(*pairs_of(network, "prefill-decode"), strict=True))
    paths, rates = hashed_rates(network, source, target, 2, seed=1)
    assert len(set(np.round(rates, 3))) > 3  # hashing made uneven shares, or nothing is compared
    theirs = simgrid(paths, network.capacity, 100_000, 1.0)
    np.testing.assert_allclose(rates, theirs["rates"], rtol=1e-6)


def test_ends_of_transfers_that_free_their_share() -> None:
    rng = np.random.default_rng(4)
    capacity = np.array([100.0, 200.0, 400.0, 400.0, 800.0])
    paths = np.array([rng.choice(5, 3, replace=False) for _ in range(30)])
    size = 10_000
    ends, _ = play(paths, capacity, np.zeros(len(paths)), size * GBPS_TO_BYTES)
    np.testing.assert_allclose(ends, simgrid(paths, capacity, size, 0.5)["ends"], rtol=1e-6)
