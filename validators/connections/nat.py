"""What a NAT does, asked case by case; returns observations, judges nothing (see `nat_judge`).

The rows are those of RFC 4787 (UDP), RFC 5382 (TCP) and RFC 5508 (ICMP), and reach or no reach in each direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.connections import layout
from validators.connections.nat_bench import Bench, Packet, icmp_error, open_tcp, reply_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from validators.connections.controller import AgentProcess

Observed = dict[str, Any]


@dataclass(frozen=True)
class Ends:
    """The addresses a check uses: two inside hosts, two outside hosts, and the public side of the exposure.

    `public` is an address of the pool (masquerade), of the forward, or of the static pair of `host`.
    `forwards` maps (protocol, public port) to (private address, private port). `other_host` is a neighbour that calls
    the public address (`host` again: there is none).
    """

    host: str
    other_host: str
    far: str
    other_far: str
    public: str
    forwards: tuple[tuple[str, int, str, int], ...] = ()


def masquerade(bench: Bench, ends: Ends) -> Observed:
    """Ask everything about a masquerade exposure: the inside starts, the outside cannot."""
    return _run(
        {
            "outbound": lambda: {name: _outbound(bench, ends, name) for name in ("udp", "tcp", "icmp")},
            "unsolicited": lambda: _unsolicited(bench, ends),
            "mapping": lambda: {name: _mapping(bench, ends, name) for name in ("udp", "tcp")},
            "filtering": lambda: _filtering(bench, ends),
            "collision": lambda: _collision(bench, ends),
            "hairpin": lambda: _hairpin(bench, ends),
            "reset": lambda: _reset(bench, ends),
            "icmp-errors": lambda: _icmp_errors(bench, ends),
            "ports": lambda: _ports(bench, ends),
        }
    )


def port_forward(bench: Bench, ends: Ends) -> Observed:
    """Ask everything about a port-forward exposure: the outside starts, at the mapped ports only."""
    return _run(
        {
            "inbound": lambda: [_inbound(bench, ends, forward) for forward in ends.forwards],
            "unmapped": lambda: _unmapped(bench, ends),
            "unsolicited": lambda: {"private": _private(bench, ends)},
            "hairpin": lambda: _hairpin_forward(bench, ends),
        }
    )


def static(bench: Bench, ends: Ends, gateway: AgentProcess | None = None) -> Observed:
    """Ask everything about a static exposure: both directions, same ports, no state (seen on the gateway itself).

    A neighbour calls it last: a hairpin is no stateless pair, it has an entry of its own.
    """
    return _run(
        {
            "outbound": lambda: {name: _outbound(bench, ends, name) for name in ("udp", "tcp", "icmp")},
            "inbound": lambda: {name: _static_in(bench, ends, name) for name in ("udp", "tcp", "icmp")},
            "icmp-errors": lambda: _icmp_errors(bench, ends),
            "unsolicited": lambda: {"private": _private(bench, ends)},
            "state": lambda: _state(gateway, ends),
            "hairpin": lambda: _hairpin_to(bench, ends, "tcp", 7012, (ends.host, 7012)),
        }
    )


def _run(cases: dict[str, Callable[[], Any]]) -> Observed:
    return {name: case() for name, case in cases.items()}


def _ends(protocol: str, src: str, sport: int, dst: str, dport: int) -> Packet:
    fields: Packet = {"protocol": protocol, "src": src, "dst": dst, "sport": sport}
    if protocol != "icmp":
        fields["dport"] = dport
    return fields


def _start(protocol: str) -> Packet:
    return {"flags": layout.SYN, "seq": 1000} if protocol == "tcp" else {}


def _answer(protocol: str) -> Packet:
    return {"flags": layout.SYN | layout.ACK, "seq": 5000, "ack": 1001} if protocol == "tcp" else {}


def _outbound(bench: Bench, ends: Ends, protocol: str) -> Observed:
    """Inside to outside and the answer back."""
    out = bench.pass_through(bench.inside, **_ends(protocol, ends.host, 40001, ends.far, 7001), **_start(protocol))
    if out is None:
        return {"reached": False}
    back = bench.pass_through(bench.outside, **reply_to(out), **_answer(protocol))
    return {
        "reached": True,
        "seen_as": out["src"],
        "seen_port": out["sport"],
        "sent_port": 40001,
        "checksums": bool(out["ip_ok"] and out["sum_ok"]),
        "answered": back is not None and (back["src"], back["dst"], back["sport"]) == _expected_back(protocol, ends),
    }


def _expected_back(protocol: str, ends: Ends) -> tuple[str, str, int]:
    return ends.far, ends.host, 40001 if protocol == "icmp" else 7001


def _private(bench: Bench, ends: Ends) -> bool:
    """Can the outside reach the private address itself?"""
    packets = [_ends(name, ends.far, 41000, ends.host, 22) for name in ("udp", "tcp", "icmp")]
    return any(
        bench.pass_through(bench.outside, **fields, **_start(fields["protocol"])) is not None for fields in packets
    )


def _unsolicited(bench: Bench, ends: Ends) -> Observed:
    """Outside first: to the public address, to the private one."""
    packets = [_ends(name, ends.far, 41001, ends.public, 33001) for name in ("udp", "tcp", "icmp")]
    public = any(
        bench.pass_through(bench.outside, **fields, **_start(fields["protocol"])) is not None for fields in packets
    )
    return {"public": public, "private": _private(bench, ends)}


def _mapping(bench: Bench, ends: Ends, protocol: str) -> Observed:
    """One inside socket to three destinations: does it keep its public end? (RFC 4787 REQ-1, RFC 5382 REQ-1)."""
    seen = []
    for dst, dport in ((ends.far, 7002), (ends.far, 7003), (ends.other_far, 7002)):
        out = bench.pass_through(bench.inside, **_ends(protocol, ends.host, 40010, dst, dport), **_start(protocol))
        seen.append((out["src"], out["sport"]) if out else None)
    return {"public_ends": seen}


def _filtering(bench: Bench, ends: Ends) -> Observed:
    """Who may answer a UDP mapping: the same end, another port of it, another address (RFC 4787 REQ-8)."""
    out = bench.pass_through(bench.inside, **_ends("udp", ends.host, 40020, ends.far, 7004))
    if out is None:
        return {"reached": False}
    back = reply_to(out)
    return {
        "reached": True,
        "same_end": bench.pass_through(bench.outside, **back) is not None,
        "other_port": bench.pass_through(bench.outside, **{**back, "sport": 7999}) is not None,
        "other_address": bench.pass_through(bench.outside, **{**back, "src": ends.other_far}) is not None,
    }


def _collision(bench: Bench, ends: Ends) -> Observed:
    """Two inside hosts with the same source port to the same far end: both must work, with different public ends."""
    seen = []
    answered = []
    for host in (ends.host, ends.other_host):
        out = bench.pass_through(bench.inside, **_ends("udp", host, 40030, ends.far, 7005))
        seen.append((out["src"], out["sport"]) if out else None)
        back = bench.pass_through(bench.outside, **reply_to(out)) if out else None
        answered.append(back is not None and back["dst"] == host)
    return {"public_ends": seen, "answered": answered}


def _hairpin(bench: Bench, ends: Ends) -> Observed:
    """One inside host to another through its public end (RFC 4787 REQ-9)."""
    out = bench.pass_through(bench.inside, **_ends("udp", ends.other_host, 40040, ends.far, 7006))
    if out is None:
        return {"reached": False}
    return _turned(bench, _ends("udp", ends.host, 40041, out["src"], out["sport"]), (ends.other_host, 40040))


def _turned(bench: Bench, fields: Packet, called: tuple[str, int]) -> Observed:
    """Call a public end from inside: does it arrive where it leads, as whom, and does the answer come back from it?"""
    protocol = fields["protocol"]
    _, others = bench.both(bench.inside, **fields, **_start(protocol))
    turned = next((item for item in others if (item["dst"], item.get("dport")) == called), None)
    if turned is None:
        return {"reached": True, "turned": False}
    _, others = bench.both(bench.inside, **reply_to(turned), **_answer(protocol))
    end = (fields["dst"], fields["dport"], fields["src"], fields["sport"])
    came = [(item["src"], item.get("sport"), item["dst"], item.get("dport")) for item in others]
    return {"reached": True, "turned": True, "seen_as": turned["src"], "answered": end in came}


def _reset(bench: Bench, ends: Ends) -> Observed:
    """Does a RST outside the window end a flow, and does one inside it (RFC 5382 REQ-10 speaks of ICMP and RST)?"""
    found: Observed = {}
    for name, sequence, port in (("outside_window", 5001 + (1 << 30), 40050), ("inside_window", 5001, 40051)):
        syn = open_tcp(bench, bench.inside, ends.host, port, ends.far, 7007)
        if syn is None:
            found[name] = None
            continue
        back = {**reply_to(syn), "ack": 1009}
        bench.outside.send({**back, "flags": layout.RST | layout.ACK, "seq": sequence})
        data = bench.pass_through(bench.outside, **back, flags=layout.ACK | layout.PSH, seq=5001)
        found[name] = {"flow_lives": data is not None}
    return found


def _icmp_errors(bench: Bench, ends: Ends) -> Observed:
    """Errors about a UDP flow come back to its host with the quoted packet as the host had sent it (RFC 5508 REQ-4)."""
    found: Observed = {}
    for name, kind, code, rest in (("port-unreachable", 3, 3, 0), ("too-big", 3, 4, 1400), ("ttl-exceeded", 11, 0, 0)):
        out = bench.pass_through(bench.inside, **_ends("udp", ends.host, 40060, ends.far, 7008))
        if out is None:
            found[name] = None
            continue
        bench.outside.send(icmp_error(out, ends.other_far, kind, code, rest))
        heard = bench.inside.hear(bench.wait_s)
        error = next((item for item in heard if item.get("kind") == kind and "inner" in item), None)
        found[name] = {"arrived": error is not None} if error is None else _quoted(error, ends)
    out = bench.pass_through(bench.inside, **_ends("udp", ends.host, 40060, ends.far, 7008))
    back = bench.pass_through(bench.outside, **reply_to(out)) if out else None
    return {"errors": found, "flow_lives": back is not None}


def _quoted(error: Packet, ends: Ends) -> Observed:
    inner = error["inner"]
    return {
        "arrived": True,
        "to": error["dst"],
        "inner_src": inner.get("src"),
        "inner_sport": inner.get("sport"),
        "inner_as_sent": (inner.get("src"), inner.get("sport")) == (ends.host, 40060),
        "inner_ip_ok": inner.get("ip_ok"),
        "checksum": bool(error["sum_ok"] and error["ip_ok"]),
    }


def _ports(bench: Bench, ends: Ends) -> Observed:
    """Many flows of one host, and one of each of several ports: preservation, parity, range, pooling, pool use."""
    seen = []
    for place, sport in enumerate((53, 1023, 1024, 2001, 5060, 32768, 40070, 40071, 61000, 65535)):
        far = (ends.far, ends.other_far)[place % 2]
        out = bench.pass_through(bench.inside, **_ends("udp", ends.host, sport, far, 7009))
        seen.append(
            {"sent": sport, "seen": out["sport"], "address": out["src"]} if out else {"sent": sport, "seen": None}
        )
    base = layout.address(ends.host)
    pool = []
    for step in range(16):
        out = bench.pass_through(bench.inside, **_ends("udp", layout.address_text(base + step), 40080, ends.far, 7010))
        pool.append(out["src"] if out else None)
    return {"flows": seen, "hosts": pool}


def _inbound(bench: Bench, ends: Ends, forward: tuple[str, int, str, int]) -> Observed:
    """Outside to a mapped port and the answer back from the public end."""
    protocol, public_port, private, private_port = forward
    arrived = bench.pass_through(
        bench.outside, **_ends(protocol, ends.far, 42001, ends.public, public_port), **_start(protocol)
    )
    found: Observed = {"forward": list(forward), "reached": arrived is not None}
    if arrived is None:
        return found
    back = bench.pass_through(bench.inside, **reply_to(arrived), **_answer(protocol))
    return {
        **found,
        "at": [arrived["dst"], arrived["dport"]],
        "right_end": (arrived["dst"], arrived["dport"]) == (private, private_port),
        "client_seen_as": f"{arrived['src']}:{arrived['sport']}",
        "client_kept": (arrived["src"], arrived["sport"]) == (ends.far, 42001),
        "checksums": bool(arrived["ip_ok"] and arrived["sum_ok"]),
        "answered": back is not None and (back["src"], back["sport"]) == (ends.public, public_port),
    }


def _unmapped(bench: Bench, ends: Ends) -> Observed:
    """Ports beside the mapped ones, and mapped ports of the other protocol, must not lead anywhere."""
    mapped = {(name, port) for name, port, _, _ in ends.forwards}
    tries = {(name, port + step) for name, port in mapped for step in (-1, 1)}
    tries |= {("udp" if name == "tcp" else "tcp", port) for name, port in mapped}
    reached = []
    for name, port in sorted(tries - mapped):
        fields = _ends(name, ends.far, 42002, ends.public, port)
        if bench.pass_through(bench.outside, **fields, **_start(name)) is not None:
            reached.append([name, port])
    return {"tried": len(tries - mapped), "reached": reached}


def _hairpin_forward(bench: Bench, ends: Ends) -> Observed | None:
    """An inside host to a forward of its own site."""
    name, port, private, private_port = ends.forwards[0]
    return _hairpin_to(bench, ends, name, port, (private, private_port))


def _hairpin_to(bench: Bench, ends: Ends, protocol: str, port: int, called: tuple[str, int]) -> Observed | None:
    if ends.other_host == ends.host:
        return None
    return _turned(bench, _ends(protocol, ends.other_host, 42003, ends.public, port), called)


def _static_in(bench: Bench, ends: Ends, protocol: str) -> Observed:
    """Outside to the public address of a static pair, and the answer back."""
    arrived = bench.pass_through(
        bench.outside, **_ends(protocol, ends.far, 43001, ends.public, 7011), **_start(protocol)
    )
    if arrived is None:
        return {"reached": False}
    back = bench.pass_through(bench.inside, **reply_to(arrived), **_answer(protocol))
    return {
        "reached": True,
        "at": arrived["dst"] if protocol == "icmp" else f"{arrived['dst']}:{arrived['dport']}",
        "client_seen_as": f"{arrived['src']}:{arrived['sport']}",
        "right_end": arrived["dst"] == ends.host,
        "port_kept": protocol == "icmp" or arrived["dport"] == 7011,
        "client_kept": (arrived["src"], arrived["sport"]) == (ends.far, 43001),
        "checksums": bool(arrived["ip_ok"] and arrived["sum_ok"]),
        "answered": back is not None and back["src"] == ends.public,
    }


def _state(gateway: AgentProcess | None, ends: Ends) -> Observed:
    """Look into the gateway's table for what either address of the static pair has there with the outside hosts."""
    if gateway is None:
        return {"known": False}
    far = [ends.far, ends.other_far]
    found = [gateway.call("entries", prefix=f"{address}/32", far=far) for address in (ends.host, ends.public)]
    return {
        "known": True,
        "entries": sum(item["entries"] for item in found),
        "sample": [*found[0]["sample"], *found[1]["sample"]],
    }
