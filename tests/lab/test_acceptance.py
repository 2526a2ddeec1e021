"""The acceptance of the lab site for real: all of it passes, and faults planted in the network are each found by name."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from tests.lab.traffic import wait_until
from validators.catalog import Selection, generate
from validators.catalog_file import to_yaml
from validators.check import Stage
from validators.check_registry import all_checks
from validators.report.write import FORMATS
from validators.results import State
from validators.runner_acceptance import Acceptance, accept
from validators.runner_events import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from labs.client import Running
    from validators.report.model import Run

pytestmark = pytest.mark.lab

_BAD = {State.FAIL, State.ERROR, State.UNKNOWN}
# until a fault is seen for what it is; and after the deed, that what follows from it has shown too
_UNTIL_S, _SPREAD_S = 60.0, 3.0


def _accept(lab: Running, out: Path, **more: object) -> tuple[Run, dict[str, Path]]:
    run, _, files = accept(Acceptance(load_plan("lab"), out, lab=lab.name, **more))  # type: ignore[arg-type]
    return run, files


def _said(run: Run) -> list[tuple[str, str, str, str]]:
    bad = [record.result for record in run.records if record.result.state in _BAD]
    return [(result.check, result.subject, result.text, result.place) for result in bad]


def test_the_acceptance_signs_the_lab_site_off(lab: Running, tmp_path: Path) -> None:
    run, files = _accept(lab, tmp_path, allow_disruptive=True, settle_s=30.0)
    assert run.verdict == "accepted", _said(run)
    ran = {record.result.check for record in run.records if record.result.state is State.PASS}
    assert ran >= {"cabling", "config-drift", "tenant-matrix", "dscp-path", "rdma-transfer", "rdma-scenario"}
    assert ran >= {"nat-behaviour", "idle-timeouts", "connection-ladder", "fabric-failover", "gateway-drift"}
    assert ran >= {"session-flaps", "request-sessions", "gateway-failover", "gateway-drain"}
    assert set(files) == set(FORMATS)
    drawn = {kind for record in run.records for kind in record.result.evidence}
    assert drawn >= {"matrix", "idle", "ladder", "timeline"}
    assert "<svg" in files["html"].read_text()
    assert lab.call("faults") == []


class Clearing(Progress):
    """Ends a BGP session when the stage of optics begins, as somebody might who is not asked."""

    def __init__(self, lab: Running) -> None:
        super().__init__(io.StringIO(), colour=False)
        self.lab = lab

    def stage_started(self, stage: Stage, cases: int) -> None:
        super().stage_started(stage, cases)
        if stage is Stage.OPTICS:
            self.lab.run("leaf-01", ["vtysh", "-c", "clear bgp Ethernet256"]).check()


def test_a_session_that_goes_down_and_comes_back_meanwhile_is_named_at_both_ends(lab: Running, tmp_path: Path) -> None:
    chosen = Selection(checks=("device-answers", "link-flaps", "dscp-path", "session-flaps"))
    wanted = Acceptance(load_plan("lab"), tmp_path, lab=lab.name, selection=chosen, settle_s=20.0)
    run, _, _ = accept(wanted, [Clearing(lab)])
    assert lab.call("converge", timeout_s=60)["missing"] == []
    said = _said(run)
    assert [(check, subject) for check, subject, _, _ in said] == [
        ("session-flaps", "leaf-01"),
        ("session-flaps", "spine-01"),
    ]
    (_, _, text, place), _ = said
    assert "leaf-01 E1/33 -> spine-01: BGP went down 1 time, 0 are allowed; BGP is up since" in text
    assert place.startswith("leaf-01 E1/33 (Ethernet256), link ")


@dataclass(frozen=True)
class Fault:
    """What is done where, how it is taken back, which check must fail, and what its text and place name."""

    node: str
    deed: str
    undo: str
    check: str
    text: str
    place: str


@pytest.fixture(scope="module")
def before(lab: Running) -> dict[str, object]:
    """What the routers agreed on before any fault was planted, when two looks showed the same."""
    looks = [lab.call("observe")]
    assert wait_until(lambda: looks.append(lab.call("observe")) or looks[-1] == looks[-2], 60)
    return looks[-1]


def _vtysh(*lines: str) -> str:
    words = " ".join(f"-c '{line}'" for line in ("configure terminal", *lines))
    return f"vtysh {words}"


def _nft(old: str, new: str) -> str:
    file = "/etc/kvfabric/nftables.conf"
    return f"grep -q '{old}' {file} && sed 's/{old}/{new}/' {file} | nft -f -"


def _swap(a: str, b: str) -> str:
    names = f"ip link set {a} down; ip link set {b} down; ip link set {a} name kvswap; ip link set {b} name {a}"
    return f"{names}; ip link set kvswap name {b}; ip link set {a} up; ip link set {b} up"


def _vrf(port: str, vrf: str) -> str:
    # down first: a port on its way from one VRF to another is in none for a moment, and FRR 10.3 keeps that route
    return f"ip link set {port} down; ip link set {port} master {vrf}; ip link set {port} up"


_RELOAD = "nft -f /etc/kvfabric/nftables.conf"
_BGP = ("router bgp 65101",)
_ACME = ("router bgp 65101 vrf Vrf-acme", "address-family l2vpn evpn")
_MARK = "table ip kvfault { chain out { type filter hook output priority 0; udp dport 4789 ip dscp set cs0; }; }"

FAULTS = {
    # server ports, since nothing of BGP is bound to their names
    "swapped cables": Fault(
        "leaf-01", _swap("Ethernet4", "Ethernet12"), _swap("Ethernet4", "Ethernet12"),
        "cabling", "crossed", "leaf-01"),
    "wrong VRF": Fault(
        "leaf-01", _vrf("Ethernet68", "Vrf-globex"), _vrf("Ethernet68", "Vrf-acme"),
        "port-vrf", "VRF is Vrf-globex, the plan says Vrf-acme", "leaf-01 E1/9"),
    "missing RT": Fault(
        "leaf-01", _vtysh(*_ACME, "no route-target export 64512:100"), _vtysh(*_ACME, "route-target export 64512:100"),
        "evpn-routes", "the plan says 64512:100", "leaf-01 router bgp vrf Vrf-acme route-target export 64512:100"),
    "MTU": Fault(
        "leaf-01", "ip link set Ethernet256 mtu 1500", "ip link set Ethernet256 mtu 9100",
        "port-mtu", "MTU is 1500, the plan says 9100", "leaf-01 E1/33 (Ethernet256)"),
    "DSCP map": Fault(
        "leaf-01", f"echo '{_MARK}' | nft -f -", "nft delete table ip kvfault",
        "dscp-path", "the plan says 26: leaf-01 changed it", "leaf-01, DSCP map"),
    "conntrack timeout": Fault(
        "gw-01", _nft("established : 120", "established : 999"), _RELOAD,
        "nat-timeouts", "established 999 s (planned 120 s)", "gw-01 table ip kvfabric, ct timeout tcp.acme.masquerade"),
    "NAT pool": Fault(
        "gw-01", _nft("snat ip to 203.0.113.0-203.0.113.3", "snat ip to 203.0.113.4-203.0.113.5"), _RELOAD,
        "nat-rules", "sources leave with 203.0.113.4 to 203.0.113.5", "gw-01 table ip kvfabric, chain post_nat"),
    "ECMP over one spine": Fault(
        "leaf-01", _vtysh(*_BGP, "address-family ipv4 unicast", "maximum-paths 1"),
        _vtysh(*_BGP, "address-family ipv4 unicast", "maximum-paths 64"),
        "ecmp-width", "1 of 2 paths to leaf-02", "leaf-01 route to 172.30.12.4/32"),
    "drifted config": Fault(
        "leaf-01", _vtysh(*_BGP, "bgp always-compare-med"), _vtysh(*_BGP, "no bgp always-compare-med"),
        "config-drift", "runs `bgp always-compare-med` in router bgp 65101", "leaf-01 frr.conf"),
    "drifted rules": Fault(
        "gw-02", "nft add rule ip kvfabric in_edge tcp dport 22 accept", _RELOAD,
        "gateway-drift", "runs `tcp dport 22 accept`", "gw-02 table ip kvfabric, chain in_edge"),
}  # fmt: skip
# what moves data or waits for timers has shown above that it passes, and would only make this long
_STEADY = ("device*", "cabling", "port-*", "bgp*", "bfd*", "ecmp*", "evpn*", "config*", "tenant*", "dscp*", "gateway-serving",
           "gateway-drift", "nat-rules", "nat-timeouts")  # fmt: skip


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of the catalog that a fault is looked for with; LLDP is read once, that it is steady has shown above."""
    plan, chosen = load_plan("lab"), Selection(checks=_STEADY)
    cases = [case for case in generate(plan, all_checks().values()) if chosen.keeps(case)]
    file = tmp_path_factory.mktemp("catalog") / "steady.yaml"
    text = to_yaml(plan, cases)
    assert "{fabric: fabric}" in text
    file.write_text(text.replace("{fabric: fabric}", "{fabric: fabric, samples: 1}"))
    return file


