"""Facts of a router: equal when only times, counters and MACs differ, different when the network does."""

from __future__ import annotations

import copy

import pytest

from labs import facts
from labs.converge import Observation

pytestmark = pytest.mark.unit

SAID = {
    "bgp": {
        "default": {
            "ipv4Unicast": {
                "peers": {"Ethernet0": {"state": "Established", "remoteAs": 65000, "pfxRcd": 4, "peerUptime": "00:01"}}
            }
        }
    },
    "bfd": [{"peer": "fe80::1", "interface": "Ethernet0", "vrf": "default", "status": "up", "uptime": 5}],
    "vni": {"vrfs": [{"vni": 100, "vrf": "Vrf-a", "state": "Up", "routerMac": "02:00:00:00:00:01"}]},
    "rmac": {"100": {"02:00:00:00:00:02": {"vtepIp": "172.30.0.2"}, "numRmacs": 1}},
    "route": {
        "default": {
            "10.0.0.1/32": [
                {
                    "protocol": "bgp", "installed": True, "uptime": "00:01",
                    "nexthops": [{"ip": "fe80::1", "interfaceName": "Ethernet0", "fib": True}],
                }
            ],
            "172.30.0.0/24": [
                {"protocol": "connected", "installed": True, "nexthops": [{"interfaceName": "eth0", "fib": True}]}
            ],
        }
    },
}  # fmt: skip


def _facts(change=lambda said: None):
    said = copy.deepcopy(SAID)
    change(said)
    return facts.of(Observation("leaf-01", said))


def test_facts_are_what_the_network_is():
    assert _facts() == {
        "bgp": [["default", "ipv4Unicast", "Ethernet0", "Established", "65000"]],
        "bfd": [["Ethernet0", "default", "up"]],
        "vni": [["100", "Vrf-a", "Up"]],
        "rmac": {"100": ["172.30.0.2"]},
        "routes": {"default": [["10.0.0.1/32", "bgp", ["Ethernet0"]]]},
    }


def _other_run(said):
    said["bgp"]["default"]["ipv4Unicast"]["peers"]["Ethernet0"]["peerUptime"] = "09:99"
    said["bgp"]["default"]["ipv4Unicast"]["peers"]["Ethernet0"]["pfxRcd"] = 9
    said["bfd"][0] |= {"peer": "fe80::99", "uptime": 77}
    said["vni"]["vrfs"][0]["routerMac"] = "02:00:00:00:00:ff"
    said["route"]["default"]["10.0.0.1/32"][0]["nexthops"][0]["ip"] = "fe80::99"
    del said["route"]["default"]["172.30.0.0/24"]


def test_times_and_macs_are_no_facts():
    assert _facts(_other_run) == _facts()


@pytest.mark.parametrize(
    "change",
    [
        lambda said: said["bgp"]["default"]["ipv4Unicast"]["peers"]["Ethernet0"].update(state="Idle"),
        lambda said: said["bfd"][0].update(status="down"),
        lambda said: said["vni"]["vrfs"][0].update(state="Down"),
        lambda said: said["rmac"]["100"].clear(),
        lambda said: said["route"]["default"]["10.0.0.1/32"][0].update(installed=False),
        lambda said: said["route"]["default"]["10.0.0.1/32"][0]["nexthops"].append(
            {"interfaceName": "Ethernet4", "fib": True}
        ),
    ],
)
def test_a_network_that_differs_gives_other_facts(change):
    assert _facts(change) != _facts()
