"""The RDMA probe over Soft-RoCE through the lab site's fabric: every scenario and every set of flows for real.

Flows cross leaf, spines and leaf in the tenant's VRF. Servers are reached as `kvfabric probe rdma SITE --lab` does it.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import replace
from typing import Any

import pytest

from validators.agents.agent import LabAgent, run_program
from validators.counters.proof import Frames, prove_counting
from validators.rdma import probe
from validators.rdma.judge import Limits
from validators.rdma.launch import MODULE, PACKAGES
from validators.rdma.places import LabPlaces
from validators.results import Result, State

pytestmark = pytest.mark.lab

OWNER, READER = "compute-001:be0-port0", "compute-003:be1-port0"
ASK = probe.Ask(groups=((4096, 150), (65_536, 4)), qps=2, repeats=3)
# a dead path is stated to be seen within 4.096 us x 2^15 x 4 x 7 = 3.8 s: room for a machine that does much else
SOON = {"timeout": 15}
QUICK = probe.Ask(groups=((4096, 16),), qps=4, repeats=1)


@pytest.fixture(scope="module")
def places(lab) -> LabPlaces:
    return LabPlaces(lab)


def _pair(lab_plan, places, counters: bool = True, **changes: Any) -> list[Result]:
    asked = replace(ASK, nobody_gid="10.1.0.77", **changes)
    return probe.run(lab_plan, probe.Question("pair", OWNER, READER), asked, places, counters=counters)


def _flow(results: list[Result]) -> Result:
    return next(result for result in results if "drive" in result.evidence)


def _texts(results: list[Result]) -> str:
    return "\n".join(f"{r.state.value} {r.check} {r.subject}: {r.text}" for r in results)


@pytest.mark.parametrize("verb", ["read", "write"])
def test_blocks_cross_the_fabric_in_their_class_and_every_counter_agrees(lab_plan, places, verb: str) -> None:
    results = _pair(lab_plan, places, verb=verb)
    assert {result.state for result in results} == {State.PASS}, _texts(results)
    flow = _flow(results)
    assert flow.labels["transport"] == "RoCEv2 through verbs"
    assert flow.labels["vrf"] == "Vrf-acme"
    assert any(part.text == "nothing left registered" for part in flow.parts)
    marking = next(result for result in results if result.check == "rdma.marking")
    assert marking.text.count(",") >= 7, "all eight stages of a way over a spine count the class"
    devices = {result.labels["device"] for result in results if result.check == "counters.path"}
    assert devices == {"compute-001", "compute-003", "leaf-01", "leaf-02", "spine-01", "spine-02"}


def test_traffic_that_is_not_marked_fails_by_what_the_ports_count(lab_plan, places) -> None:
    results = _pair(lab_plan, places, settings={"traffic_class": 0})
    assert _flow(results).state is State.FAIL
    assert "traffic_class is 0, wanted 106" in _flow(results).text
    marking = next(result for result in results if result.check == "rdma.marking")
    assert marking.state is State.FAIL
    assert "owner's leaf in (leaf-01 Ethernet0): 0 of at least" in marking.text


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize("scenario", ["access", "stale", "peer-dies"])
def test_what_must_be_refused_and_what_must_be_seen(lab_plan, places, scenario: str, verb: str) -> None:
    result = _flow(
        _pair(lab_plan, places, scenario=scenario, verb=verb, settings=SOON if scenario == "peer-dies" else {})
    )
    assert result.state is State.PASS, result.text
    if scenario != "peer-dies":
        assert any(part.text == "nothing left registered" for part in result.parts)


@pytest.mark.parametrize("scenario", ["wrong-gid", "overrun", "link-lost"])
def test_failures_are_seen_in_time(lab_plan, places, lab, scenario: str) -> None:
    result = _flow(_pair(lab_plan, places, scenario=scenario, settings=SOON))
    assert result.state is State.PASS, result.text
    assert "seen after" in result.text
    if scenario == "link-lost":
        assert lab.call("converge", timeout_s=60)["missing"] == [], "what was cut has come back"


def test_more_pieces_than_are_kept_built_are_rewritten_right(lab_plan, places) -> None:
    # more than are kept built, and a last chain that is shorter than the others
    result = _flow(
        _pair(lab_plan, places, verb="write", groups=((256, 2_001),), settings={"most_prebuilt": 500}, scenario="stale")
    )
    assert result.state is State.PASS, result.text


def test_another_servers_device_is_refused_by_what_its_gid_table_says(lab_plan, places) -> None:
    # its address is this server's too: the tenants of the two overlap, and one kernel has the devices of both
    asked = {"role": "serve", "backend": "pyverbs", "port": 18_999, "listen": "127.0.0.1", "deadline_s": 30.0}
    address = lab_plan.servers["compute-001"].ports[0].address.split("/")[0]
    assert lab_plan.servers["compute-002"].ports[0].address.split("/")[0] == address
    foreign = {"address": address, "device": "compute-002.be0-port0"}
    row = run_program(places.agent("compute-001"), PACKAGES, MODULE, {**asked, "open": foreign}, 60)
    assert row["error"]["kind"] == "device"
    assert "a device of another network namespace is never used" in row["error"]["text"]


@pytest.mark.parametrize(
    ("question", "flows"),
    [
        (probe.Question("matrix", tenant="acme"), 8),
        (probe.Question("cover"), 4),
        (probe.Question("bisection"), 2),
        (probe.Question("incast", reader=OWNER, count=2), 2),
        (probe.Question("restore", pool=("compute-003",), readers=("compute-001",), restore_bytes=1 << 20, deadline_s=240), 2),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)  # fmt: skip
def test_sets_of_flows(lab_plan, places, question: probe.Question, flows: int) -> None:
    # what a set adds to the counters is which links and which congestion they show: cover and incast
    counted = question.kind in {"cover", "incast"}
    results = probe.run(lab_plan, question, QUICK, places, counters=counted)
    read = [result for result in results if result.check == "counters.path" and result.state is not State.SKIPPED]
    assert bool(read) == counted
    assert sum("drive" in result.evidence for result in results) == flows
    whole = results[-1]
    assert whole.check == f"rdma.{question.kind}"
    assert whole.text.startswith(f"{flows} of {flows} flows measured")
    bad = [result for result in results if result.state not in {State.PASS, State.SKIPPED}]
    assert not bad, _texts(bad)
    links = [result for result in results if result.check == "rdma.links"]
    assert len(links) == (question.kind == "cover"), "a cover says that every link was met"


def test_pause_frames_are_counted_at_both_ends_of_a_cable(lab_plan, places) -> None:
    for device, port in (("compute-001", "be0-port0"), ("spine-01", "Ethernet0")):
        link = lab_plan.link_at[device, port]
        result = prove_counting(lab_plan, link, device, places.agent, Frames({3: 20}, {3: 2}))
        assert result.state is State.PASS, result.text
        assert result.measurements[0].value == 20


class WithPackage(LabPlaces):
    """Probes that find the package `ibverbs` in the shared folder, as a host does that has it installed."""

    def agent(self, device: str) -> LabAgent:
        return LabAgent(self.running, device, prefix=("env", "PYTHONPATH=/lab/packages"))


@pytest.mark.parametrize("verb", ["read", "write"])
def test_the_binding_from_pypi_moves_the_same_blocks(lab_plan, lab, verb: str) -> None:
    found = importlib.util.find_spec("ibverbs")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs the package ibverbs (pip install ibverbs)")
    shutil.copytree(found.submodule_search_locations[0], lab.share / "packages" / "ibverbs", dirs_exist_ok=True)
    results = _pair(lab_plan, WithPackage(lab), counters=verb == "read", backend="ibverbs", verb=verb)
    assert {result.state for result in results} <= {State.PASS, State.SKIPPED}, _texts(results)
    assert _flow(results).state is State.PASS
    assert _flow(results).labels["backend"] == "ibverbs"
    assert "does not read back traffic_class, hop_limit" in next(
        p.text for p in _flow(results).parts if p.check == "rdma.settings"
    )


def test_a_limit_that_software_cannot_meet_fails(lab_plan, places) -> None:
    asked = replace(QUICK, groups=((4096, 8),))
    seen = probe.collect(lab_plan, probe.Question("pair", OWNER, READER), asked, places, counters=False)
    results = probe.results(lab_plan, seen, Limits(least_share=0.97))
    assert results[0].state is State.FAIL
    assert "wanted 97%" in results[0].text
    assert probe.results(lab_plan, seen, Limits())[0].state is State.PASS