def _found(lab: Running, out: Path, steady: Path, *wanted: str) -> list[tuple[str, str, str, str]]:
    """Return what is not good as soon as it is one check, with the wanted text and place; else at the end of the time.

    BGP, EVPN and LLDP take their time, and what a busy machine disturbs comes back within seconds: a fault does not.
    """
    deadline = time.monotonic() + _UNTIL_S
    time.sleep(_SPREAD_S)
    for number in range(100):
        run, _ = _accept(lab, out, name=f"run-{number}", catalog=steady)
        said = _said(run)
        if _is(said, *wanted) or time.monotonic() > deadline:
            break
        if not said:
            time.sleep(1)
    return said


def _is(said: list[tuple[str, str, str, str]], check: str, text: str, place: str) -> bool:
    return {one[0] for one in said} == {check} and any(text in one[2] and place in one[3] for one in said)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_fails_exactly_one_check_and_names_the_place(
    lab: Running, before: dict[str, object], tmp_path: Path, steady: Path, name: str
) -> None:
    fault = FAULTS[name]
    wanted = (fault.check, fault.text, fault.place)
    try:
        lab.run(fault.node, ["sh", "-c", fault.deed]).check()
        said = _found(lab, tmp_path, steady, *wanted)
    finally:
        lab.run(fault.node, ["sh", "-c", fault.undo]).check()
        assert lab.call("converge", timeout_s=90)["missing"] == []
    assert _is(said, *wanted), said


