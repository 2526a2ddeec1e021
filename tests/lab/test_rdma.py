"""The RDMA probe over Soft-RoCE between two network namespaces of the embedded lab's machine: every scenario for real."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from fabric.problem import CouldNotRunError
from validators.agents.agent import LabAgent
from validators.rdma import sets
from validators.rdma.endpoints import Endpoint, Wanted
from validators.rdma.judge import Limits, judge
from validators.rdma.launch import Ask, run_round
from validators.results import Result, State

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lab

BUILD = """
set -e
ip netns add owner; ip netns add reader
ip link add vo type veth peer name vr
ip link set vo netns owner mtu 9000; ip link set vr netns reader mtu 9000
ip -n owner addr add 10.9.0.1/24 dev vo; ip -n reader addr add 10.9.0.2/24 dev vr
for pair in owner:vo reader:vr; do
  ns=${pair%:*}; dev=${pair#*:}
  ip -n $ns link set lo up; ip -n $ns link set $dev up
  ip netns exec $ns rdma link add rxe$dev type rxe netdev $dev
done
ip netns exec owner ping -c1 -W2 10.9.0.2 >/dev/null
"""
IDENTITY = {"model": "m", "precision": "fp16", "kernel_config": "k", "generation": 9, "content": "prefix"}


@dataclass
class Machine:
    lab: Any
    share: Path

    def run(self, node: str, argv, stdin: bytes = b"", timeout_s: float = 60) -> Any:
        return self.lab.run("", argv, stdin=stdin, timeout_s=timeout_s)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    from labs.launch import launch
    from labs.model import Lab

    try:
        started = launch(Lab("test-rdma", (), ()), tmp_path_factory.mktemp("files"), engine="uml")
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    started.running.run("", ["sh", "-c", BUILD]).check()
    yield Machine(started.running, started.running.share)
    started.running.stop()


def _probe(machine: Machine, scenario: str, verb: str, **changes: Any) -> Result:
    owner = Endpoint("owner", "vo", "10.9.0.1", 10, "acme", "fabric", 0, "leaf-01", "E1/1")
    reader = Endpoint("reader", "vr", "10.9.0.2", 10, "acme", "fabric", 0, "leaf-02", "E1/1")
    ask = Ask(
        backend="pyverbs", scenario=scenario, verb=verb, groups=((4096, 300), (65_536, 8)), qps=2, repeats=5,
        settings={"traffic_class": 106, "timeout": 12}, identity=dict(IDENTITY), nobody_gid="10.9.0.77", deadline_s=60.0,
    )  # fmt: skip
    ask = replace(ask, **changes)
    agents = {name: LabAgent(machine, name, prefix=("ip", "netns", "exec", name)) for name in ("owner", "reader")}
    row = run_round([sets.Flow(owner, reader)], ask, agents.__getitem__)[0]
    return judge(row, Wanted(4096, 106, 3, "kv"), Limits())


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize("scenario", ["transfer", "access", "stale", "peer-dies"])
def test_scenario_passes_over_soft_roce(machine: Machine, scenario: str, verb: str) -> None:
    result = _probe(machine, scenario, verb)
    assert result.state is State.PASS, result.text
    assert result.labels["transport"] == "RoCEv2 through verbs"
    if scenario != "peer-dies":
        assert any(part.text == "nothing left registered" for part in result.parts)


@pytest.mark.parametrize("scenario", ["wrong-gid", "overrun", "link-lost"])
def test_failures_are_seen_in_time(machine: Machine, scenario: str) -> None:
    result = _probe(machine, scenario, "read")
    assert result.state is State.PASS, result.text


def test_more_pieces_than_are_kept_built_are_rewritten_right(machine: Machine) -> None:
    # 66,001 pieces: more than are kept built, and a last chain that is shorter than the others
    result = _probe(machine, "transfer", "write", groups=((256, 66_001),), repeats=2)
    assert result.state is State.PASS, result.text


def test_counters_of_the_device_grow(machine: Machine) -> None:
    drive = _probe(machine, "transfer", "read").evidence["drive"]
    before, after = (drive["counters"][when]["local"]["hw.rcvd_pkts"] for when in ("before", "after"))
    assert after - before >= 5 * 300
