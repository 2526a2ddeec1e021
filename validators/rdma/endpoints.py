"""RDMA ports of a plan as probe ends, and what the plan wants of a queue pair between two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.plan import Plan

_MTUS = (4096, 2048, 1024, 512, 256)
_HEADERS = 20 + 8 + 12 + 16 + 4
"""IPv4, UDP, BTH, RETH and ICRC: bytes of IP packet beside the payload of the largest RoCEv2 packet of a WRITE."""
_ECT0 = 0b10


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One NIC port: its server, name, address without length, line rate (Gb/s, one way), tenant and leaf."""

    server: str
    port: str
    address: str
    speed_gbps: int
    tenant: str
    fabric: str
    rail: int
    leaf: str
    leaf_port: str

    @property
    def name(self) -> str:
        """Name as results use it."""
        return f"{self.server}:{self.port}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Queue pair settings the plan promises: RDMA MTU, traffic class (DSCP x 4 + ECT(0)), and its priority."""

    mtu: int
    traffic_class: int
    priority: int
    class_name: str


def endpoints(plan: Plan) -> list[Endpoint]:
    """Return every RDMA port that has an address, in the order of the plan."""
    found = []
    for server in plan.servers.values():
        for port in server.ports:
            if not (port.rdma and port.address):
                continue
            link = plan.link_at.get((server.name, port.name))
            far = link.far(server.name) if link else None
            leaf, leaf_port = (far.device, far.port) if far else ("", "")
            address = port.address.split("/")[0]
            found.append(
                Endpoint(
                    server.name, port.name, address, port.speed, port.tenant, port.fabric, port.rail, leaf, leaf_port
                )
            )
    return found


def find(plan: Plan, name: str) -> list[Endpoint]:
    """Return the ports named by `server` or `server:port`. Raises InputError when there is none."""
    server, colon, port = name.partition(":")
    found = [e for e in endpoints(plan) if e.server == server and (not colon or port == e.port)]
    if not found:
        known = sorted({e.server for e in endpoints(plan)})
        fix = f"servers with RDMA ports that have an address: {', '.join(known[:8])}{' ...' if len(known) > 8 else ''}"
        raise InputError([Problem("probe.endpoint", name, "has no RDMA port with an address in the plan", fix)])
    return found


def wanted(plan: Plan, fabric: str, traffic_class: str = "") -> Wanted:
    """Return the settings for a fabric: the named lossless class, or its first. Raises InputError without one."""
    qos, mtu = plan.fabrics[fabric].qos, plan.fabrics[fabric].server_mtu
    classes = [c for c in (qos.lossless if qos else ()) if traffic_class in {"", c.name}]
    if not classes:
        known = ", ".join(c.name for c in (qos.lossless if qos else ()))
        text = f"has no lossless class {traffic_class}".rstrip()
        fix = f"its lossless classes: {known}" if known else "only a fabric with a lossless class can be probed"
        raise InputError([Problem("probe.class", f"fabric {fabric}", text, fix)])
    chosen = classes[0]
    path_mtu = next((size for size in _MTUS if size + _HEADERS <= mtu), _MTUS[-1])
    return Wanted(path_mtu, chosen.dscp[0] * 4 + (_ECT0 if chosen.ecn_max else 0), chosen.priority, chosen.name)
