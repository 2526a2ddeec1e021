"""Judge NAT observations against what an exposure declares; pure.

A promise of the mode (reach, no reach, ends, checksums, no state) passes or fails. A behaviour row of the RFCs passes
when it meets the requirement, and is `unknown` with the requirement's name when it does not and nothing is declared:
it is shown, not hidden, and decides nothing. `expected` turns a row into a promise, and one that is kept although an
RFC asks for something else says so too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECK = "gateway.nat"
Observed = dict[str, Any]


@dataclass(frozen=True)
class Exposed:
    """What the plan says of one exposure: `mode`, the `public` addresses it may appear with, and expected behaviour.

    `expected` maps a behaviour row (`mapping udp`, `hairpin`, ...) to the value that the gateway is meant to show.
    `shares` are the addresses of each gateway, where a pool is divided; `hairpin_as` the tenant's other addresses that
    a host which calls the exposure from inside may wear.
    """

    mode: str
    public: frozenset[str]
    expected: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hairpin_as: frozenset[str] = frozenset()


def judge(subject: str, seen: Observed, exposed: Exposed, *, labels: Mapping[str, str] | None = None) -> Result:
    """Return one result with a part per row."""
    rows = {"masquerade": _masquerade, "portForward": _port_forward, "static": _static}[exposed.mode](
        subject, seen, exposed
    )
    promised = [row.state for row in rows if row.labels.get("kind") == "promise"]
    state = combine(promised)
    wrong = [row for row in rows if row.state in (State.FAIL, State.ERROR)]
    text = f"{exposed.mode}: {promised.count(State.PASS)} of {len(promised)} promises kept"
    for said, state_of in (("and not declared", State.UNKNOWN), ("as declared", State.PASS)):
        less = [row for row in rows if row.labels.get("rfc") and row.state is state_of]
        shown = [f"{row.labels['row']} ({row.labels['rfc']})" for row in less]
        text += f"; not as the RFCs ask, {said}: {', '.join(shown)}" if shown else ""
    if wrong:
        text += f"; broken: {'; '.join(row.text for row in wrong)}"
    marks = {**(labels or {}), "mode": exposed.mode}
    return Result(CHECK, subject, state, text, parts=tuple(rows), labels=marks)


def _promise(subject: str, name: str, kept: bool | None, text: str, evidence: Observed | None = None) -> Result:
    state = State.ERROR if kept is None else State.PASS if kept else State.FAIL
    return Result(
        CHECK, f"{subject}: {name}", state, text, labels={"kind": "promise", "row": name}, evidence=evidence or {}
    )


def _behaviour(
    subject: str, exposed: Exposed, name: str, value: str | None, good: tuple[str, ...], source: str
) -> Result:
    """Return a behaviour row: compared with what is declared, else with what the RFC asks for."""
    declared = exposed.expected.get(name)
    place = f"{subject}: {name}"
    if value is None:
        kind = "promise" if declared else "behaviour"
        return Result(
            CHECK, place, State.ERROR, f"{name}: no answer, nothing was seen", labels={"kind": kind, "row": name}
        )
    asked = f"; {source} asks for {' or '.join(good)}" if good and value not in good else ""
    labels = {"row": name, "kind": "behaviour" if declared is None else "promise"} | ({"rfc": source} if asked else {})
    if declared is not None:
        state, text = State.PASS if value == declared else State.FAIL, f"{name}: {value}, declared {declared}"
    else:
        state, text = State.UNKNOWN if asked else State.PASS, f"{name}: {value}"
    return Result(CHECK, place, state, text + asked, labels=labels, test_id=source)


def _reach(subject: str, name: str, row: Observed, exposed: Exposed, *, port_kept: bool) -> list[Result]:
    """Return the rows of one protocol from the inside out."""
    if not row["reached"]:
        return [_promise(subject, f"{name} outbound", False, f"{name}: outbound packets do not arrive", row)]
    kept = row["seen_as"] in exposed.public and row["answered"] and row["checksums"]
    text = f"{name}: seen as {row['seen_as']}:{row['seen_port']}"
    text += "" if row["answered"] else ", answers do not come back"
    text += "" if row["checksums"] else ", wrong checksum"
    text += "" if row["seen_as"] in exposed.public else ", which is not an address of the exposure"
    if port_kept and row["seen_port"] != row["sent_port"]:
        kept, text = False, text + f", sent from port {row['sent_port']}"
    return [_promise(subject, f"{name} outbound", kept, text, row)]


def _masquerade(subject: str, seen: Observed, exposed: Exposed) -> list[Result]:
    rows = [
        row
        for name, found in seen["outbound"].items()
        for row in _reach(subject, name, found, exposed, port_kept=False)
    ]
    closed = seen["unsolicited"]
    rows += [
        _promise(subject, "no way in by the public address", not closed["public"], _way_in("public", closed["public"])),
        _promise(
            subject, "no way in by the private address", not closed["private"], _way_in("private", closed["private"])
        ),
        _collision(subject, seen["collision"]),
    ]
    rows += [
        _behaviour(
            subject, exposed, f"mapping {name}", mapping(found["public_ends"]), ("endpoint-independent",), source
        )
        for (name, found), source in zip(seen["mapping"].items(), ("RFC 4787 REQ-1", "RFC 5382 REQ-1"), strict=False)
    ]
    rows.append(_behaviour(subject, exposed, "filtering", filtering(seen["filtering"]), (), "RFC 4787 REQ-8"))
    rows.append(_hairpin(subject, seen["hairpin"], exposed, "RFC 4787 REQ-9"))
    rows += _resets(subject, seen["reset"], exposed)
    rows += _errors(subject, seen["icmp-errors"], exposed)
    rows += ports(subject, seen["ports"], exposed)
    return rows


def _way_in(which: str, reached: bool) -> str:
    return f"the outside {'reaches' if reached else 'does not reach'} the inside through its {which} address"


def _collision(subject: str, seen: Observed) -> Result:
    ends = [tuple(end) for end in seen["public_ends"] if end]
    kept = len(ends) == 2 and ends[0] != ends[1] and all(seen["answered"])
    text = f"two hosts, one source port, one far end: {len(set(ends))} different public ends"
    text += f", {sum(seen['answered'])} answered"
    return _promise(subject, "source port collision", kept, text, seen)


def mapping(ends: list[Any]) -> str | None:
    """Name the mapping behaviour from the public ends seen at (A, 1), (A, 2) and (B, 1); None if one is missing."""
    if len(ends) != 3 or not all(ends):
        return None
    first, other_port, other_address = (tuple(end) for end in ends)
    if first == other_port == other_address:
        return "endpoint-independent"
    return "address-dependent" if first == other_port else "address-and-port-dependent"


def filtering(seen: Observed) -> str | None:
    """Name the filtering behaviour; None if not even the flow's own far end is let in."""
    if not seen["reached"] or not seen["same_end"]:
        return None
    if seen["other_address"]:
        return "endpoint-independent"
    return "address-dependent" if seen["other_port"] else "address-and-port-dependent"


