"""The gateway probes against the rendered gateways of the lab, and some of them with something wrong planted there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.plan import Plan
from fabric.render.gateway import render
from validators.connections import in_lab
from validators.connections.lab_stand import OUTSIDE, Stand
from validators.failover.drain_in_lab import run_drain
from validators.failover.in_lab import run_failover
from validators.failover.lanes import lay
from validators.results import Result, State
from validators.session.in_lab import run_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from labs.client import Running

pytestmark = pytest.mark.lab

TABLE = "ip kvfabric"
# the machine may be busy: what must happen is held to here, how soon is the probes' own business
WITHIN_MS = 20_000.0


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan("lab")


@pytest.fixture(autouse=True)
def _leaves_nothing(lab: Running) -> Iterator[None]:
    yield
    for node in ("compute-001", "compute-003", "edge-01"):
        assert "kvprobe" not in lab.run(node, ["ip", "link"]).out
        assert "lookup 777" not in lab.run(node, ["ip", "rule"]).out
    assert lab.call("faults") == []


def _reload(lab: Running) -> None:
    lab.run("gw-01", ["nft", "-f", "/etc/kvfabric/nftables.conf"]).check()


def _texts(results: list[Result]) -> list[str]:
    return [f"{result.state} {result.subject}: {result.text}" for result in results]


def _failed(results: list[Result]) -> list[str]:
    """Return what is not as it should be; a tester that a busy machine held up decides nothing."""
    return _texts([result for result in results if result.state in (State.FAIL, State.ERROR)])


def test_every_exposure_of_a_tenant_behaves_as_declared(lab: Running, plan: Plan) -> None:
    results = in_lab.run_nat(plan, lab, tenant="acme")
    assert not _failed(results)
    passed = {result.labels["mode"] for result in results if result.state is State.PASS}
    assert passed == {"masquerade", "portForward", "static"}, _texts(results)


def test_a_stand_begins_and_ends_without_flows_of_testers(lab: Running, plan: Plan) -> None:
    layout = lay(plan, lab, "acme")

    def flows() -> str:
        return lab.run("gw-01", ["conntrack", "-L", "-s", str(OUTSIDE)]).out

    ports = "--orig-port-src 7 --orig-port-dst 443 --reply-port-src 443 --reply-port-dst 7"
    ends = f"-s {OUTSIDE[2]} -d 203.0.113.20 -r 10.1.0.1 -q {OUTSIDE[2]} {ports}"
    old = f"conntrack -I -p tcp {ends} --state ESTABLISHED --timeout 100 -w 1"
    lab.run("gw-01", ["sh", "-c", old]).check()
    assert "ESTABLISHED" in flows()
    with Stand(plan, lab, layout.places, layout.blocks):
        assert not flows()
        lab.run("gw-01", ["sh", "-c", old]).check()
    assert not flows()


def test_a_forward_to_the_wrong_port_is_found(lab: Running, plan: Plan) -> None:
    key = "203.0.113.20 . tcp . 443"
    wrong = f"delete element {TABLE} forwards {{ {key} }}; add element {TABLE} forwards {{ {key} : 10.1.0.1 . 22 }}"
    lab.run("gw-01", ["nft", wrong]).check()
    try:
        (result,) = in_lab.run_nat(plan, lab, tenant="acme", exposure="forward")
    finally:
        _reload(lab)
    assert result.state is State.FAIL
    assert "10.1.0.1:22" in result.text


def test_a_wrong_timer_in_the_gateway_is_found(lab: Running, plan: Plan) -> None:
    text = render(plan, "gw-01")["nftables.conf"]
    wrong = text.replace("unreplied : 30, replied : 120", "unreplied : 30, replied : 60")
    assert wrong != text
    lab.run("gw-01", ["nft", "-f", "-"], stdin=wrong.encode()).check()
    try:
        (result,) = in_lab.run_idle(plan, lab, tenant="acme", exposure="masquerade")
        kept = lab.run("gw-01", ["nft", "list", "ct", "timeout", "ip", "kvfabric", "udp.acme.masquerade"]).out
    finally:
        _reload(lab)
    rows = {part.labels["kind"]: part for part in result.parts}
    assert rows["udp-two-way"].state in (State.FAIL, State.UNKNOWN), rows["udp-two-way"].text
    assert rows["udp-two-way"].evidence["survived_s"] < 8
    assert "rendered for the lab; the plan declares 120 s" in rows["tcp-established"].text
    assert "replied : 1m" in kept  # what was there is there again


def test_flows_die_and_live_as_their_mode_says_when_a_gateway_falls_silent(lab: Running, plan: Plan) -> None:
    results = run_failover(plan, lab, tenant="acme", cases=["silent"], within_ms=WITHIN_MS)
    lost = [result for result in results if result.labels.get("case") == "silent lost"]
    assert not _failed(lost)
    assert {result.labels["mode"] for result in lost} == {"masquerade", "portForward", "static"}


def test_a_drain_cuts_nothing(lab: Running, plan: Plan) -> None:
    results = run_drain(plan, lab, tenant="acme", exposure="masquerade")
    cut = [part.text for result in results for part in result.parts if "established flows" in part.subject]
    landed = [part.text for result in results for part in result.parts if part.subject.endswith("new flows")]
    assert cut == ["none of 10 established flows was cut"], _texts(results)
    assert all(text.startswith("0 of ") for text in landed), landed


def test_the_last_gateway_that_takes_flows_is_not_drained(lab: Running) -> None:
    try:
        first = lab.run("gw-01", ["gatewayctl", "drain", "--settle", "2", "--deadline", "10"])
        assert "acme: new flows go to gw-02" in first.out
        refused = lab.run("gw-02", ["gatewayctl", "drain"])
        assert (refused.rc, "acme, globex: no other gateway takes new flows" in refused.err) == (3, True)
    finally:
        lab.run("gw-01", ["gatewayctl", "undrain"]).check()
    status = lab.run("gw-02", ["gatewayctl", "status"])
    assert status.out.startswith("gw-02: active")


def test_sessions_outlive_what_happens_to_their_connections(lab: Running, plan: Plan) -> None:
    results = run_session(plan, lab, tenant="acme", exposure="forward", cases=["worker", "tool", "gateway"])
    assert not _failed(results)
    assert [result.labels["case"] for result in results] == ["worker", "tool", "gateway"]
    assert {result.labels["front"] for result in results} == {"VIP 192.0.2.1:443"}
