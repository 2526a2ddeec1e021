"""LLDP of a lab: whom a node should see, whom it sees, and that a silent neighbour is asked to speak."""

from __future__ import annotations

import json

import pytest

from labs.model import End, Lab, Link, Node
from labs.native import lldp

pytestmark = pytest.mark.unit

CABLE = Link("leaf-01--spine-01", End("leaf-01", "Ethernet0"), End("spine-01", "Ethernet4"))
LAB = Lab("one", (Node("leaf-01", "leaf"), Node("spine-01", "spine"), Node("lonely", "server")), (CABLE,))
SHOW = ["lldpcli", "-f", "json0", "show", "neighbors"]


def _says(interface, device, port):
    chassis, far = {"name": [{"value": device}]}, {"id": [{"type": "ifname", "value": port}]}
    return json.dumps({"lldp": [{"interface": [{"name": interface, "chassis": [chassis], "port": [far]}]}]})


class Daemons:
    """lldpd of every node: what each has heard, and what was asked of them."""

    def __init__(self, **heard):
        self.heard = heard
        self.asked = []

    def run(self, names, argv, timeout):
        self.asked.append((sorted(names), argv))
        if argv == ["lldpcli", "update"] and "spine-01" in names:
            self.heard["leaf-01"] = _says("Ethernet0", "spine-01", "Ethernet4")
        return {name: self.heard.get(name, "") if argv == SHOW else "" for name in names}


@pytest.fixture
def daemons(monkeypatch):
    made = Daemons(**{"spine-01": _says("Ethernet4", "leaf-01", "Ethernet0")})
    monkeypatch.setattr(lldp.nodes, "run_in_each", made.run)
    monkeypatch.setattr(lldp, "_PAUSE_S", 0.01)
    return made


def test_who_is_not_seen_is_told_to_speak_and_only_who_did_not_see_is_asked_again(daemons):
    _, lacks = lldp.wait(LAB, 5)
    assert lacks == []
    assert daemons.asked == [
        (["leaf-01", "spine-01"], SHOW),  # a node without a cable is asked nothing
        (["spine-01"], ["lldpcli", "update"]),
        (["leaf-01"], SHOW),
    ]


def test_a_wrong_neighbour_is_named_and_stays(daemons):
    daemons.heard["spine-01"] = _says("Ethernet4", "leaf-02", "Ethernet8")
    _, lacks = lldp.wait(LAB, 0.1)
    assert lacks == ["spine-01: LLDP on Ethernet4 sees leaf-02 Ethernet8, not leaf-01 Ethernet0"]


def test_a_daemon_that_says_nothing_sees_nobody(daemons):
    seen = lldp.observe(LAB, ["leaf-01"])
    assert lldp.missing(LAB, seen) == ["leaf-01: LLDP on Ethernet0 sees nobody, not spine-01 Ethernet4"]
