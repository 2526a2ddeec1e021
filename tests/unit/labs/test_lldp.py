"""LLDP of a lab: whom a node should see, whom it sees, and that only who lacks somebody is asked again."""

from __future__ import annotations

import json
import subprocess

import pytest

from labs.model import End, Lab, Link, Node
from labs.native import lldp

pytestmark = pytest.mark.unit

CABLE = Link("leaf-01--spine-01", End("leaf-01", "Ethernet0"), End("spine-01", "Ethernet4"))
LAB = Lab("one", (Node("leaf-01", "leaf"), Node("spine-01", "spine"), Node("lonely", "server")), (CABLE,))


def _says(interface, device, port):
    chassis, far = {"name": [{"value": device}]}, {"id": [{"type": "ifname", "value": port}]}
    return json.dumps({"lldp": [{"interface": [{"name": interface, "chassis": [chassis], "port": [far]}]}]})


@pytest.fixture
def daemons(monkeypatch):
    """What lldpd of each node says, one answer after the other; the last one stays. With it, who was asked."""
    says = {"leaf-01": [_says("Ethernet0", "spine-01", "Ethernet4")], "spine-01": ["", _says("Ethernet4", "leaf-01", "Ethernet0")]}  # fmt: skip
    asked = []

    def run_in(name, argv, timeout):
        asked.append(name)
        answers = says[name]
        return subprocess.CompletedProcess(argv, 0, answers.pop(0) if len(answers) > 1 else answers[0], "")

    monkeypatch.setattr(lldp.nodes, "run_in", run_in)
    monkeypatch.setattr(lldp, "_PAUSE_S", 0.01)
    return says, asked


def test_only_who_lacks_somebody_is_asked_again(daemons):
    _, asked = daemons
    assert lldp.wait(LAB, 5)[1] == []
    assert asked == ["leaf-01", "spine-01", "spine-01"]  # a node without a cable is asked nothing


def test_a_wrong_neighbour_is_named_and_stays(daemons):
    daemons[0]["spine-01"] = [_says("Ethernet4", "leaf-02", "Ethernet8")]
    _, lacks = lldp.wait(LAB, 0.1)
    assert lacks == ["spine-01: LLDP on Ethernet4 sees leaf-02 Ethernet8, not leaf-01 Ethernet0"]


def test_a_daemon_that_says_nothing_sees_nobody(daemons):
    daemons[0]["leaf-01"] = [""]
    seen = lldp.observe(LAB, ["leaf-01"])
    assert lldp.missing(LAB, seen) == ["leaf-01: LLDP on Ethernet0 sees nobody, not spine-01 Ethernet4"]
