from __future__ import annotations

import re
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network, ip_interface

import pytest

from fabric.build import load_plan
from fabric.gateway.timeouts import scaled
from fabric.plan import Plan
from fabric.problem import CouldNotRunError, InputError
from fabric.render import gateway
from labs import model
from labs import slice as slicing
from validators.connections import idle_judge, in_lab, lab_stand, lab_timers, lab_waves
from validators.connections.from_plan import Target, targets
from validators.connections.idle_judge import IdleRow
from validators.connections.lab_waves import waves
from validators.failover.drain_in_lab import _Drain
from validators.failover.flows import FlowsSpec
from validators.failover.lanes import Lane, lay
from validators.failover.observed import CanarySeen, FlowsSeen, Silence, SlotSeen
from validators.results import Result, State
from validators.session import vip
from validators.session.vip import front_of, wait_until_served

pytestmark = pytest.mark.unit


@dataclass
class FakeLab:
    lab: model.Lab
    name: str = "lab"

    def run(self, node: str, argv: list[str]) -> Ran:
        self.ran.append((node, argv[-1]))
        return Ran("")

    ran: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Said:
    out: str

    def check(self) -> Said:
        return self


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan("lab")


@pytest.fixture(scope="module")
def lab(plan: Plan) -> FakeLab:
    return FakeLab(slicing.make(plan, "lab"))


def _site(plan: Plan, lab: FakeLab, name: str) -> in_lab.Site:
    return in_lab.site_of(plan, lab, targets(plan, tenant="acme", exposure=name)[0])


def test_a_tester_gets_a_block_that_nobody_uses(plan: Plan, lab: FakeLab) -> None:
    block = lab_stand.free_block(plan, lab, plan.tenants["acme"])
    used = [ip_interface(p.address).network for s in plan.servers.values() for p in s.ports if p.tenant == "acme"]
    assert not any(IPv4Network(block.prefix).overlaps(other) for other in used)
    assert IPv4Network(block.prefix).subnet_of(IPv4Network(plan.tenants["acme"].subnets[0].prefix))
    # it is brought to the server as its own service address is: over every port of the fabric, from the leaf behind it
    assert {leaf for leaf, _, _ in block.hops} == {"leaf-01", "leaf-02"}
    assert {vrf for _, vrf, _ in block.hops} == {"Vrf-acme"}


def test_each_mode_is_measured_where_it_leads(plan: Plan, lab: FakeLab) -> None:
    masquerade, forward, static = (_site(plan, lab, name) for name in ("masquerade", "forward", "static"))
    assert (masquerade.inside, masquerade.gateway) == ("compute-001", "gw-01")
    assert forward.hosts[0] == "10.1.0.1"
    assert forward.prefix == "10.1.0.1/32"
    assert (static.inside, static.hosts[0]) == ("compute-003", "10.1.0.17")
    assert static.hosts[1] == static.block.host(0)  # the neighbour that calls its public address
    # a forward may lead to a port's own address
    other = _site(plan, lab, "forward-2")
    assert (other.inside, other.hosts[0]) == ("compute-003", "10.1.0.25")


def test_what_is_not_in_the_slice_is_skipped_with_its_reason(plan: Plan) -> None:
    small = FakeLab(slicing.make(plan, "lab", {"servers": 1}))
    with pytest.raises(CouldNotRunError, match="no server that it leads to"):
        _site(plan, small, "static")
    results = in_lab.run_nat(plan, small, tenant="acme", exposure="static")
    assert [result.state for result in results] == [State.SKIPPED]
    with pytest.raises(CouldNotRunError, match="no gateway of group internet"):
        _site(plan, FakeLab(slicing.make(plan, "lab", {"gateways": 0})), "masquerade")


def test_an_unknown_exposure_is_an_input_error(plan: Plan, lab: FakeLab) -> None:
    with pytest.raises(InputError, match="called nothing-like-it"):
        in_lab.run_nat(plan, lab, tenant="acme", exposure="nothing-like-it")


