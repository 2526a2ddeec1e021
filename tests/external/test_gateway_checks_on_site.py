"""The gateway checks of an acceptance on a real site: test hosts of the hosts file, real ssh, a real nftables gateway."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fabric.build import load_plan
from fabric.plan import Plan, PoolShare
from tests.external.sshd import Sshd, sshd
from validators.check import Context
from validators.connections.checks import ConnectionLadder, ExposureInputs, LadderInputs, NatBehaviour
from validators.connections.rig import INSIDE_HOP, OUTSIDE, OUTSIDE_HOP, Rig, Timers
from validators.devices.hosts import read_hosts
from validators.devices.ssh import SshDevices
from validators.journal_undo import UndoLog
from validators.results import State

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nft"),
    pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs /usr/sbin/sshd (openssh-server)"),
]


def _plan() -> Plan:
    """Return the lab's plan, but with one gateway that has the whole pool, as the rig's has."""
    plan = load_plan("lab")
    acme = plan.tenants["acme"]
    pool, *others = acme.exposures
    pool = replace(pool, shares=(PoolShare("gw-01", "203.0.113.0", "203.0.113.7"),))
    plan.tenants["acme"] = replace(acme, exposures=(pool, *others))
    return plan


PLAN = _plan()


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """A site whose two test hosts are namespaces behind an sshd each; its gateway has the rig's eight addresses."""
    folder = tmp_path_factory.mktemp("site")
    with ExitStack() as stack:
        rig = stack.enter_context(Rig(Timers()))

        def reached(space: str, **tester: object) -> dict[str, object]:
            (folder / space).mkdir()
            python = Path(sys.executable).parent  # agents need numpy
            command = f'PATH={python}:$PATH exec ip netns exec {space} sh -c "$SSH_ORIGINAL_COMMAND"'
            there: Sshd = stack.enter_context(sshd(folder / space, command))
            keys = {"key_file": there.key, "known_hosts": there.known_hosts}
            return {"hostname": "127.0.0.1", "port": there.port, "username": "root", "data": {**keys, "tester": tester}}

        inside = {"network": "10.1.0.224/28", "hosts": ["10.1.0.225", "10.1.0.226"], "hop": INSIDE_HOP}
        outside = {"network": OUTSIDE, "hosts": ["198.18.1.1", "198.18.1.2"], "hop": OUTSIDE_HOP}
        data = {
            "compute-001": reached(rig.inside, side="inside", port="tester", **inside),
            "somewhere": reached(rig.outside, side="outside", port="tester", **outside),
        }
        file = folder / "hosts.yaml"
        file.write_text(yaml.safe_dump(data))
        devices = SshDevices(read_hosts(file, PLAN))
        undo = UndoLog(folder / "undo.jsonl", devices)
        yield Context(PLAN, devices, undo)
        assert not undo.pending


def test_nat_of_a_masquerade_exposure_is_measured_between_the_test_hosts(context: Context) -> None:
    inputs = ExposureInputs(tenant="acme", exposure="masquerade")
    result = NatBehaviour().judge(PLAN, inputs, NatBehaviour().collect(context, inputs))
    assert result.state is State.PASS, result.text
    assert result.labels["vrf"] == "Vrf-acme"
    assert result.parts


def test_a_ladder_climbs_between_the_test_hosts(context: Context) -> None:
    inputs = LadderInputs(tenant="acme", exposure="masquerade", connections=100, start=200, highest=200, wanted=50)
    result = ConnectionLadder().judge(PLAN, inputs, ConnectionLadder().collect(context, inputs))
    assert result.state in {State.PASS, State.UNKNOWN}, result.text
    assert result.evidence["ladder"]["points"]