def _hairpin(subject: str, seen: Observed, exposed: Exposed, source: str) -> Result:
    """Return the row: the called host must see a public address (REQ-9a), and its answer must find the way back."""
    value = None
    if seen["reached"]:
        value = "yes" if seen["turned"] else "no"
    if value == "yes" and seen["seen_as"] not in exposed.public | exposed.hairpin_as:
        value = f"arrives with the source {seen['seen_as']}, which is not public"
    elif value == "yes" and not seen["answered"]:
        value = "arrives, and its answers do not come back from the public end"
    return _behaviour(subject, exposed, "hairpin", value, ("yes",), source)


def _resets(subject: str, seen: Observed, exposed: Exposed) -> list[Result]:
    rows = []
    for name, found in seen.items():
        value = None if found is None else "flow lives on" if found["flow_lives"] else "flow removed"
        good = ("flow lives on",) if name == "outside_window" else ()
        rows.append(_behaviour(subject, exposed, f"RST {name.replace('_', ' ')}", value, good, "RFC 5961 section 3"))
    return rows


def _errors(subject: str, seen: Observed, exposed: Exposed) -> list[Result]:
    rows = []
    for name, found in seen["errors"].items():
        value = None if found is None else _error_value(found)
        rows.append(_behaviour(subject, exposed, f"ICMP {name}", value, ("translated",), "RFC 5508 REQ-4"))
    value = "flow lives on" if seen["flow_lives"] else "flow removed"
    rows.append(_behaviour(subject, exposed, "flow after ICMP errors", value, ("flow lives on",), "RFC 5382 REQ-10"))
    return rows


def _error_value(found: Observed) -> str:
    if not found["arrived"]:
        return "lost"
    if not found["checksum"]:
        return "wrong checksum"
    return "translated" if found["inner_as_sent"] else "inner packet not translated"


def ports(subject: str, seen: Observed, exposed: Exposed) -> list[Result]:
    """Return the rows of public ports and addresses: pool use, preservation, parity, range, pooling."""
    flows = [flow for flow in seen["flows"] if flow["seen"] is not None]
    if not flows:
        return [_promise(subject, "public ports", None, "no flow was seen outside")]
    kept = sum(flow["seen"] == flow["sent"] for flow in flows)
    even = sum(flow["seen"] % 2 == flow["sent"] % 2 for flow in flows)
    ranges = sum((flow["seen"] < 1024) == (flow["sent"] < 1024) for flow in flows)
    pooling = "paired" if len({flow["address"] for flow in flows}) == 1 else "arbitrary"
    return [
        _pool_use(subject, seen, exposed),
        _behaviour(subject, exposed, "port preservation", f"{kept} of {len(flows)}", (), "RFC 4787 REQ-3"),
        _behaviour(subject, exposed, "port parity", _all(even, flows), ("kept",), "RFC 4787 REQ-4"),
        _behaviour(subject, exposed, "port range", _all(ranges, flows), ("kept",), "RFC 4787 REQ-3"),
        _behaviour(subject, exposed, "address pooling", pooling, ("paired",), "RFC 4787 REQ-2"),
    ]


