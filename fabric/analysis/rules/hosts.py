"""Servers: their RoCE settings are the fabric's. Addresses and MTUs of servers are looked at with the cables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fabric.analysis.rendered import ROCE_SH
from fabric.analysis.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem

_SETTING = re.compile(r"^([A-Z_]+)=(?:'([^']*)'|([^\s#]*))", re.MULTILINE)
_ECN_CAPABLE = 2  # ECT(0), RFC 3168


def settings_of(text: str) -> dict[str, str]:
    """Return the variables at the top of a roce.sh."""
    return {name: quoted or plain for name, quoted, plain in _SETTING.findall(text)}


class NicAgrees(Rule):
    """A server marks, classifies and pauses RDMA as its leaves do: DSCP, priority, PFC and the ports it is set on.

    Why: a NIC that sends DSCP 0 travels in the lossy class, and one without PFC ignores the leaf's pause; both work
        until the first incast.
    Fix: render the servers from the plan of the switches.
    """

    id = "hosts.roce"
    file = ROCE_SH

    def check(self) -> Iterator[Problem]:
        for server in self.plan.servers.values():
            ports = [p for p in server.ports if p.rdma and p.tenant]
            if server.name not in self.rendered.files or not ports:
                continue
            qos = self.plan.fabrics[ports[0].fabric].qos
            if qos is None:
                continue
            have = settings_of(self.rendered.text(server.name, ROCE_SH))
            cls = qos.lossless[0]
            pfc = ",".join("1" if i in {c.priority for c in qos.lossless} else "0" for i in range(8))
            want = {
                "DSCP": str(cls.dscp[0]),
                "TOS": str(cls.dscp[0] << 2 | _ECN_CAPABLE),
                "PRIORITY": str(cls.priority),
                "PFC": pfc,
                "PORTS": " ".join(p.name for p in ports),
            }
            for name, value in want.items():
                if have.get(name) != value:
                    text = f"{name} is {have.get(name) or 'missing'}, the fabric has {value}"
                    yield self.finding(server.name, text, device=server.name)