def test_only_timers_are_shortened(plan: Plan) -> None:
    text = gateway.render(plan, "gw-01")["nftables.conf"]
    short = lab_timers.shortened(text, 0.02)
    assert "established : 12, retrans : 12" in short  # the port forward's 10 minutes
    assert "established : 600" not in short
    timers = re.compile(r"policy = \{[^}]*\}")
    assert timers.sub("", text) == timers.sub("", short)
    assert lab_timers.shortened(text, 1) == text


def test_the_timers_of_one_exposure_are_shortened_and_no_others(plan: Plan) -> None:
    text = gateway.render(plan, "gw-01")["nftables.conf"]
    short = lab_timers.shortened(text, 0.02, "acme.forward")
    timers = re.compile(r"ct timeout (\S+) \{[^}]*policy = (\{[^}]*\})")
    before, after = dict(timers.findall(text)), dict(timers.findall(short))
    assert {name for name in before if before[name] != after[name]} == {"tcp.acme.forward", "udp.acme.forward"}
    assert "established : 12," in after["tcp.acme.forward"]


LISTED = """table ip kvfabric {
	ct timeout tcp.acme.out {
		protocol tcp
		l3proto ip
		policy = { syn_sent : 20s, established : 1h30m, fin_wait : 2m }
	}

	ct timeout udp.acme.out {
		protocol udp
		l3proto ip
		policy = {  }
	}
}
"""


def test_what_nft_lists_can_be_loaded_again_with_every_timer() -> None:
    """Nft leaves out what is its own, and does not read the empty policy that it then prints."""
    text = lab_timers.written(LISTED)
    assert "policy = { unreplied : 30, replied : 120 }" in text
    assert "syn_sent : 20, syn_recv : 60, established : 5400, fin_wait : 120," in text
    assert "unreplied : 3, replied : 12" in lab_timers.shortened(text, 0.1)


class TimedLab:
    """A gateway whose kernel has rules and a timer for ICMP; keeps what it was given."""

    def __init__(self, text: str) -> None:
        self.text, self.icmp, self.kept = text, 60, ""
        self.given: list[tuple[str, int]] = []

    def run(self, _node: str, argv: list[str], stdin: bytes = b"") -> Ran:
        script = argv[-1]
        if script.startswith("nft list"):
            return Ran(self.text)
        if script.startswith("cat /proc"):
            return Ran(f"{self.icmp}\n")
        if script.startswith("cat > "):
            self.kept = stdin.decode()
        elif script.startswith("nft -f"):
            self.given.append((stdin.decode(), int(script.split()[5])))
        elif self.kept:
            self.given.append((self.kept, 60))
            self.kept = ""
        return Ran("")


@dataclass
class Ran:
    out: str
    rc: int = 0
    err: str = ""


def test_a_timer_that_is_wrong_in_the_gateway_stays_wrong_when_it_is_shortened() -> None:
    """Rendered anew, it would be right for as long as somebody looks."""
    lab = TimedLab(LISTED.replace("1h30m", "60s"))
    with lab_timers.scaled_timers(lab, "gw", {"acme.out": 0.1}, 0.1):
        pass
    (short, short_icmp), (again, icmp) = lab.given
    assert ("established : 6," in short, short_icmp) == (True, 6)
    assert ("established : 60," in again, icmp) == (True, 60)


def test_timers_that_a_killed_probe_left_are_taken_back_first() -> None:
    lab = TimedLab(LISTED)
    lab.kept = "what was there"
    with lab_timers.scaled_timers(lab, "gw", 1.0):
        pass
    assert lab.given == [("what was there", 60)]


def test_exposures_are_measured_at_once_where_none_gets_in_the_way_of_another(plan: Plan, lab: FakeLab) -> None:
    sites = [in_lab.site_of(plan, lab, target) for target in targets(plan)]
    together = [[site.label for site in wave] for wave in waves(sites)]
    # the neighbours of static and forward-2 are at another server than masquerade's hosts: they have a block of their own
    everybody = ["acme.masquerade", "acme.forward", "acme.static", "acme.forward-2"]
    assert together == [[*everybody, "globex.masquerade", "globex.forward"]]
    assert len(waves([*sites, *sites])) == 2
    assert len(waves(sites, lambda a, b: a.gateway == b.gateway)) == 4


