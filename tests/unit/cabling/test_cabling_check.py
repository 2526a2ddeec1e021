"""The cabling check: parsers of LLDP, planted faults, flapping told apart from wrong, a large site quickly."""

from __future__ import annotations

import json
import random

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import SimulatedSite
from validators.cabling.checks import Cabling, CablingInputs, PortSpeed, whole
from validators.cabling.lldp import Neighbour, parse_lldp
from validators.cabling.names import PortNames, Socket
from validators.cabling.port_state import parse_links, parse_speeds
from validators.check import Context, DeviceInputs, judged
from validators.devices.answers import Answer, UnreadableError
from validators.results import Result, State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")

TABLE = """Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr
-----------  --------------  -----------------  ------------  -----------------
Ethernet0    spine-01        Eth1/1             BR            Ethernet0
Ethernet8    compute-001     02:00:00:00:00:01  O             be0-port0
--------------------------------------------------
Total entries displayed:  2
"""


def test_what_was_skipped_is_not_counted_among_what_is_good():
    good, left = Result("c", "a", State.PASS, "fine"), Result("c", "b", State.SKIPPED, "no counter")
    assert whole("c", "all", [good, good], "are well").text == "all 2 are well"
    mixed = whole("c", "all", [good, left, left], "are well")
    assert (mixed.state, mixed.text) == (State.PASS, "1 of 3 are well; skipped: b: no counter (and 1 more)")
    nothing = whole("c", "all", [left], "are well")
    assert (nothing.state, nothing.text) == (State.SKIPPED, "b: no counter")


def test_the_table_of_sonic_is_read():
    assert parse_lldp(TABLE) == [
        Neighbour("Ethernet0", "spine-01", ("Eth1/1", "Ethernet0")),
        Neighbour("Ethernet8", "compute-001", ("be0-port0", "02:00:00:00:00:01")),
    ]


def test_all_shapes_of_lldp_json_are_read():
    port = {"id": {"type": "ifname", "value": "Ethernet0"}, "descr": "to leaf"}
    wanted = [Neighbour("eth0", "spine-01", ("Ethernet0", "to leaf"))]
    one = {
        "lldp": {"interface": {"eth0": {"chassis": {"spine-01": {"id": {"type": "mac", "value": "x"}}}, "port": port}}}
    }
    assert parse_lldp(json.dumps(one)) == wanted
    one["lldp"]["interface"] = [one["lldp"]["interface"]]
    assert parse_lldp(json.dumps(one)) == wanted
    json0 = {"lldp": [{"interface": [{"name": "eth0", "chassis": [{"name": [{"value": "spine-01"}]}],
                                      "port": [{"id": [{"type": "ifname", "value": "Ethernet0"}], "descr": [{"value": "to leaf"}]}]}]}]}  # fmt: skip
    assert parse_lldp(json.dumps(json0)) == wanted
    assert parse_lldp('{"lldp": {}}') == []


@pytest.mark.parametrize("text", ["", "command not found", '{"lldp": {"interface": ['])
def test_what_is_not_lldp_is_unreadable(text):
    with pytest.raises(UnreadableError):
        parse_lldp(text)


def test_ports_are_known_by_every_name_they_go_by():
    names = PortNames(PLAN)
    for name in ("E1/1/1", "Ethernet0", "Eth1/1", "ethernet0"):
        assert names.socket("leaf-01.example.net", name) == Socket("leaf-01", "E1/1/1")
    assert names.socket("nobody", "E1/1") is None


class Wired(SimulatedSite):
    """A site whose cable ends were moved: `moved` maps a socket to where its cable's end is now."""

    def __init__(self, plan, moved=None, missing=(), **more):
        super().__init__(plan, **more)
        self.rounds = 3
        pairs = []
        for link in plan.links.values():
            if link.cable not in missing:
                a, b = (Socket(end.device, end.port) for end in (link.a, link.b))
                pairs.append(((moved or {}).get(a, a), (moved or {}).get(b, b)))
        self.far = {x: y for a, b in pairs for x, y in ((a, b), (b, a))}

    def say_lldp(self, device):
        found = [
            {near.port: {"chassis": {far.device: {}}, "port": {"id": {"type": "local", "value": far.port}}}}
            for near, far in self.far.items()
            if near.device == device
        ]
        return {"lldp": {"interface": found}}


def judge(site, fabric="fabric", samples=3):
    check, inputs = Cabling(), CablingInputs(fabric=fabric, samples=samples)
    return judged(check, site.plan, inputs, check.collect(Context(site.plan, site, None), inputs))


def uplink(number, end="a"):
    link = [one for one in PLAN.links.values() if one.kind == "fabric"][number]
    return Socket(getattr(link, end).device, getattr(link, end).port)


def test_a_crossed_pair_names_two_cables_and_one_exchange():
    a, b = uplink(0), uplink(1)
    result = judge(Wired(PLAN, {a: b, b: a}))
    assert result.state is State.FAIL
    assert "cables 15 and 16 are crossed at leaf-01 E1/33 and leaf-01 E1/34" in result.text
    assert "2 moves" in result.text
    assert [part.state for part in result.parts].count(State.FAIL) == 2


