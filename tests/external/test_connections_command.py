from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from fabric.plan import Exposure, PoolShare, PortMap
from fabric.problem import InputError
from validators.connections import command
from validators.connections.from_plan import Target
from validators.connections.programs import CommandHost
from validators.connections.rig import INSIDE, INSIDE_HOP, OUTSIDE, OUTSIDE_HOP, Rig, Timers
from validators.results import State

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nft"),
]
PUBLIC = ("203.0.113.0/29", "203.0.113.64/32", "203.0.113.128/28")
MASQUERADE = Target(
    Exposure(
        *("out", "acme", "masquerade", "internet", ("10.1.0.0/16",), ("203.0.113.0/29",), 3, ()),
        (PoolShare("gw-1", "203.0.113.0", "203.0.113.7"),),
    ),
    "Vrf-acme",
    PUBLIC,
)
FORWARD = Target(
    Exposure(
        *("web", "acme", "portForward", "internet", ("10.1.0.10/32",), ("203.0.113.64/32",), 3),
        (PortMap("tcp", 443, "10.1.0.10", 8443), PortMap("udp", 4433, "10.1.0.10", 8433)),
    ),
    "Vrf-acme",
    PUBLIC,
)
STATIC = Target(
    Exposure("api", "acme", "static", "internet", ("10.1.200.0/28",), ("203.0.113.128/28",), 0), "Vrf-acme", PUBLIC
)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    table = MASQUERADE.idle()
    timers = Timers(
        {"established": 3, "syn_sent": 3, "syn_recv": 3, "fin_wait": 3, "close_wait": 3, "close": 1},
        {"unreplied": int(table["udp-one-way"]), "replied": int(table["udp-two-way"])},
        {"unreplied": int(table["dns"]), "replied": int(table["dns"])},
        3,
    )
    with Rig(timers) as built:
        yield built


def _testers(rig: Rig, *hosts: str) -> command.Testers:
    def words(space: str) -> CommandHost:
        return CommandHost(rig.prefix(space), sys.executable)

    inside = command.Place(words(rig.inside), "tester", INSIDE_HOP, INSIDE, (hosts[0], hosts[1]))
    outside = command.Place(words(rig.outside), "tester", OUTSIDE_HOP, OUTSIDE, ("198.18.1.1", "198.18.1.2"))
    return command.Testers(inside, outside, words(rig.gateway))


def test_a_masquerade_exposure_of_the_plan(rig: Rig) -> None:
    with _testers(rig, "10.1.3.1", "10.1.3.2") as testers:
        nat = command.probe_nat(MASQUERADE, testers)
        assert nat.state is State.PASS, nat.text
        assert nat.labels == {"tenant": "acme", "vrf": "Vrf-acme", "mode": "masquerade"}
        ask = {"protocol": "udp", "connections": 2000, "start": 4000.0, "highest": 4000.0}
        ladder = command.probe_ladder(MASQUERADE, testers, **ask, wanted=1000.0)
        assert ladder.state is State.PASS, ladder.text
        with pytest.raises(InputError, match="more than the 516096 ports"):
            command.probe_ladder(MASQUERADE, testers, **{**ask, "connections": 600_000}, wanted=None)


def test_a_forward_is_measured_from_outside(rig: Rig) -> None:
    with _testers(rig, "10.1.0.10", "10.1.3.2") as testers:
        nat = command.probe_nat(FORWARD, testers)
        assert nat.state is State.PASS, nat.text
        idle = command.probe_idle(FORWARD, testers)
        assert idle.state is State.PASS, idle.text
        assert {part.labels["kind"] for part in idle.parts} >= {"udp-two-way", "tcp-established"}


def test_a_static_exposure_keeps_no_state_and_has_no_timer(rig: Rig) -> None:
    with _testers(rig, "10.1.200.3", "10.1.200.4") as testers:
        nat = command.probe_nat(STATIC, testers)
        assert nat.state is State.PASS, nat.text
        with pytest.raises(InputError, match="no idle timeout"):
            command.probe_idle(STATIC, testers)