def test_what_is_sent_to_private_addresses_goes_to_the_gateway_of_each_exposure(plan: Plan, lab: FakeLab) -> None:
    """Tenants may have the same addresses: whose gateway is meant is known by who sends."""
    wave = [in_lab.site_of(plan, lab, targets(plan, tenant=name, exposure="forward")[0]) for name in ("acme", "globex")]
    lab.ran.clear()
    with lab_waves.straight_in(plan, lab, wave):
        ((node, script),) = lab.ran
    assert node == "edge-01"
    assert "ip route replace default via 172.30.16.1 table 778" in script
    assert "ip rule add pref 1 from 198.18.0.0/28 to 10.1.0.1/32 lookup 778" in script
    assert "ip rule add pref 1 from 198.18.0.16/28 to 10.1.0.1/32 lookup 779" in script
    assert "ip rule del pref 1 from 198.18.0.16/28 to 10.1.0.1/32 lookup 779" in lab.ran[1][1]


def test_the_kinds_of_flows_that_enter_an_exposure(plan: Plan, lab: FakeLab) -> None:
    assert "icmp" in _site(plan, lab, "masquerade").kinds
    assert {kind.split("-")[0] for kind in _site(plan, lab, "forward").kinds} == {"tcp", "udp"}
    assert {kind.split("-")[0] for kind in _site(plan, lab, "forward-2").kinds} == {"tcp"}
    assert not _site(plan, lab, "static").kinds


