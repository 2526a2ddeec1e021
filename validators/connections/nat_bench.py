"""The hands of the NAT checks: two agents, tokens that find a packet again on the far side, a few TCP moves.

A *side* is an agent with an open port on which it listens. Every packet carries its own token, so what arrives is
matched by what it says and never by what its address ought to be.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from validators.connections import layout
from validators.connections.packets import packet

if TYPE_CHECKING:
    from validators.connections.controller import AgentProcess

Packet = dict[str, Any]
_tokens = itertools.count(1)


@dataclass
class Side:
    """One end of the checks; `heard` keeps all that has arrived so far."""

    agent: AgentProcess
    port: str = "p"
    heard: list[Packet] = field(default_factory=list)

    def listen(self) -> None:
        """Begin to hear."""
        self.agent.call("listen", port=self.port)

    def send(self, *packets: Packet) -> None:
        """Send packets in order."""
        self.agent.call("send", port=self.port, packets=list(packets))

    def hear(self, wait_s: float, token: int | None = None) -> list[Packet]:
        """Return what has arrived since the last call, after waiting, or as soon as one has the token."""
        new: list[Packet] = self.agent.call("heard", port=self.port, wait_s=wait_s, token=token)
        self.heard += new
        return new


@dataclass
class Bench:
    """Both sides, and how long a packet may take; `beside` hears for a neighbour that `inside` does not speak for."""

    inside: Side
    outside: Side
    wait_s: float = 0.15
    beside: Side | None = None

    def pass_through(self, sender: Side, **fields: Any) -> Packet | None:
        """Send one packet; return it as the far side saw it, or None when it did not arrive there."""
        return self.both(sender, **fields)[0]

    def both(self, sender: Side, **fields: Any) -> tuple[Packet | None, list[Packet]]:
        """Send one packet; return it as the far side saw it, and everything else that either side heard."""
        token = next(_tokens)
        far = self.outside if sender is self.inside else self.inside
        sender.send({"token": token, **fields})
        arrived = far.hear(self.wait_s, token)
        found = next((item for item in arrived if item.get("token") == token), None)
        rest = sender.hear(0.0)
        if self.beside is not None:
            rest += self.beside.hear(0.0)
        return found, [item for item in (*arrived, *rest) if item is not found]


def reply_to(seen: Packet) -> Packet:
    """Return the fields of a packet that answers a seen one through the ends it was seen with."""
    fields: Packet = {"protocol": seen["protocol"], "src": seen["dst"], "dst": seen["src"]}
    if seen["protocol"] == "icmp":
        return {**fields, "kind": 0, "sport": seen["sport"], "rest": seen["rest"]}
    return {**fields, "sport": seen["dport"], "dport": seen["sport"]}


def open_tcp(bench: Bench, sender: Side, src: str, sport: int, dst: str, dport: int) -> Packet | None:
    """Shake hands from `sender`; return the SYN as the far side saw it, or None when any of the three was lost."""
    far = bench.outside if sender is bench.inside else bench.inside
    ends = {"protocol": "tcp", "src": src, "sport": sport, "dst": dst, "dport": dport}
    syn = bench.pass_through(sender, **ends, flags=layout.SYN, seq=1000)
    if syn is None:
        return None
    answer = bench.pass_through(far, **reply_to(syn), flags=layout.SYN | layout.ACK, seq=5000, ack=1001)
    # a SYN with data is unusual: the token counts as 8 bytes of it that the answer does not acknowledge
    if answer is None or (answer["src"], answer["sport"]) != (dst, dport):
        return None
    final = bench.pass_through(sender, **ends, flags=layout.ACK | layout.PSH, seq=1001, ack=5001)
    return syn if final is not None else None


def icmp_error(about: Packet, sender: str, kind: int, code: int, rest: int = 0) -> Packet:
    """Return the ICMP error that a router `sender` sends about a packet it saw, quoting its header and 8 bytes."""
    kept = ("protocol", "src", "dst", "sport", "dport", "seq", "flags", "token")
    quoted: Packet = {"kind": 8, "flags": 0}
    quoted.update({name: about[name] for name in kept if name in about})
    inner = packet(quoted)[:28]
    return {
        "protocol": "icmp",
        "src": sender,
        "dst": about["src"],
        "kind": kind,
        "code": code,
        "rest": rest,
        "inner": inner.hex(),
    }