def _pool_use(subject: str, seen: Observed, exposed: Exposed) -> Result:
    """Every flow leaves, with addresses of one gateway's share, and with more than one of them."""
    ends = [*(flow.get("address") for flow in seen["flows"]), *seen["hosts"]]
    used = {address for address in ends if address}
    shares = [share for share in exposed.shares.values() if used & share] or [exposed.public]
    most = frozenset().union(*shares)
    wrong = [f"not of the pool: {', '.join(sorted(used - exposed.public))}"] if used - exposed.public else []
    lost = len(ends) - sum(map(bool, ends))
    wrong += [f"{lost} of {len(ends)} flows do not come out"] if lost else []
    if len(shares) > 1:
        wrong.append(f"shares of {len(shares)} gateways at the same time")
    if len(used) == 1 < len(most):
        wrong.append("the others carry nothing")
    text = "; ".join([f"{len(used & most)} of {len(most)} pool addresses used by {len(ends)} hosts and ports", *wrong])
    row = _promise(subject, "pool use", not wrong, text)
    share = Measurement("pool addresses used", len(used & exposed.public), "addresses", len(ends))
    return replace(row, measurements=(share,))


def _all(number: int, flows: list[Any]) -> str:
    return "kept" if number == len(flows) else "not kept"


def _port_forward(subject: str, seen: Observed, exposed: Exposed) -> list[Result]:
    rows = []
    for found in seen["inbound"]:
        protocol, port, private, private_port = found["forward"]
        name = f"{protocol} {port} -> {private}:{private_port}"
        if not found["reached"]:
            rows.append(_promise(subject, name, False, f"{name}: the outside does not get through", found))
            continue
        kept = found["right_end"] and found["answered"] and found["checksums"] and found["client_kept"]
        text = f"{name}: arrives at {found['at'][0]}:{found['at'][1]}, client seen as {found['client_seen_as']}"
        text += "" if found["answered"] else ", answers do not come from the public end"
        text += "" if found["checksums"] else ", wrong checksum"
        text += "" if found["client_kept"] else ", which is not the client's own end"
        rows.append(_promise(subject, name, kept, text, found))
    beside = seen["unmapped"]
    text = f"{len(beside['reached'])} of {beside['tried']} unmapped ports lead inside"
    rows.append(_promise(subject, "unmapped ports", not beside["reached"], text, beside))
    private = seen["unsolicited"]["private"]
    rows.append(_promise(subject, "no way in by the private address", not private, _way_in("private", private)))
    if seen["hairpin"] is not None:
        rows.append(_hairpin(subject, seen["hairpin"], exposed, "RFC 4787 REQ-9"))
    return rows


def _static(subject: str, seen: Observed, exposed: Exposed) -> list[Result]:
    rows = [
        row for name, found in seen["outbound"].items() for row in _reach(subject, name, found, exposed, port_kept=True)
    ]
    for name, found in seen["inbound"].items():
        if not found["reached"]:
            rows.append(_promise(subject, f"{name} inbound", False, f"{name}: the outside does not get through", found))
            continue
        kept = all(found[part] for part in ("right_end", "port_kept", "client_kept", "checksums", "answered"))
        broken = [
            part for part in ("right_end", "port_kept", "client_kept", "checksums", "answered") if not found[part]
        ]
        text = f"{name}: arrives at {found['at']}, client seen as {found['client_seen_as']}"
        text += f", but not {', '.join(broken)}" if broken else ""
        rows.append(_promise(subject, f"{name} inbound", kept, text, found))
    rows += _errors(subject, seen["icmp-errors"], exposed)
    private = seen["unsolicited"]["private"]
    rows.append(_promise(subject, "no way in by the private address", not private, _way_in("private", private)))
    state = seen["state"]
    text = (
        f"{state['entries']} entries in the gateway's table"
        if state["known"]
        else "nobody looked at the gateway's table"
    )
    rows.append(_promise(subject, "no state kept", state["entries"] == 0 if state["known"] else None, text, state))
    if seen["hairpin"] is not None:
        rows.append(_hairpin(subject, seen["hairpin"], exposed, "RFC 4787 REQ-9"))
    return rows
