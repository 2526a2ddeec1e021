"""Servers that send echo requests with a token to each other, and listen for it: what ping and the listener print."""

from __future__ import annotations

import re

from tests.unit.accept.simulated import SimulatedSite
from validators.devices.answers import Answer

LISTENING = "listening on all ports\n"
# as the plan of the lab site says: (sender, address) -> the server that it arrives at
PLANNED = {
    ("compute-001", "10.1.0.25"): "compute-003",
    ("compute-003", "10.1.0.9"): "compute-001",
    ("compute-001", "10.250.0.5"): "storage-001",
    ("storage-001", "10.1.0.9"): "compute-001",
}


class Traffic:
    """Who gets what. `silent` senders and addresses get no answer although the packets arrive; `answered` ones get an
    answer from nobody known; `deaf` maps a server to what its listener says instead; `gone` servers cannot be asked."""

    def __init__(self, ways=None, silent=(), answered=(), deaf=None, gone=()):
        self.ways, self.silent, self.answered = PLANNED if ways is None else ways, silent, answered
        self.deaf, self.gone = deaf or {}, gone
        self.arrived: dict[tuple[str, str], int] = {}
        self.ears: dict[str, set[str]] = {}
        self.senders: list[str] = []

    def run(self, device, command):
        """Answer a command of the tenant matrix; None for one that is not of it."""
        if device in self.gone:
            return Answer(error="the node is gone")
        if match := re.search(r"python3 -c .*i\[40:40 \+ 4\] == bytes.fromhex\(.([0-9a-f]{8}).\)", command):
            self.ears.setdefault(match[1], set()).add(device)
            return Answer("")
        if match := re.search(r"ping -n -c 1 -W 1 -s 104 -p (\w{8}) (\S+) .*kill ", command):
            return Answer(self._heard(device, *match.groups()))
        if match := re.fullmatch(r"ping -n -c (\d+) -i 0.2 -W 1 -s 56 -p (\w{8}) (\S+); true", command):
            return Answer(self._sent(device, int(match[1]), *match.groups()[1:]))
        return None

    def _sent(self, sender, count, token, address):
        self.senders.append(sender)
        way = (sender, address)
        if server := self.ways.get(way):
            self.arrived[token, server] = count
        back = count if (server and way not in self.silent) or way in self.answered else 0
        return f"{count} packets transmitted, {back} received, 0% packet loss"

    def _heard(self, server, token, _own):
        assert server in self.ears[token]
        if server in self.deaf:
            return self.deaf[server]
        text = LISTENING
        for seq in range(1, 1 + self.arrived.get((token, server), 0)):
            # a bond and its member: twice the same request
            text += f"echo request on fe-p1 seq {seq} length 64\necho request on bond0 seq {seq} length 64\n"
        return f"{text}echo request on lo seq 1 length 112\n"


class LiveSite(SimulatedSite):
    """The simulated site, whose servers reach what the plan lets them reach, and keep marks on the way."""

    def __init__(self, plan, broken=None, physical=False, traffic=None):
        super().__init__(plan, broken, physical)
        self.traffic = traffic or Traffic()

    def run(self, device, command, timeout_s=30.0):
        if said := self.traffic.run(device, command):
            return said
        if "tcpdump" in command:
            return Answer("12:00:00 be0-port0 In  IP (tos 0x6a,ECT(0), ttl 61, id 1, proto ICMP (1), length 1028)")
        return Answer("10 packets transmitted, 10 received")