def test_dead_missing_and_no_neighbour_are_told_apart():
    down = Wired(PLAN, missing={15})
    down.broken[("leaf-01", "links")] = lambda d: [
        i | ({"operstate": "DOWN"} if i["ifname"] == "Ethernet256" else {}) for i in d
    ]
    result = judge(down)
    bad = [p for p in result.parts if p.state is State.FAIL]
    assert [p.text for p in bad] == ["dead: leaf-01 E1/33 down, no neighbour on either end"]
    assert result.place == bad[0].place
    assert result.place.startswith("cable 15: ")
    assert "leaf-01 E1/33" in result.place
    assert "although the port is up" in judge(Wired(PLAN, missing={15})).text


def test_flapping_is_told_apart_from_wrong():
    def comes_and_goes(data, *, sample=0):
        if sample == 1:
            data["lldp"]["interface"] = [i for i in data["lldp"]["interface"] if "E1/33" not in i]
        return data

    result = judge(Wired(PLAN, broken={("leaf-01", "lldp"): comes_and_goes}))
    (bad,) = [part for part in result.parts if part.state is State.FAIL]
    assert bad.text == "flapping, in the right ports: leaf-01 E1/33: its neighbour was there in 2 of 3 samples"
    assert not result.evidence["explanations"]


def test_a_silent_server_costs_nothing_and_two_silent_ends_are_an_error():
    silent = {("compute-001", "lldp"): lambda _d: Answer(error="timeout")}
    assert judge(Wired(PLAN, broken=dict(silent))).state is State.PASS
    silent[("leaf-01", "lldp")] = lambda _d: Answer(error="timeout")
    result = judge(Wired(PLAN, broken=silent))
    assert result.state is State.ERROR
    assert "neither end could be asked: timeout" in result.text
    assert result.place == "compute-001, leaf-01"


def test_nobody_answering_is_never_a_pass():
    silent = {(d, "lldp"): lambda _d: Answer(error="unreachable") for d in PLAN.kind_of}
    assert judge(Wired(PLAN, broken=silent)).state is State.ERROR


def test_a_stranger_at_the_far_end():
    def stranger(data):
        next(i for i in data["lldp"]["interface"] if "E1/33" in i)["E1/33"]["chassis"] = {"printer": {}}
        return data

    site = Wired(PLAN, missing={15}, broken={("leaf-01", "lldp"): lambda d: d})
    site.broken[("leaf-01", "lldp")] = lambda d: stranger(
        {"lldp": {"interface": [*d["lldp"]["interface"], {"E1/33": {"port": {"id": "x"}}}]}}
    )
    assert "leaf-01 E1/33 sees printer" in judge(site).text


def test_xoc_1024_with_40_faults_is_solved_and_every_move_is_right():
    plan = load_plan("xoc-1024")
    rng = random.Random(5)
    ends = rng.sample([Socket(one.b.device, one.b.port) for one in plan.links.values() if one.fabric == "backend"], 40)
    moved = dict(zip(ends, ends[1:] + ends[:1], strict=True))
    result = judge(Wired(plan, moved), "backend", samples=1)
    moves = [move for one in result.evidence["explanations"] for move in one["moves"]]
    assert len(moves) == 40
    assert [p.state for p in result.parts].count(State.FAIL) == 40


def test_wrong_breakout_and_wrong_speed():
    check, inputs = PortSpeed(), DeviceInputs(device="leaf-01")
    site = SimulatedSite(PLAN, physical=True)
    good = check.collect(Context(PLAN, site, None), inputs)
    assert judged(check, PLAN, inputs, good).state is State.PASS
    for old, new, text in (
        ("Ethernet4 400000", "Ethernet5 400000", "wrong breakout"),
        ("Ethernet0 400000", "Ethernet0 800000", "wrong speed: 800"),
    ):
        said = good["leaf-01"]["port-speeds"]["text"].replace(old, new)
        result = judged(check, PLAN, inputs, {"leaf-01": {"port-speeds": {"text": said}}})
        assert result.state is State.FAIL
        assert text in result.text
    assert (
        "2x400G on E1/1"
        in judged(check, PLAN, inputs, {"leaf-01": {"port-speeds": {"text": "Ethernet0 400000 up 1"}}}).text
    )


def test_port_states_of_sonic_and_linux():
    table = """  Interface            Lanes    Speed    MTU    FEC    Alias    Vlan    Oper    Admin    Type    Asym PFC
-----------  ---------------  -------  -----  -----  -------  ------  ------  -------  ------  ----------
  Ethernet0      25,26,27,28     400G   9100     rs   Eth1/1  routed      up       up     N/A         N/A
"""
    port = parse_speeds(table)["Ethernet0"]
    assert (port.up, port.speed, port.mtu, port.fec) == (True, 400, 9100, "rs")
    assert (
        parse_links('[{"ifname": "e", "flags": ["UP"], "operstate": "DOWN", "mtu": 1500, "master": "v"}]')["e"].up
        is False
    )
    for text in ("", "nonsense here"):
        with pytest.raises(UnreadableError):
            parse_speeds(text)
    with pytest.raises(UnreadableError):
        parse_links("{}")