def test_what_one_exposure_cannot_do_is_nothing_to_the_others(
    plan: Plan, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tester is a tester of its own, with a block outside of its own; an error is that exposure's."""

    class Testers:
        def __init__(self, inside: object, outside: object, gateway: object) -> None:
            self.places, self.gateway = {"inside": inside, "outside": outside}, gateway
            seen.append(self)

        def slow_down(self, *_: float) -> None:
            pass

        __enter__, __exit__ = (lambda self: self), (lambda *_: None)

    def probe(target: Target, testers: Testers) -> Result:
        if target.exposure.name == "forward":
            raise CouldNotRunError("its agent is silent")
        return Result("x", target.subject, State.FAIL if target.exposure.name == "static" else State.PASS, "")

    seen: list[Testers] = []
    monkeypatch.setattr(lab_waves, "Stand", lambda *_: nullcontext())
    monkeypatch.setattr(lab_waves, "Testers", Testers)
    monkeypatch.setattr(in_lab, "probe_nat", probe)
    names = [("globex", "forward"), ("acme", "static"), ("acme", "masquerade")]
    results = in_lab.run_nat(plan, lab, only=names)  # type: ignore[arg-type]
    assert [(r.subject, r.state, r.place) for r in results] == [
        ("tenant globex forward", State.ERROR, "gw-02, exposure forward of globex"),
        ("tenant acme static", State.FAIL, "gw-01, exposure static of acme"),
        ("tenant acme masquerade", State.PASS, ""),
    ]
    assert [str(t.places["outside"].network) for t in seen] == ["198.18.0.0/28", "198.18.0.16/28", "198.18.0.32/28"]
    assert [lab_waves.number_of(t) for t in seen] == [0, 1, 2]  # type: ignore[arg-type]
    # only a static pair's promise, no state, is looked for on the gateway
    assert [t.gateway is not None for t in seen] == [False, True, False]


def test_a_scaled_timer_is_whole_and_long_enough_to_set_up_a_flow() -> None:
    assert [scaled(seconds, 0.1) for seconds in (120, 10, 5)] == [12, 2, 2]
    assert scaled(7200, 1) == 7200


def test_a_row_that_one_pass_could_not_decide_is_decided_by_another() -> None:
    slow = IdleRow("dns", 0.0, 0.5, 9, 0, 0, 0, 0, pause_s=3.0)
    good, bad = IdleRow("dns", 1.9, 2.1, 9, 0, 0, 0, 0), IdleRow("dns", 4.9, 5.1, 9, 0, 0, 0, 0)
    judged = [idle_judge.judge("gw", [row], {"dns": 10.0}, rendered={"dns": 2.0}) for row in (slow, good, bad)]
    assert [result.state for result in judged] == [State.UNKNOWN, State.PASS, State.FAIL]
    assert "tester-limited" in judged[0].parts[0].text
    assert idle_judge.decided(judged[0], judged[1]).state is State.PASS
    assert idle_judge.decided(judged[1], judged[0]).state is State.PASS
    assert idle_judge.decided(judged[0], judged[2]).state is State.FAIL
    assert "shortened" in judged[1].text


def test_a_session_comes_by_the_vip_and_every_server_behind_it_has_workers(plan: Plan, lab: FakeLab) -> None:
    front = front_of(plan, lab, _site(plan, lab, "forward"))
    assert (front.text, front.client, front.service) == ("VIP 192.0.2.1:443", "internet-01", "acme-443")
    assert [(seat.node, seat.address, seat.port) for seat in front.seats] == [
        ("compute-001", "10.1.0.1", 8443),
        ("compute-003", "10.1.0.25", 8443),
    ]


def test_a_lab_without_balancers_is_called_by_the_forward_itself(plan: Plan, lab: FakeLab) -> None:
    bare = FakeLab(replace(lab.lab, nodes=tuple(n for n in lab.lab.nodes if not n.name.startswith("vip"))))
    front = front_of(plan, bare, _site(plan, bare, "forward"))
    assert (front.text, front.client, front.service) == ("203.0.113.20:443", "edge-01", "")
    wait_until_served(bare, front)


def test_a_vip_whose_workers_stay_down_is_said(plan: Plan, lab: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    header = "# pxname,svname,stot,status,check_status,last_chk,check_desc"
    rows = ["acme-443,FRONTEND,0,OPEN,,,", "acme-443,forward,0,UP,L4OK,,", "acme-443,forward-2,0,DOWN,L4TOUT,,"]
    lab.run = lambda *_asked, **_more: Said("\n".join([header, *rows]))  # type: ignore[attr-defined]
    monkeypatch.setattr(vip, "_UP_S", 0.0)
    with pytest.raises(CouldNotRunError, match="vip-01: forward-2 L4TOUT, vip-02: forward-2 L4TOUT"):
        wait_until_served(lab, front_of(plan, lab, _site(plan, lab, "forward")))


def test_two_coarse_passes_decide_together_and_only_when_they_agree() -> None:
    def judged(survived: float, died: float) -> Result:
        row = IdleRow("tcp-half-closed", survived, died, 9, 0, 0, 0, 0, pause_s=3.0)
        return idle_judge.judge("gw", [row], {"tcp-half-closed": 120.0}, rendered={"tcp-half-closed": 12.0})

    low, high, wide, beside = judged(11.5, 12.1), judged(11.9, 12.6), judged(11.4, 12.5), judged(12.2, 12.9)
    assert {result.state for result in (low, high, wide, beside)} == {State.UNKNOWN}
    both = idle_judge.decided(low, high)
    assert both.state is State.PASS
    assert "survived 11.90 s, dead after 12.10 s in two passes" in both.parts[0].text
    assert "RFC 5382" in both.parts[0].text
    still = idle_judge.decided(low, wide)
    assert (still.state, still.parts[0].evidence["survived_s"]) == (State.UNKNOWN, 11.5)
    assert idle_judge.decided(still, high).state is State.PASS
    assert idle_judge.decided(low, beside).state is State.UNKNOWN


def _drained(
    plan: Plan, *slots: SlotSeen, new: str = "203.0.113.5", mode: str = "masquerade", returned: int = 4
) -> Result:
    """Judge a drain of gw-01 by what its watches saw, without a lab; `returned` is what it counted after the undo."""
    target = targets(plan, tenant="acme", exposure=mode)[0]
    lane = Lane(target, "", "", "", "", FlowsSpec("tcp", "10.1.0.1", "198.18.0.1", 7000, 2), "gw-01")
    began = 10**18
    canaries = tuple(CanarySeen(began + number, True, new) for number in range(1, 5))
    watch = FlowsSeen(slots, 0, 50.0, 0, 4, 4, None, canaries)
    back = replace(watch, canaries=tuple(replace(canary, public="203.0.113.1") for canary in canaries))
    drain = object.__new__(_Drain)
    vars(drain).update(plan=plan, gateway="gw-01", deadline_s=60.0, began_ns=began, settle_ms=0.0, said="")
    elsewhere = replace(watch, slots=tuple(slot for slot in slots if slot.survived))
    watches = {"draining": watch, "stopping": elsewhere, "undone": back}
    vars(drain).update(watches={phase: {lane.name: seen} for phase, seen in watches.items()})
    vars(drain).update(stopped_ns=began + 10**9, exit_code=0, left={lane.name: 0}, landed={})
    vars(drain).update(returned={lane.name: returned})
    return drain.judged(lane)


def test_a_drain_that_cut_a_flow_or_let_a_new_one_land_fails(plan: Plan) -> None:
    good, gone = Silence(10**18, 10**18 + 1, 80.0), Silence(10**18 + 5, None, 3000.0)
    lived = SlotSeen(0, good, good, False, False, "203.0.113.1", "", None)
    died = SlotSeen(1, gone, gone, True, False, "203.0.113.1", "203.0.113.5", 400.0)
    assert _drained(plan, lived, lived).state is State.PASS
    cut = _drained(plan, lived, died)
    assert (cut.state, "1 of 2 established flows were cut before the deadline" in cut.text) == (State.FAIL, True)
    landed = _drained(plan, lived, new="203.0.113.2")
    assert (landed.state, "new flows landed on gw-01 while it drained" in landed.text) == (State.FAIL, True)


def test_a_forward_has_come_back_when_its_gateway_says_so(plan: Plan) -> None:
    """Its public address is the same by every gateway: only the counter there tells who took a new flow."""
    good = Silence(10**18, 10**18 + 1, 80.0)
    slot = SlotSeen(0, good, good, False, False, "203.0.113.20", "", None)
    assert _drained(plan, slot, new="198.18.0.9", mode="forward").state is State.PASS
    stayed = _drained(plan, slot, new="198.18.0.9", mode="forward", returned=0)
    assert stayed.state is State.FAIL
    assert "after undo 0 of 4 new flows landed on gw-01 again, the others on gw-02" in stayed.text


def test_lanes_bring_a_block_to_one_server_only(plan: Plan, lab: FakeLab) -> None:
    """The same free block at two servers would spread a masquerade flow's answers over both."""
    layout = lay(plan, lab, "acme")
    assert [lane.target.exposure.name for lane in layout.lanes] == ["masquerade", "forward", "static", "forward-2"]
    assert [block.server for block in layout.blocks] == ["compute-001"]
    spoken_for = [prefix for prefixes in layout.places.values() for prefix in prefixes if prefix.startswith("10.")]
    assert sorted(set(spoken_for)) == sorted({layout.blocks[0].prefix, "10.1.0.1/32", "10.1.0.17/32", "10.1.0.25/32"})


def test_a_probe_that_is_interrupted_does_not_wait_for_the_others(
    plan: Plan, lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their agents are closed, which ends them: a ladder may go on for minutes."""
    closed = threading.Event()

    class Testers:
        def __init__(self, *_: object) -> None:
            pass

        __enter__, __exit__ = (lambda self: self), (lambda *_: closed.set())

    def probe(site: in_lab.Site, _testers: object) -> Result:
        if site.label == "acme.masquerade":
            raise KeyboardInterrupt
        assert closed.wait(10), "its testers stayed open"
        return Result("x", site.label, State.PASS, "")

    monkeypatch.setattr(lab_waves, "Stand", lambda *_: nullcontext())
    monkeypatch.setattr(lab_waves, "Testers", Testers)
    sites = [_site(plan, lab, name) for name in ("masquerade", "forward")]
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(lab_waves.measure(plan, lab, sites, probe))  # type: ignore[arg-type]
    assert closed.is_set()
    assert time.monotonic() - begun < 9