def test_a_route_leaked_between_tenants_with_the_same_addresses_is_found(
    lab: Running, before: dict[str, object], tmp_path: Path, steady: Path
) -> None:
    """What acme sends to its compute-001 arrives at compute-002 of globex, which has no way to answer."""
    wanted = ("tenant-matrix", "arrived at compute-002, the plan forbids it", "VRFs Vrf-acme and Vrf-globex")
    leak, leaves = "vrf Vrf-acme 10.1.0.9/32 dev Vrf-globex", ("leaf-01", "leaf-02")
    try:
        for leaf in leaves:
            lab.run(leaf, ["sh", "-c", f"ip route add {leak}"]).check()
        said = _found(lab, tmp_path, steady, *wanted)
    finally:
        for leaf in leaves:
            lab.run(leaf, ["sh", "-c", f"ip route del {leak}"])
        assert lab.call("converge", timeout_s=90)["missing"] == []
    assert _is(said, *wanted), said
    run, _ = _accept(lab, tmp_path, name="after", selection=Selection(checks=("device*", "tenant*")))
    assert run.verdict == "accepted", _said(run)
    judged = [part for record in run.records if record.stage == "tenants" for part in record.result.parts]
    assert [part.state for part in judged] == [State.PASS] * 7


def test_a_dead_gateway_is_named(lab: Running, tmp_path: Path, steady: Path) -> None:
    wanted = ("device-answers", "its routing is dead", "gw-02")
    lab.call("cut", target="gw-02", how="power")
    try:
        said = _found(lab, tmp_path, steady, *wanted)
    finally:
        lab.call("heal")
        assert lab.call("converge", timeout_s=120)["missing"] == []
    assert _is(said, *wanted), said


def test_nothing_of_a_planted_fault_stays(lab: Running, before: dict[str, object]) -> None:
    assert wait_until(lambda: lab.call("observe") == before, 120)
